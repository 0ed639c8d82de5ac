"""The interface in a real terminal: what a user types and what they see."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.terminal import idle, open_terminal, ready
from tests.support.command import model_requests

from robota.testing import Gate, call
from robota.testing.model_server import ModelServer


def test_an_answer_streams_and_stays_in_the_scrollback(tmp_path: Path) -> None:
    gate = Gate()
    with (
        ModelServer(["# Title\n\nFirst ", "paragraph.\n\nSecond", gate, " one.\n"]).in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        terminal.until("Context:")
        terminal.type("hello\r")
        terminal.until("First paragraph.")
        terminal.until("Second")
        terminal.until("Esc stops")
        gate.open()
        terminal.until("Second one.")
        terminal.until(lambda seen: "Esc stops" not in seen.text)
        terminal.type("\x04")
        assert terminal.wait() == 0

    lines = terminal.lines
    assert lines.count("First paragraph.") == 1
    assert sum("Second one." in line for line in lines) == 1
    assert "Traceback" not in terminal.text


def test_text_fills_the_columns_there_are(tmp_path: Path) -> None:
    with (
        ModelServer("word " * 60).in_thread() as server,
        open_terminal(tmp_path, server, columns=120) as terminal,
    ):
        ready(terminal)
        terminal.type("hello\r")
        terminal.until("word word")
        idle(terminal)

    assert " ".join(["word"] * 24) in terminal.lines


def test_a_call_asks_and_a_letter_answers(tmp_path: Path) -> None:
    script = (
        [call("Bash", "a", command="touch one")],
        "Refused.",
        [call("Bash", "b", command="touch two")],
        "Done.",
    )
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("first\r")
        terminal.until("Allow Bash?")
        terminal.until("or the letter")
        terminal.type("\r")  # what is marked at first is no
        terminal.until("Refused.")
        idle(terminal)
        terminal.type("second\r")
        terminal.until("| touch two")
        terminal.until("or the letter")
        terminal.type("y")
        terminal.until("Done.")
        idle(terminal)
        terminal.type("\x04")
        assert terminal.wait() == 0

    assert not (tmp_path / "one").exists()
    assert (tmp_path / "two").exists()


def test_letters_typed_while_a_question_opens_do_not_answer_it(tmp_path: Path) -> None:
    gate = Gate()
    script = ["Wait. ", gate, call("Bash", command="touch one")], "Refused.", "Third."
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("first\r")
        terminal.until("Wait.")
        terminal.press("ya")
        gate.open()
        while "Allow Bash?" not in terminal.text:
            terminal.press("y")
            terminal.pump(0.05)
        terminal.press("rn")
        terminal.until("You are typing")
        terminal.until("or the letter")
        typed = next(line for line in terminal.lines if line.startswith("> ya"))
        terminal.type("n")
        terminal.until("Refused.")
        idle(terminal)
        assert terminal.lines.count(typed) == 1  # what was typed is in the line still
        terminal.type("\r")
        terminal.until("Third.")
        idle(terminal)
        terminal.type("\x04")
        assert terminal.wait() == 0
        asked = model_requests(server)[2].body["messages"][-1]["content"]

    assert not (tmp_path / "one").exists()
    assert asked == typed[2:]


def test_a_paste_is_never_an_answer(tmp_path: Path) -> None:
    script = [call("Bash", command="touch one")], "Refused."
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("first\r")
        terminal.until("or the letter")
        terminal.paste("y")
        terminal.type("yes")  # at once, as a terminal without bracketed paste sends it
        terminal.settle()
        assert "Allow Bash?" in terminal.text
        terminal.type("n")
        terminal.until("Refused.")
        idle(terminal)

    assert not (tmp_path / "one").exists()


def test_esc_stops_the_turn_and_keeps_what_was_said(tmp_path: Path) -> None:
    with (
        ModelServer(["Half a sentence", Gate(), " never."], "Second.").in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("first\r")
        terminal.until("Half a sentence")
        terminal.type("\x1b")
        idle(terminal)
        assert sum("Half a sentence" in line for line in terminal.lines) == 1
        terminal.type("second\r")
        terminal.until("Second.")
        idle(terminal)
        terminal.type("\x04")
        assert terminal.wait() == 0


@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_a_prompt_that_waits_comes_back_into_the_line_when_the_turn_is_stopped(
    tmp_path: Path, key: str
) -> None:
    with (
        ModelServer(["Half a sentence", Gate(), " never."], "Second.").in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("first\r")
        terminal.until("Half a sentence")
        terminal.type("and then this\r")
        terminal.until("queued: and then this")
        terminal.type(key)
        terminal.until("> and then this")
        idle(terminal)
        terminal.type("!\r")
        terminal.until("Second.")
        idle(terminal)
        asked = model_requests(server)[1].body["messages"][-1]["content"]

    assert asked == "and then this!"


def test_ctrl_c_stops_the_turn_and_a_second_one_leaves(tmp_path: Path) -> None:
    with (
        ModelServer(["Talking", Gate(), " never."]).in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("first\r")
        terminal.until("Talking")
        terminal.type("\x03")
        terminal.until("Ctrl-C again to exit")
        terminal.type("\x03")
        assert terminal.wait() == 130

    assert "Traceback" not in terminal.text


def test_one_prompt_waits_a_second_is_refused_and_backspace_takes_it_back(tmp_path: Path) -> None:
    gate = Gate()
    with (
        ModelServer(["Working", gate, "."], "Second.").in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("first\r")
        terminal.until("Working")
        terminal.type("next\r")
        terminal.until("queued: next")
        terminal.type("more\r")
        terminal.until("waiting already")
        assert "> more" in terminal.lines[-2]
        terminal.type("\x15\x7f")
        terminal.until(lambda seen: "queued:" not in seen.text)
        terminal.until("> next")
        terminal.type("!\r")
        terminal.until("queued: next!")
        gate.open()
        terminal.until("Second.")
        idle(terminal)
        asked = model_requests(server)[1].body["messages"][-1]["content"]

    assert asked == "next!"


def test_a_line_goes_to_the_model_at_work_before_its_next_round(tmp_path: Path) -> None:
    gate = Gate()
    script = ["Looking", gate, call("Glob", pattern="*")], "Heard you."
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("first\r")
        terminal.until("Looking")
        terminal.press("mind the gap")
        terminal.until("> mind the gap")
        terminal.type("\x13")
        terminal.until(lambda seen: seen.screen.row(seen.cursor[0]) == ">", "the line on its way")
        gate.open()
        terminal.until("Heard you.")
        idle(terminal)
        said = [str(each["content"]) for each in model_requests(server)[1].body["messages"]]

    assert any("mind the gap" in words for words in said)
    assert sum("mind the gap" in line for line in terminal.lines) == 1


def test_imports_from_outside_are_asked_about_at_the_start(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "rules.md"
    project.mkdir()
    outside.write_text("Always whisper.\n")
    project.joinpath("AGENTS.md").write_text(f"See @{outside}\n")
    with ModelServer("Hello.").in_thread() as server, open_terminal(project, server) as terminal:
        terminal.until("Read these files, too?")
        terminal.until("Up, Down and Enter")
        terminal.settle()
        terminal.type("\x1b[A")
        terminal.until("› y  Yes")
        terminal.type("\r")
        terminal.until(lambda seen: "Up, Down and Enter" not in seen.text)
        terminal.type("hi\r")
        terminal.until("Hello.")
        idle(terminal)
        assert "Always whisper." in str(model_requests(server)[0].body["messages"][0])


def test_a_long_command_is_asked_about_whole_or_with_both_its_ends(tmp_path: Path) -> None:
    long = "echo start; " + "echo pad; " * 40 + "echo the-very-end"
    longest = "\n".join(f"echo line {number}" for number in range(1, 201))
    script = ([call("Bash", "a", command=long)], "One.", [call("Bash", "b", command=longest)], "Two.")
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("first\r")
        terminal.until("or the letter")
        asked = terminal.text
        terminal.type("n")
        terminal.until("One.")
        idle(terminal)
        terminal.type("second\r")
        terminal.until("echo line 200")
        terminal.until("or the letter")
        cut = terminal.text
        terminal.type("\x05")
        terminal.until("echo line 100")

    assert "| echo start; echo pad;" in asked
    assert "the-very-end" in asked
    assert "| echo line 1\n" in cut
    assert "more lines" in cut
    assert "echo line 100" not in cut


def test_a_single_word_that_is_nearly_a_command_is_not_sent(tmp_path: Path) -> None:
    with (
        ModelServer("To a path.", "To a word.").in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("/hepl\r")
        terminal.until("There is no command /hepl: did you mean /help?")
        assert terminal.lines[-2] == "> /hepl"
        terminal.type("\x15/nothing-like-it\r")
        terminal.until("There is no command /nothing-like-it: /help lists them.")
        terminal.type("\x15/hepl me\r")
        terminal.until("To a path.")
        idle(terminal)
        terminal.type(" /hepl\r")
        terminal.until("To a word.")
        requests = model_requests(server)

    assert [each.body["messages"][-1]["content"] for each in requests] == ["/hepl me", " /hepl"]


def test_a_summary_is_told_once(tmp_path: Path) -> None:
    with (
        ModelServer("An answer.", "A summary of it all.").in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("hello\r")
        terminal.until("An answer.")
        idle(terminal)
        terminal.type("/compact\r")
        terminal.until("Context compacted")
        idle(terminal)

    assert "was summarised" not in terminal.text
