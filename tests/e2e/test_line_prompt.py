from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import model_requests, robota
from tests.support.terminal import Terminal

from robota.testing import Gate, HttpError, call
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
        terminal.wait_for("w] ")
        terminal.type("\n")
        terminal.wait_for("Refused.")
        terminal.wait_for("robota> ")
        terminal.type("second\n")
        terminal.wait_for("w] ")
        terminal.type("y\n")
        terminal.wait_for("Done.")
        terminal.wait_for("robota> ")
        terminal.type("\x04")
        code = terminal.leave()

    assert code == 0
    assert not (tmp_path / "one").exists()
    assert (tmp_path / "two").exists()


def test_a_yes_for_the_project_is_asked_once_and_kept_in_its_settings(tmp_path: Path) -> None:
    script = [call("Bash", "a", command="touch one")], "1.", [call("Bash", "b", command="touch one")], "2."
    with ModelServer(*script).in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("first\n")
        terminal.wait_for("w] ")
        terminal.type("p\n")
        terminal.wait_for("1.")
        terminal.wait_for("robota> ")
        terminal.type("second\n")
        terminal.wait_for("2.")
        terminal.wait_for("robota> ")
        terminal.type("/exit\n")
        assert terminal.leave() == 0

    saved = json.loads((tmp_path / ".robota" / "settings.local.json").read_text())
    assert saved == {"permissions": {"allow": ["Bash(touch one)"]}}


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
        terminal.wait_for("w] ")
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
        terminal.wait_for("w] ")
        terminal.type("\n")
        terminal.wait_for("Refused.")
        terminal.wait_for("robota> ")
        terminal.type("\x04")
        terminal.leave()

    assert "| echo a\\x1b[2Kb" in terminal.seen
    assert "|   No rule: trust me" in terminal.seen


def test_a_question_is_answered_only_by_what_is_typed_after_it_appeared(tmp_path: Path) -> None:
    gate = Gate()
    script = (
        ["Wait. ", gate, call("Bash", command="touch one")],
        "Refused.",
        "Third answer.",
        "Fourth answer.",
    )
    with ModelServer(*script).in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("first\n")
        terminal.wait_for("Wait.")
        terminal.type("y\nyes\nand th")
        terminal.wait_for("and th")  # it was echoed, so the terminal has it
        gate.open()
        terminal.wait_for("w] ")
        terminal.type("\n")
        terminal.wait_for("Refused.")
        terminal.wait_for("robota> y")
        terminal.wait_for("Third answer.")
        terminal.wait_for("robota> yes")
        terminal.wait_for("Fourth answer.")
        terminal.wait_for("robota> and th")
        terminal.type("\x03")
        code = terminal.leave()
        asked = [request.body["messages"][-1]["content"] for request in model_requests(server)[2:]]

    assert code == 130
    assert not (tmp_path / "one").exists()
    assert asked == ["y", "yes"]


def test_half_a_line_that_was_typed_ahead_is_the_beginning_of_the_next_prompt(tmp_path: Path) -> None:
    gate = Gate()
    script = ["Wait. ", gate, call("Bash", command="touch one")], "Done.", "Third answer."
    with ModelServer(*script).in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("first\n")
        terminal.wait_for("Wait.")
        terminal.type("what about caf\u00e9 ")
        terminal.wait_for("caf\u00e9 ")
        gate.open()
        terminal.wait_for("w] ")
        terminal.type("y\n")
        terminal.wait_for("Done.")
        terminal.wait_for("robota> what about caf\u00e9 ")
        terminal.type("au lait?\n")
        terminal.wait_for("Third answer.")
        terminal.wait_for("robota> ")
        terminal.type("\x04")
        code = terminal.leave()
        asked = model_requests(server)[2].body["messages"][-1]["content"]

    assert code == 0
    assert (tmp_path / "one").exists()
    assert asked == "what about caf\u00e9 au lait?"


HIDDEN = "a\x1b[2K\x9b1A\x07\u202eb\u2066c\x00d"


def test_nothing_on_the_screen_moves_the_cursor_or_turns_text_around(tmp_path: Path) -> None:
    script = (
        [f"Text {HIDDEN} ", call("Bash", command=f"echo {HIDDEN}", description=HIDDEN)],
        [call("Read", file_path=HIDDEN)],
        [call(f"No{HIDDEN}")],
        HttpError(400, f"refused {HIDDEN}"),
    )
    with ModelServer(*script, strict=False).in_thread() as server:
        terminal = open_terminal(tmp_path, server)
        terminal.wait_for("robota> ")
        terminal.type("go\n")
        for _ in range(2):
            terminal.wait_for("w] ")
            terminal.type("\n")
        terminal.wait_for("refused")
        terminal.wait_for("robota> ")
        terminal.type("\x04")
        terminal.leave()

    shown = terminal.seen.replace("\r\n", "\n").replace("\n", "").replace("\t", "")
    odd = {letter for letter in shown if not letter.isprintable() or "\u202a" <= letter <= "\u2069"}
    assert odd == set(), sorted(map(ascii, odd))
    assert "| echo a\\x1b[2K\\x9b1A\\x07\\u202eb" in terminal.seen


def test_words_of_the_command_line_are_shown_without_control(tmp_path: Path) -> None:
    done = robota("-p", "x", f"--{HIDDEN[:4]}", "--resume", "\u202eabc", cwd=tmp_path)

    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert "\u202e" not in done.stderr
