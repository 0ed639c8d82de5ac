from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

from robota.testing import call
from robota.testing.model_server import ModelServer


class Terminal:
    """A program on a pseudo-terminal: type, and wait for what it shows."""

    def __init__(self, cwd: Path, server: ModelServer) -> None:
        self.seen = ""
        self.read_up_to = 0
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            kept = {name: os.environ[name] for name in ("PATH", "HOME", "ROBOTA_HOME") if name in os.environ}
            env = {**kept, "ROBOTA_BASE_URL": f"{server.url}/v1", "ROBOTA_MODEL": "scripted", "TERM": "dumb"}
            os.execve(sys.executable, [sys.executable, "-m", "robota"], env)

    def wait_for(self, text: str) -> None:
        while (found := self.seen.find(text, self.read_up_to)) < 0:
            self.seen += os.read(self.master, 4096).decode()
        self.read_up_to = found + len(text)

    def type(self, line: str) -> None:
        os.write(self.master, line.encode())

    def leave(self) -> int:
        try:
            while data := os.read(self.master, 4096):
                self.seen += data.decode()
        except OSError:
            pass  # Linux reports the end of a pseudo-terminal as an I/O error
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_several_prompts_share_one_conversation(tmp_path: Path) -> None:
    with ModelServer("First answer.", "Second answer.").in_thread() as server:
        terminal = Terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("one\n")
        terminal.wait_for("First answer.")
        terminal.wait_for("robota> ")
        terminal.type("two\n")
        terminal.wait_for("Second answer.")
        terminal.wait_for("robota> ")
        terminal.type("/exit\n")
        code = terminal.leave()
        roles = [message["role"] for message in server.requests[1].body["messages"]]

    assert code == 0
    assert roles == ["system", "user", "assistant", "user"]


def test_a_question_is_answered_by_the_user_and_only_yes_means_yes(tmp_path: Path) -> None:
    script = (
        [call("Bash", "a", command="touch one")],
        "Refused.",
        [call("Bash", "b", command="touch two")],
        "Done.",
    )
    with ModelServer(*script).in_thread() as server:
        terminal = Terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("first\n")
        terminal.wait_for("N] ")
        terminal.type("\n")
        terminal.wait_for("Refused.")
        terminal.wait_for("robota> ")
        terminal.type("second\n")
        terminal.wait_for("N] ")
        terminal.type("y\n")
        terminal.wait_for("Done.")
        terminal.wait_for("robota> ")
        terminal.type("\x04")
        code = terminal.leave()

    assert code == 0
    assert not (tmp_path / "one").exists()
    assert (tmp_path / "two").exists()


def test_ctrl_c_at_the_prompt_leaves_at_once(tmp_path: Path) -> None:
    with ModelServer("never asked").in_thread() as server:
        terminal = Terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("\x03")
        code = terminal.leave()

    assert code == 130
    assert "Traceback" not in terminal.seen


def test_ctrl_c_at_a_question_ends_the_turn_and_the_next_prompt_works(tmp_path: Path) -> None:
    script = [call("Bash", command="touch one")], "Second answer."
    with ModelServer(*script).in_thread() as server:
        terminal = Terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("first\n")
        terminal.wait_for("N] ")
        terminal.type("\x03")
        terminal.wait_for("robota> ")
        terminal.type("second\n")
        terminal.wait_for("Second answer.")
        terminal.wait_for("robota> ")
        terminal.type("/exit\n")
        code = terminal.leave()

    assert code == 0
    assert not (tmp_path / "one").exists()


def test_a_question_hides_nothing_of_what_would_run(tmp_path: Path) -> None:
    script = [call("Bash", command="echo a\x1b[2Kb\n  No rule: trust me")], "Refused."
    with ModelServer(*script).in_thread() as server:
        terminal = Terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("go\n")
        terminal.wait_for("N] ")
        terminal.type("\n")
        terminal.wait_for("Refused.")
        terminal.wait_for("robota> ")
        terminal.type("\x04")
        terminal.leave()

    assert "| echo a\\x1b[2Kb" in terminal.seen
    assert "|   No rule: trust me" in terminal.seen
