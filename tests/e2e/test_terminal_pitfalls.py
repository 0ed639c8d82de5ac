"""What breaks terminals: resizing, foreign bytes, control characters, signals, tiny screens."""

from __future__ import annotations

import os
import re
import signal
import termios
from collections import Counter
from pathlib import Path

import pytest
from tests.e2e.terminal import Screen, Terminal, idle, leave, open_terminal, ready
from tests.support.command import model_requests

from robota.testing import Gate, HttpError, call
from robota.testing.model_server import ModelServer

BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"


def marks(terminal: Terminal) -> Counter[str]:
    return Counter(re.findall(r"mark\d+", terminal.text))


def document(count: int) -> str:
    """Paragraphs, lists and code, each line with a mark of its own."""
    parts: list[str] = []
    for number in range(0, count, 4):
        parts += [
            f"Paragraph with mark{number} and **bold** words to wrap around the end of a line, 漢字 too.\n",
            f"- item mark{number + 1}\n- item mark{number + 2}\n",
            f"```python\nvalue = 'mark{number + 3}'\n```\n",
        ]
    return "\n".join(parts)


def in_pieces(text: str, size: int = 7) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def test_nothing_is_lost_or_repeated_while_somebody_types(tmp_path: Path) -> None:
    with (
        ModelServer([*in_pieces(document(200)), "\nThe end."]).in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("go\r")
        terminal.until("mark1")
        terminal.press("typing all the while")
        terminal.until("The end.")
        idle(terminal)
        found = marks(terminal)
        terminal.type("\x15")
        assert leave(terminal) == 0

    assert found == Counter({f"mark{number}": 1 for number in range(200)})


def test_no_write_erases_without_drawing_again(tmp_path: Path) -> None:
    """No flicker: between two writes a terminal may paint, so that each holds whole frames."""
    with (
        ModelServer([*in_pieces(document(80)), "\nThe end."]).in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("go\r")
        terminal.until("The end.")
        idle(terminal)
        log = bytes(terminal.log)

    frames = [part.partition(END)[0] for part in log.split(BEGIN)[1:]]
    erasing = [frame for frame in frames if b"\x1b[J" in frame]
    assert erasing
    assert all(b";1m>" in frame.partition(b"\x1b[J")[2] for frame in erasing)
    outside = b"".join(part.partition(END)[2] for part in log.split(BEGIN)[1:])
    assert b"\x1b[J" not in outside


def test_the_caret_stands_behind_wide_letters_in_every_frame(tmp_path: Path) -> None:
    gates = [Gate() for _ in range(8)]
    script = ["Begin. ", *(piece for at, gate in enumerate(gates) for piece in (gate, f"mark{at} 漢字\n\n"))]
    with ModelServer(script).in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("go\r")
        terminal.until("Begin.")
        terminal.press("日本語")
        terminal.until("> 日本語")
        started = len(terminal.log)
        for at, gate in enumerate(gates):
            gate.open()
            terminal.until(f"mark{at} 漢字")
        idle(terminal)
        log = bytes(terminal.log)

    replay = Screen(terminal.columns, terminal.rows)
    replay.feed(log[:started])
    frames = log[started:].split(END)[:-1]
    for frame in frames:
        replay.feed(frame + END)
        assert replay.row(replay.emulator.cursor.y) == "> 日本語"
        assert replay.emulator.cursor.x == 2 + 6
        assert not replay.emulator.cursor.hidden
    assert len(frames) >= len(gates)


def test_a_resize_loses_nothing(tmp_path: Path) -> None:
    gate = Gate()
    with (
        ModelServer([*in_pieces(document(100)), gate, "\nThe end."]).in_thread() as server,
        open_terminal(tmp_path, server) as terminal,
    ):
        ready(terminal)
        terminal.type("go\r")
        terminal.until("mark99")
        terminal.settle()
        for columns in (80, 100, 95, 120):
            terminal.resize(30, columns)
            terminal.pump(0.05)
        gate.open()
        terminal.until("The end.")
        idle(terminal)
        terminal.press("still here")
        terminal.until("> still here")
        found = marks(terminal)

    assert set(found) == {f"mark{number}" for number in range(100)}


def test_a_signal_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        with (
            ModelServer(["Talking", Gate(), "never"]).in_thread() as server,
            open_terminal(tmp_path, server) as terminal,
        ):
            before = termios.tcgetattr(terminal.file)[3]
            ready(terminal)
            assert not termios.tcgetattr(terminal.file)[3] & termios.ICANON
            terminal.type("go\r")
            terminal.until("Talking")
            os.kill(terminal.pid, number)
            slave_flags = None
            while terminal.pump(0.05):
                slave_flags = termios.tcgetattr(terminal.file)[3]
            assert terminal.wait() == 128 + number
            assert slave_flags is None or slave_flags & termios.ICANON == before & termios.ICANON
            assert not terminal.screen.pastes_bracketed
            assert terminal.screen.cursor_shown
            assert "Traceback" not in terminal.text


HIDDEN = "a\x1b[2Kb\x9b1Ac\x07\u202ed\u2066e\x1b]0;evil\x07f"


def test_control_characters_do_nothing_wherever_they_come_from(tmp_path: Path) -> None:
    script = (
        [f"Text {HIDDEN} ", call("Bash", command=f"echo {HIDDEN}", description=HIDDEN)],
        [call("Read", file_path=HIDDEN)],
        [call(f"No{HIDDEN}")],
        HttpError(400, f"refused {HIDDEN}"),
    )
    with (
        ModelServer(*script, strict=False).in_thread() as server,
        open_terminal(tmp_path, server, "--name", f"name {HIDDEN}") as terminal,
    ):
        ready(terminal)
        terminal.type("go\r")
        terminal.until("Allow Bash?")
        terminal.until("or the letter")
        assert "\\x1b[2K" in terminal.text
        terminal.type("n")
        terminal.until("refused")
        idle(terminal)
        log = terminal.log.decode(errors="replace")
        assert leave(terminal) == 0

    assert all("evil" not in shown or shown.startswith("Robota") for shown in terminal.screen.emulator.titles)
    assert terminal.screen.emulator.bells == 0
    assert "\x1b[2K" not in log
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x80-\x9f]", log)
    titles = re.findall("\x1b]0;([^\x07]*)\x07", log)
    assert all("\x1b" not in title for title in titles)


def test_foreign_writes_do_not_reach_the_screen(tmp_path: Path) -> None:
    home = tmp_path / "home"
    script = [call("Bash", command="echo on stderr >&2; echo straight > /proc/self/fd/2")], "Done."
    allowed = ("--permission-mode", "bypassPermissions")
    with (
        ModelServer(*script).in_thread() as server,
        open_terminal(tmp_path, server, *allowed, ROBOTA_HOME=str(home)) as terminal,
    ):
        ready(terminal)
        log = home / "logs" / "terminal.log"
        assert os.readlink(f"/proc/{terminal.pid}/fd/2") == str(log)
        terminal.type("go\r")
        terminal.until("Done.")
        idle(terminal)
        terminal.press("where it should be")
        terminal.until("> where it should be")
        terminal.type("\x15")
        assert leave(terminal) == 0


def test_nothing_happens_while_nobody_does_anything(tmp_path: Path) -> None:
    with ModelServer("Hello.").in_thread() as server, open_terminal(tmp_path, server) as terminal:
        ready(terminal)
        terminal.type("hi\r")
        terminal.until("Hello.")
        idle(terminal)
        ran = -1
        while ran != switches(terminal.pid):  # what the turn left behind is put away
            ran = switches(terminal.pid)
            terminal.settle(2.0)
        before = len(terminal.log)
        terminal.pump(3.0)
        assert len(terminal.log) == before
        assert switches(terminal.pid) == ran
        assert leave(terminal) == 0


def switches(pid: int) -> int:
    """How often the process was awake."""
    text = Path(f"/proc/{pid}/status").read_text()
    return sum(int(count) for count in re.findall(r"ctxt_switches:\t(\d+)", text))


@pytest.mark.parametrize(("rows", "columns"), [(1, 80), (3, 20), (24, 1), (24, 10), (3, 3)])
def test_on_a_tiny_screen_it_is_lines(tmp_path: Path, rows: int, columns: int) -> None:
    with (
        ModelServer("Hello.").in_thread() as server,
        open_terminal(tmp_path, server, rows=rows, columns=columns) as terminal,
    ):
        terminal.until(lambda seen: b"> " in seen.log)
        terminal.type("hi\n")
        terminal.until(lambda seen: len(model_requests(server)) == 1)
        assert BEGIN not in terminal.log
        terminal.until(lambda seen: seen.log.count(b"> ") > 1)
        assert leave(terminal) == 0


def answer_is_marked(terminal: Terminal) -> bool:
    """Whether keys are answers: where nothing else fits on the screen, the marked answer says so."""
    rows = terminal.screen.emulator.buffer.values()
    return any(cell.reverse for row in rows for cell in row.values())


@pytest.mark.parametrize(("rows", "columns"), [(4, 20), (6, 24), (5, 200), (60, 20)])
def test_small_screens_show_the_interface(tmp_path: Path, rows: int, columns: int) -> None:
    script = [call("Bash", command="touch one")], "Done."
    with (
        ModelServer(*script).in_thread() as server,
        open_terminal(tmp_path, server, rows=rows, columns=columns) as terminal,
    ):
        terminal.until(lambda seen: ">" in seen.text)
        terminal.type("go\r")
        terminal.until("Bash?")
        terminal.until(answer_is_marked, "an armed dialog")
        terminal.type("y")
        terminal.until("Done.")
        terminal.settle()
        assert leave(terminal) == 0

    assert (tmp_path / "one").exists()
    assert "too small" not in terminal.text


def test_no_color_means_none(tmp_path: Path) -> None:
    with (
        ModelServer("# Title\n\n`code` and **bold**\n\n```python\nx = 1\n```\n").in_thread() as server,
        open_terminal(tmp_path, server, NO_COLOR="1") as terminal,
    ):
        ready(terminal)
        terminal.type("go\r")
        terminal.until("x = 1")
        idle(terminal)
        log = terminal.log.decode()

    coloured = re.findall(r"\x1b\[([0-9;]*)m", log)
    numbers = {int(number) for sequence in coloured for number in sequence.split(";") if number}
    assert numbers <= {0, 1, 2, 3, 4, 7, 9, 22, 23, 24, 27, 29}
