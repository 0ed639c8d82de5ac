"""Writing a prompt in the terminal: completion, pastes, history, editors, images."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

import pytest
from tests.e2e.terminal import Terminal, idle, leave, open_terminal, ready
from tests.support.command import model_requests

from robota.testing import Gate, call
from robota.testing.model_server import ModelServer


def last_prompt(server: ModelServer) -> str:
    return str(model_requests(server)[-1].body["messages"][-1]["content"])


def typed(terminal: Terminal) -> str:
    """The line that the caret is in."""
    return terminal.screen.row(terminal.cursor[0])


def test_the_palette_finds_a_command_by_some_of_its_letters(tmp_path: Path) -> None:
    with ModelServer("never").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.press("/prms")
        terminal.until(lambda seen: typed(seen) == "> /prms" and "/permissions" in seen.text)
        assert "/compact" not in terminal.text
        terminal.type("\t")
        terminal.until("> /permissions")
        terminal.type("\r\r")
        terminal.until("default")
        assert leave(terminal) == 0


def test_enter_takes_the_first_of_the_palette(tmp_path: Path) -> None:
    with ModelServer("never").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.press("/perm")
        terminal.until(lambda seen: typed(seen) == "> /perm" and "/permissions" in seen.text)
        terminal.type("\r")
        terminal.until("Permission mode: default")
        ready(terminal)
        terminal.press("/renam")
        terminal.until(lambda seen: typed(seen) == "> /renam" and "/rename" in seen.text)
        terminal.type("\r")  # it needs a name, so it is not run
        terminal.until(lambda seen: typed(seen) == "> /rename")
        terminal.type("pears\r")
        terminal.until('Session renamed to "pears".')
        assert leave(terminal) == 0
        assert not model_requests(server)


def test_a_subcommand_is_offered_behind_its_command(tmp_path: Path) -> None:
    with ModelServer("never").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.press("/mode acc")
        terminal.until(lambda seen: typed(seen) == "> /mode acc" and "acceptEdits" in seen.text)
        terminal.type("\t\r\r")
        terminal.until("Mode: acceptEdits")
        assert leave(terminal) == 0


def test_tab_and_enter_right_behind_a_command_complete_and_send_it(tmp_path: Path) -> None:
    with ModelServer("never").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("/mode acc\t\r")
        terminal.until("Mode: acceptEdits")
        assert leave(terminal) == 0


def test_a_file_is_found_behind_an_at_sign_and_goes_along(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "widget_factory.py").write_text("SECRET_OF_THE_FACTORY = 1\n")
    (tmp_path / "other.txt").write_text("other")
    with ModelServer("Seen.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.press("look at @wfac")
        terminal.until(lambda seen: typed(seen) == "> look at @wfac" and "src/widget_factory.py" in seen.text)
        terminal.type("\t\r")
        terminal.until("> look at @src/widget_factory.py")
        terminal.type("\r")
        terminal.until("Seen.")
        idle(terminal)

    assert "SECRET_OF_THE_FACTORY" in last_prompt(server)


def test_a_file_with_brackets_in_its_name_goes_along(tmp_path: Path) -> None:
    """As routes of web frameworks have them."""
    (tmp_path / "app" / "[id]").mkdir(parents=True)
    (tmp_path / "app" / "[id]" / "page.tsx").write_text("THE_PAGE_OF_ONE")
    with ModelServer("Seen.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.press("look at @page")
        terminal.until(lambda seen: typed(seen) == "> look at @page" and "[id]/page.tsx" in seen.text)
        terminal.type("\t\r")
        terminal.until('> look at @"app/[id]/page.tsx"')
        terminal.type("\r")
        terminal.until("Seen.")
        idle(terminal)

    assert "THE_PAGE_OF_ONE" in last_prompt(server)


def test_a_shell_line_runs_in_the_session(tmp_path: Path) -> None:
    with ModelServer("I see it.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("!echo a$((20+3))b > made; cat made\r")
        terminal.until("a23b")
        idle(terminal)
        terminal.type("what was it?\r")
        terminal.until("I see it.")
        idle(terminal)
        said = [str(each["content"]) for each in model_requests(server)[0].body["messages"]]

        terminal.type("/rewind\r")
        terminal.until(
            lambda seen: re.search(r"what was it\?  \d\d:\d\d", seen.text), "the prompts to go back to"
        )
        shown = terminal.text
        terminal.type("\x1b")
        terminal.until(lambda seen: "Esc closes" not in seen.text)
        assert leave(terminal) == 0

    assert (tmp_path / "made").read_text() == "a23b\n"
    assert "<command>" not in shown
    assert shown.count("> !echo") == 1
    with ModelServer("never").in_thread() as server, open_terminal(tmp_path, server, "-c") as terminal:
        terminal.until("I see it.", "the recap")
        ready(terminal)
        assert "> !echo" in terminal.text
        assert "<command>" not in terminal.text
        assert leave(terminal) == 0
    assert any("cat made" in words and "a23b" in words for words in said)


def test_several_lines_are_one_prompt(tmp_path: Path) -> None:
    with ModelServer("Yes.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("one\n")  # Ctrl-J
        terminal.type("two")
        terminal.type("\x1b\r")  # Alt-Enter
        terminal.type("three")
        terminal.until("three")
        terminal.type("\r")
        terminal.until("Yes.")
        idle(terminal)

    assert last_prompt(server) == "one\ntwo\nthree"


def test_a_short_paste_is_text_and_its_lines_send_nothing(tmp_path: Path) -> None:
    with ModelServer("Yes.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.paste("first\rsecond\r\nthird")
        terminal.until("third")
        terminal.type("\r")
        terminal.until("Yes.")
        idle(terminal)

    assert last_prompt(server) == "first\nsecond\nthird"


def test_bytes_that_are_no_text_are_sent_as_signs_for_them(tmp_path: Path) -> None:
    with ModelServer("Read.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        os.write(terminal.file, b"caf\xe9 \x80 \xed\x95\x9c")
        terminal.until("한")
        terminal.type("\r")
        terminal.until("Read.")
        idle(terminal)
        assert leave(terminal) == 0

    assert last_prompt(server) == "caf\ufffd \ufffd 한"


def test_a_paste_that_would_turn_text_around_shows_that_it_does(tmp_path: Path) -> None:
    text = "rm \u202egpj.a\u202c b"
    with ModelServer("Ok.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.paste(text)
        terminal.until("rm <202e>gpj.a<202c> b")
        terminal.type("\r")
        terminal.until("Ok.")
        assert leave(terminal) == 0

    assert last_prompt(server) == text


def test_five_megabytes_are_pasted_folded_and_sent_whole(tmp_path: Path) -> None:
    text = "".join(f"line {number:06}\n" for number in range(440_000))
    assert len(text) > 5_000_000
    with (
        ModelServer("Read it.").in_thread() as server,
        open_terminal(tmp_path, server, "--context-window", "20000000") as terminal,
    ):
        ready(terminal)
        terminal.type("look: ")
        terminal.paste(text)
        terminal.until("> look: [Pasted text #1 +440001 lines]")
        terminal.type("\r")
        terminal.until("Read it.")
        idle(terminal)

    assert last_prompt(server) == f"look: {text}"


@pytest.mark.parametrize("key", ["\x7f", "\x1b", "\x13"], ids=["backspace", "escape", "steer"])
def test_a_paste_in_a_prompt_that_waits_is_not_lost_when_it_comes_back(tmp_path: Path, key: str) -> None:
    text = "".join(f"line {number}\n" for number in range(20))
    gate = Gate()
    script = ["Working", gate, call("Glob", pattern="*")], "Second.", "Third."
    with ModelServer(*script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("first\r")
        terminal.until("Working")
        terminal.type("look: ")
        terminal.paste(text)
        terminal.until("> look: [Pasted text #1 +21 lines]")
        terminal.type("\r")
        terminal.until("queued: look: [Pasted")
        terminal.type(key)
        terminal.until(lambda seen: "queued:" not in seen.text)
        gate.open()
        idle(terminal)
        if key != "\x13":
            terminal.until("> look: [Pasted text #1 +21 lines]")
            terminal.type("\r")
            terminal.until("Third." if key == "\x7f" else "Second.")
            idle(terminal)
        said = [str(each["content"]) for each in model_requests(server)[-1].body["messages"]]

    assert any(f"look: {text}".strip() in words for words in said)


def test_a_paste_without_marks_does_not_send_at_its_line_breaks(tmp_path: Path) -> None:
    with ModelServer("Yes.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("one\rtwo\rthree")
        terminal.until("three")
        terminal.type("\r")
        terminal.until("Yes.")
        idle(terminal)

    assert last_prompt(server) == "one\ntwo\nthree"


def test_prompts_come_back_by_the_arrow_and_by_search_in_the_next_session(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ModelServer("One.", "Two.", "Three.").in_thread() as server:
        with open_terminal(tmp_path, server, ROBOTA_HOME=str(home)) as terminal:
            ready(terminal)
            terminal.type("find the needle\r")
            terminal.until("One.")
            idle(terminal)
            terminal.type("something else\r")
            terminal.until("Two.")
            idle(terminal)
            assert leave(terminal) == 0
        with open_terminal(tmp_path, server, ROBOTA_HOME=str(home)) as terminal:
            ready(terminal)
            terminal.type("\x1b[A")
            terminal.until("> something else")
            terminal.type("\x03")
            terminal.until("Ctrl-C again")
            terminal.type("\x12needl")
            terminal.until("> find the needle")
            assert "Search back: needl" in terminal.text
            terminal.type("\r")
            terminal.type("\r")
            terminal.until("Three.")
            idle(terminal)
            assert leave(terminal) == 0

    assert last_prompt(server) == "find the needle"
    [kept] = (home / "prompts").iterdir()
    assert json.loads(kept.read_text().splitlines()[0]) == "find the needle"
    assert kept.stat().st_mode & 0o077 == 0


def test_the_prompt_is_written_on_in_an_editor(tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nprintf " and more" >> "$1"\n')
    editor.chmod(0o755)
    with (
        ModelServer("Yes.").in_thread() as server,
        open_terminal(tmp_path, server, EDITOR=str(editor)) as terminal,
    ):
        ready(terminal)
        terminal.type("begin\x07")
        terminal.until("> begin and more")
        terminal.type("\r")
        terminal.until("Yes.")
        idle(terminal)

    assert last_prompt(server) == "begin and more"


@pytest.mark.parametrize(
    ("editor", "said"),
    [
        ("false", "The editor 'false' ended with 1"),
        ('"vi', "cannot be started (No closing quotation)"),
        ("/no/such/editor", "cannot be started (No such file or directory)"),
        ("rm", "cannot be used (No such file or directory)"),
        ("sh -c 'printf \\\\377 > $0'", "is not UTF-8 text"),
    ],
)
def test_an_editor_that_fails_leaves_the_prompt_as_it_was(tmp_path: Path, editor: str, said: str) -> None:
    with (
        ModelServer("Yes.").in_thread() as server,
        open_terminal(tmp_path, server, VISUAL=editor, columns=150) as terminal,
    ):
        ready(terminal)
        terminal.type("begin\x07")
        terminal.until(said)
        terminal.until("> begin")
        terminal.type(" again\r")
        terminal.until("Yes.")
        assert terminal.text.count("✗") == 1

    assert last_prompt(server) == "begin again"


def test_vim_keys_are_there_by_setting(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.json").write_text('{"editorMode": "vim"}')
    with (
        ModelServer("Yes.").in_thread() as server,
        open_terminal(tmp_path, server, ROBOTA_HOME=str(home)) as terminal,
    ):
        ready(terminal)
        terminal.type("one two")
        terminal.until("> one two")
        terminal.type("\x1b")
        terminal.until(lambda seen: seen.cursor[1] == len("> one tw"), "the caret on the last letter")
        terminal.press("0dw")
        terminal.until(lambda seen: "> two" in seen.text)
        terminal.type("\r")
        terminal.until("Yes.")
        idle(terminal)

    assert last_prompt(server) == "two"


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def seeing(server: ModelServer) -> dict[str, str]:
    """Variables for a model that takes images."""
    return {
        "ROBOTA_PROVIDER": "anthropic",
        "ROBOTA_BASE_URL": server.base_urls["messages"],
        "ANTHROPIC_API_KEY": "not-a-key",
    }


def test_an_image_that_is_dropped_goes_along(tmp_path: Path) -> None:
    image = tmp_path / "a picture.png"
    image.write_bytes(PNG)
    with (
        ModelServer("Seen.").in_thread() as server,
        open_terminal(tmp_path, server, **seeing(server)) as terminal,
    ):
        ready(terminal)
        terminal.type("what is ")
        terminal.paste(f"'{image}'")
        terminal.until("> what is [Image #1]")
        terminal.type("\r")
        terminal.until("Seen.")
        idle(terminal)
        content = model_requests(server)[-1].body["messages"][-1]["content"]

    assert base64.b64encode(PNG).decode() in json.dumps(content)


def test_an_image_comes_from_the_clipboard(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "clip.png").write_bytes(PNG)
    paster = programs / "wl-paste"
    paster.write_text(f"#!/bin/sh\nexec cat '{tmp_path}/clip.png'\n")
    paster.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    with (
        ModelServer("Seen.").in_thread() as server,
        open_terminal(tmp_path, server, PATH=path, **seeing(server)) as terminal,
    ):
        ready(terminal)
        terminal.type("\x16")
        terminal.until("> [Image #1]")
        terminal.type(" ?\r")
        terminal.until("Seen.")
        idle(terminal)
        content = model_requests(server)[-1].body["messages"][-1]["content"]

    assert base64.b64encode(PNG).decode() in json.dumps(content)


def test_keys_are_what_the_settings_say(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.json").write_text('{"keybindings": {"mode": "f2", "unknown": "f3", "steer": "no-key"}}')
    with (
        ModelServer("never").in_thread() as server,
        open_terminal(tmp_path, server, ROBOTA_HOME=str(home)) as terminal,
    ):
        ready(terminal)
        terminal.until("keybindings: unknown, steer")
        terminal.type("\x1bOQ")
        terminal.until("Mode: acceptEdits")
        assert leave(terminal) == 0


def test_the_last_answer_is_copied_to_the_clipboard_of_the_terminal(tmp_path: Path) -> None:
    with ModelServer("Copy me: 漢字.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("hello\r")
        terminal.until("Copy me")
        idle(terminal)
        terminal.type("/copy\r\r")
        terminal.until("Copied")
        idle(terminal)
        sent = re.search(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", bytes(terminal.log))

    assert sent is not None
    assert base64.b64decode(sent[1]).decode() == "Copy me: 漢字."


def test_shift_tab_goes_through_the_modes(tmp_path: Path) -> None:
    with ModelServer("never").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("\x1b[Z")
        terminal.until("Mode: acceptEdits")
        terminal.type("\x1b[Z")
        terminal.until("Mode: plan")
        terminal.type("\x1b[Z")
        terminal.until(lambda seen: "Mode:" not in seen.text.splitlines()[-1])
        assert leave(terminal) == 0


def test_typing_goes_on_while_an_answer_streams(tmp_path: Path) -> None:
    gate = Gate()
    words = [f"word{number} " for number in range(300)]
    with (
        ModelServer([*words, gate, "end."], "Second.").in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("go\r")
        terminal.until("word299")
        terminal.press("漢字 and 한글")
        terminal.until("> 漢字 and 한글")
        gate.open()
        terminal.until("end.")
        idle(terminal)
        terminal.type("\r")
        terminal.until("Second.")
        idle(terminal)

    assert last_prompt(server) == "漢字 and 한글"
