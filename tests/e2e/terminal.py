"""The program on a pseudo-terminal, and an emulator that shows what a user would see."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyte
from pyte import modes
from tests.support.command import environment, starts_fresh
from tests.support.fork_server import Forked

from robota.testing.model_server import ModelServer

ROBOTA = (sys.executable, "-m", "robota")
PATIENCE = 60.0
"""How long a test waits for something that must come; a test that waits so long has failed."""


class Emulator(pyte.HistoryScreen):
    """A screen with its scrollback. Titles and answers of the terminal are noted, nothing is sent back."""

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows, history=100_000, ratio=0.5)
        self.titles: list[str] = []
        self.bells = 0

    def set_title(self, param: str) -> None:
        self.titles.append(param)

    def bell(self, *_: Any) -> None:
        self.bells += 1

    def rows_text(self) -> list[str]:
        """Scrollback, then screen; without trailing blanks."""
        return [self._text(line) for line in self.history.top] + [
            self.row_text(row) for row in range(self.lines)
        ]

    def row_text(self, row: int) -> str:
        return self._text(self.buffer[row])

    def _text(self, line: Any) -> str:
        """The second cell of a wide character is empty; cells that nobody wrote to are not there."""
        cells = [line.default.data] * self.columns
        for column, cell in line.items():
            if column < self.columns:
                cells[column] = cell.data
        return "".join(cells).rstrip()


class Terminal:
    """A program in a terminal; `screen` is what its user sees."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        rows: int = 30,
        columns: int = 90,
        **variables: str,
    ) -> None:
        self.rows, self.columns = rows, columns
        self.log = bytearray()
        self.screen = Screen(columns, rows)
        self.file, slave = os.openpty()
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        env = environment(**{"TERM": "xterm-256color", **variables})
        self.process: Forked | subprocess.Popen[bytes]
        if tuple(argv[: len(ROBOTA)]) == ROBOTA and not starts_fresh(variables):
            self.process = Forked(argv[len(ROBOTA) :], [slave] * 3, cwd=cwd, env=env, terminal=True)
        else:
            self.process = subprocess.Popen(argv, cwd=cwd, env=env, preexec_fn=lambda: os.login_tty(slave))
        self.pid = self.process.pid
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.file)

    # --- what a user does ----------------------------------------------------------------------------------

    def type(self, keys: str) -> None:
        data = keys.encode()
        while data:
            writable = select.select([self.file], [self.file], [], PATIENCE)
            if writable[0]:
                self.pump(0)
            if writable[1]:
                data = data[os.write(self.file, data[:1024]) :]

    def press(self, keys: str) -> None:
        """One key after the other, each when the one before was read: no burst."""
        for key in keys:
            self.type(key)
            while waiting(self.file):
                self.pump(0.005)

    def paste(self, text: str) -> None:
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    # --- what a user sees ----------------------------------------------------------------------------------

    def pump(self, wait: float = 0.02) -> bool:
        """Take what the program wrote; false when it has ended."""
        if not select.select([self.file], [], [], wait)[0]:
            return True
        try:
            data = os.read(self.file, 65536)
        except OSError:
            return False  # Linux reports the end of a pseudo-terminal as an I/O error
        self.log += data
        self.screen.feed(data)
        return bool(data)

    def catch_up(self) -> bool:
        """Take all that can be read at once; false when the program has ended."""
        while select.select([self.file], [], [], 0)[0]:
            if not self.pump(0):
                return False
        return True

    def until(self, seen: str | Callable[[Terminal], object], what: str = "") -> None:
        """Go on until that is to be seen. All that was written already is read before the first look: an old
        screen would show what is gone."""
        wanted = (lambda terminal: seen in terminal.text) if isinstance(seen, str) else seen
        deadline = time.monotonic() + PATIENCE
        alive = self.catch_up()
        while self.in_frame or not wanted(self):
            alive = alive and self.pump() and self.catch_up()
            if not alive and not wanted(self):
                raise AssertionError(f"ended without {what or seen!r}:\n{self.text}")
            if time.monotonic() > deadline:
                raise AssertionError(f"never saw {what or seen!r}:\n{self.text}")

    @property
    def in_frame(self) -> bool:
        """Whether a half-drawn screen was read; a terminal shows it when it is whole."""
        return self.log.rfind(b"\x1b[?2026h") > self.log.rfind(b"\x1b[?2026l")

    def settle(self, quiet: float = 0.15) -> None:
        """Go on until nothing more is written for a moment."""
        while True:
            before = len(self.log)
            deadline = time.monotonic() + quiet
            while (left := deadline - time.monotonic()) > 0 and self.pump(left):
                pass
            if len(self.log) == before:
                return

    def wait(self) -> int:
        """Until the program has ended; its exit code, negative for a signal."""
        deadline = time.monotonic() + PATIENCE
        while self.pump(0.05):
            assert time.monotonic() < deadline, f"still running:\n{self.text}"
        return self.process.wait()

    @property
    def lines(self) -> list[str]:
        """Scrollback and screen, without blank lines at the end."""
        return self.screen.text()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column, from 0."""
        return self.screen.emulator.cursor.y, self.screen.emulator.cursor.x


class Screen:
    """The emulator with the stream that feeds it."""

    def __init__(self, columns: int, rows: int) -> None:
        self.emulator = Emulator(columns, rows)
        self._stream = pyte.ByteStream(self.emulator)
        self._shown: list[str] | None = None

    def feed(self, data: bytes) -> None:
        self._stream.feed(data)
        self._shown = None

    def resize(self, rows: int, columns: int) -> None:
        self.emulator.resize(rows, columns)
        self._shown = None

    def text(self) -> list[str]:
        """Read anew after a change only: a test looks at the same screen many times."""
        if self._shown is None:
            self._shown = self.emulator.rows_text()
            while self._shown and not self._shown[-1]:
                self._shown.pop()
        return self._shown

    def row(self, number: int) -> str:
        return self.emulator.row_text(number)

    @property
    def pastes_bracketed(self) -> bool:
        return BRACKETED in self.emulator.mode

    @property
    def cursor_shown(self) -> bool:
        return modes.DECTCEM in self.emulator.mode


BRACKETED = 2004 << 5
"""As pyte notes the private mode 2004."""


def waiting(file: int) -> bool:
    """Whether the program has keys left to read."""
    count = struct.unpack("i", fcntl.ioctl(file, termios.TIOCOUTQ, struct.pack("i", 0)))[0]
    return bool(count)


def robota_terminal(
    cwd: Path, *arguments: str, rows: int = 30, columns: int = 90, **variables: str
) -> Terminal:
    """The real command."""
    return Terminal([*ROBOTA, *arguments], cwd=cwd, rows=rows, columns=columns, **variables)


def open_terminal(cwd: Path, server: ModelServer, *arguments: str, **options: Any) -> Terminal:
    """The real command with a scripted model."""
    options = {"ROBOTA_BASE_URL": f"{server.url}/v1", "ROBOTA_MODEL": "scripted", **options}
    return robota_terminal(cwd, *arguments, **options)


def ready(terminal: Terminal) -> None:
    """The first prompt is there."""
    terminal.until("Context:")


def idle(terminal: Terminal) -> None:
    """No turn is under way."""
    busy = ("Esc stops", "Stopping", "Waiting for you")
    terminal.until(lambda seen: not any(sign in seen.text for sign in busy), "the end of the turn")


def leave(terminal: Terminal) -> int:
    terminal.type("\x04")
    return terminal.wait()
