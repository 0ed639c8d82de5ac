from __future__ import annotations

from pathlib import Path

from tests.support.command import model_requests
from tests.support.terminal import Terminal

from robota.testing import call
from robota.testing.model_server import ModelServer


def open_terminal(cwd: Path, server: ModelServer) -> Terminal:
    return Terminal(cwd, ROBOTA_BASE_URL=f"{server.url}/v1", ROBOTA_MODEL="scripted")


def test_several_prompts_share_one_conversation(tmp_path: Path) -> None:
    with ModelServer("First answer.", "Second answer.").in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("one\n")
        terminal.wait_for("First answer.")
        terminal.wait_for("robota> ")
        terminal.type("two\n")
        terminal.wait_for("Second answer.")
        terminal.wait_for("robota> ")
        terminal.type("/exit\n")
        code = terminal.leave()
        roles = [message["role"] for message in model_requests(server)[1].body["messages"]]

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
        terminal = open_terminal(tmp_path, server)
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
        terminal = open_terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("\x03")
        code = terminal.leave()

    assert code == 130
    assert "Traceback" not in terminal.seen


def test_ctrl_c_at_a_question_ends_the_turn_and_the_next_prompt_works(tmp_path: Path) -> None:
    script = [call("Bash", command="touch one")], "Second answer."
    with ModelServer(*script).in_thread() as server:
        terminal = open_terminal(tmp_path, server)
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
        terminal = open_terminal(tmp_path, server)
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
