"""What somebody typed stays theirs: it is sent, or it is still there."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.terminal import Terminal, idle, leave, open_terminal, ready
from tests.support.command import model_requests

from robota.testing import Gate, Stall
from robota.testing.model_server import ModelServer

PASTED = "".join(f"line {number}\n" for number in range(20))


def prompts(server: ModelServer) -> list[str]:
    return [each.conversation.texts("user")[-1] for each in model_requests(server)]


def last_rows(terminal: Terminal, count: int) -> list[str]:
    return terminal.lines[-count:]


def test_a_second_ctrl_c_does_not_leave_when_something_was_typed_since(tmp_path: Path) -> None:
    with ModelServer("never").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("\x03")
        terminal.until("Ctrl-C again to exit")
        terminal.type("half a thought")
        terminal.until(lambda seen: "Ctrl-C again to exit" not in seen.text)
        terminal.type("\x03")
        terminal.until("Ctrl-C again to exit")
        assert last_rows(terminal, 2)[0] == ">"
        terminal.type("\x03")
        assert terminal.wait() == 130


def test_a_prompt_that_waits_comes_back_above_what_is_being_written(tmp_path: Path) -> None:
    with (
        ModelServer(["Half a sentence", Stall()], "Second.").in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("first\r")
        terminal.until("Half a sentence")
        terminal.type("look: ")
        terminal.paste(PASTED)
        terminal.type("\r")
        terminal.until("queued: look: [Pasted")
        terminal.paste(PASTED.upper())
        terminal.until("> [Pasted text #2")
        terminal.type("\x1b")
        terminal.until("> look: [Pasted text #1")
        idle(terminal)
        terminal.type("\r")
        terminal.until("Second.")
        idle(terminal)

    assert prompts(server)[-1] == f"look: {PASTED}\n{PASTED.upper()}"


def test_a_prompt_that_cannot_be_sent_stays_in_the_line(tmp_path: Path) -> None:
    with ModelServer("Seen.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("look at @notes/plan.md\r")
        terminal.until("@notes/plan.md does not exist")
        terminal.until("> look at @notes/plan.md")
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "plan.md").write_text("the plan")
        terminal.type("\x1b\r")  # closes the list of files, then sends
        terminal.type("\r")
        terminal.until("Seen.")
        idle(terminal)

    assert "the plan" in prompts(server)[0]


def test_a_session_that_is_open_elsewhere_is_refused_before_a_prompt_can_be_lost(tmp_path: Path) -> None:
    with (
        ModelServer("First.", "In a session of its own.").in_thread() as server,
        open_terminal(tmp_path, server) as first,
    ):
        ready(first)
        first.type("hello\r")
        first.until("First.")
        idle(first)
        with open_terminal(tmp_path, server, "-c", "me too") as second:
            assert second.wait() == 1
            assert "--fork-session" in second.text
            assert "me too" not in second.text
        with open_terminal(tmp_path, server) as third:
            ready(third)
            third.type("/resume\r\r")
            third.until("Which session?")
            third.type("\r")
            third.until("--fork-session")
            third.type("on\r")
            third.until("In a session of its own.")
            idle(third)
            assert leave(third) == 0
        assert leave(first) == 0

    assert prompts(server) == ["hello", "on"]


def test_a_paste_is_whole_when_its_prompt_is_brought_back_from_the_history(tmp_path: Path) -> None:
    with ModelServer("One.", "Two.", "Three.").in_thread() as server:
        with open_terminal(tmp_path, server) as terminal:
            ready(terminal)
            terminal.type("look: ")
            terminal.paste(PASTED)
            terminal.type("\r")
            terminal.until("One.")
            idle(terminal)
            terminal.type("\x1b[A\r")
            terminal.until("Two.")
            idle(terminal)
            assert leave(terminal) == 0
        with open_terminal(tmp_path, server) as terminal:
            ready(terminal)
            terminal.type("\x1b[A")
            terminal.until("line 19")
            terminal.type("\r")
            terminal.until("Three.")
            idle(terminal)

    assert [each.strip() for each in prompts(server)] == [f"look: {PASTED}".strip()] * 3


def test_a_command_of_the_users_own_is_in_sight_while_it_runs_and_esc_stops_it(tmp_path: Path) -> None:
    with ModelServer("I see.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("!\r")
        terminal.until("Type a command")
        terminal.type("echo begun; sleep 1000; echo never\r")
        terminal.until("⟳ !echo begun; sleep 1000")
        terminal.until("│ begun")
        terminal.until("Esc stops")
        terminal.type("\x1b")
        terminal.until("Interrupted by user.")
        idle(terminal)
        assert "> !echo begun; sleep 1000; echo never" in terminal.lines
        terminal.type("what happened?\r")
        terminal.until("I see.")
        said = model_requests(server)[0].conversation.texts("user")

    assert "sleep 1000" in said[0]
    assert "stopped it" in said[0]


def test_a_command_of_the_users_own_goes_on_when_a_turn_ends(tmp_path: Path) -> None:
    gate = Gate()
    (tmp_path / "go").mkdir()
    with (
        ModelServer(["Talking", gate, " at last."]).in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("hello\r")
        terminal.until("Talking")
        terminal.type("!until [ -e made ]; do sleep 0.05; done; echo was $((20+3)) made\r")
        terminal.until("⟳ !until")
        gate.open()
        terminal.until("at last.")
        terminal.until("⟳ !until")
        (tmp_path / "made").touch()
        terminal.until("was 23 made")
        idle(terminal)
        assert leave(terminal) == 0


def test_shift_tab_changes_the_mode_in_mid_turn_and_prints_nothing(tmp_path: Path) -> None:
    gate = Gate()
    with (
        ModelServer(["Talking", gate, " at last."]).in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("hello\r")
        terminal.until("Talking")
        terminal.type("\x1b[Z")
        terminal.until("Mode: acceptEdits")
        assert "queued" not in terminal.text
        gate.open()
        terminal.until("at last.")
        idle(terminal)
        assert "/mode" not in terminal.text
        assert leave(terminal) == 0
