"""Lines from a terminal that shows only lines, or from a pipe, without holding up anything else.

A terminal is read letter by letter while somebody is asked for a line, and left to itself in between: what is
typed then is echoed by the terminal and stays for the next prompt. A question is answered only by what was
typed after it appeared.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import termios
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from robota.tui.line_editor import DrawnLine, Key, LineEditor, split_keys, split_lines

PASTE_SECONDS = 0.1
"""A paste that is still arriving is not silent for so long."""
TYPING_SECONDS = 0.5
"""Nor is somebody who is typing."""
CHUNK = 1 << 16
WIDTH = 80
"""Of a terminal that does not say."""
LEAST_WIDTH = 20
_LOCAL, _CHARACTERS = 3, 6
"""Places in what `tcgetattr` gives."""


class _Reading:
    """Somebody is asked for a line."""

    def __init__(self, prompt: str, editor: LineEditor) -> None:
        self.prompt = prompt
        self.editor = editor
        self.line: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()


class LineInput:
    """The keyboard of one terminal. `complete` is given the line when Tab is pressed and returns another."""

    def __init__(self, complete: Callable[[str], str]) -> None:
        self._complete = complete
        self._file = sys.stdin.fileno()
        self._screen = find_screen()
        self._before = _terminal_state(self._file)
        """How the terminal was; `None` for a pipe, and for a window of an editor that shows the line itself:
        then lines come as they are."""
        self._decode = codecs.getincrementaldecoder(sys.stdin.encoding or "utf-8")("replace").decode
        self._partial = ""
        """The beginning of a key or of a line."""
        self._keys: deque[Key] = deque()
        """Pressed, and not used yet."""
        self._ended = False
        self._listeners = 0
        self._readings: list[_Reading] = []
        """The last one gets the keys."""
        self._overhear: Callable[[str], bool] | None = None
        """Gets the lines that are typed while nobody is asked for one; false if it wants none of it."""
        self._drawn = DrawnLine()
        self._heard = asyncio.Event()

    @property
    def is_asking(self) -> bool:
        return bool(self._readings)

    @property
    def is_typed(self) -> bool:
        """Whether somebody sits at it."""
        return self._screen is not None

    async def read(self, prompt: str, *, text: str = "", history: Sequence[str] = ()) -> str | None:
        """The next line, `None` at the end of the input."""
        reading = _Reading(prompt, LineEditor(text, history))
        with self._listening():
            if self._readings:
                self._write(self._drawn.leave())
            self._readings.append(reading)
            try:
                self._use_keys()
                return await reading.line
            finally:
                self._readings.remove(reading)
                self._drawn.forget()
                self._draw()

    async def answer(self, question: str, *, text: str = "") -> str | None:
        """A line, but only of what is typed from now on; what was typed before stays for the next prompt."""
        with self._listening():
            await self._await_silence(TYPING_SECONDS if self._readings else PASTE_SECONDS)
            kept, self._keys = self._keys, deque()
            try:
                return await self.read(question, text=text)
            finally:
                self._keys.extendleft(reversed(kept))

    @contextmanager
    def overhearing(self, take: Callable[[str], bool]) -> Iterator[None]:
        """While nobody is asked, let `take` have each line that is typed at a terminal; what it does not want
        stays for the next prompt."""
        self._overhear = take
        self._listen_aside()
        try:
            yield
        finally:
            self._overhear = None
            if not self._listeners:
                asyncio.get_running_loop().remove_reader(self._file)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Write something else meanwhile: the line goes away and comes back below it."""
        if self._readings:
            self._write(self._drawn.erase())
        try:
            yield
        finally:
            self._draw()

    def resume(self) -> None:
        """The program was stopped and goes on: the terminal has forgotten what it was told."""
        if self._listeners and self._before is not None:
            _take_letters(self._file, self._before)
            self._drawn.forget()
            self._draw()
        self._listen_aside()

    # --- keys -------------------------------------------------------------------------------------------

    async def _await_silence(self, seconds: float) -> None:
        while not self._ended:
            self._heard.clear()
            try:
                await asyncio.wait_for(self._heard.wait(), seconds)
            except TimeoutError:
                return

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Have what is typed, for as long as this takes; the outermost one begins and ends it."""
        self._listeners += 1
        if self._listeners == 1:
            self._begin()
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners:
                asyncio.get_running_loop().remove_reader(self._file)
                if self._before is not None:
                    _restore(self._file, self._before)
                self._listen_aside()

    def _listen_aside(self) -> None:
        """Hear whole lines, which the terminal lets people edit; not in the background, where reading would
        stop us."""
        wanted = self._overhear is not None and self._before is not None
        if wanted and not self._listeners and not self._ended and _is_in_front(self._file):
            asyncio.get_running_loop().add_reader(self._file, self._hear_aside)

    def _hear_aside(self) -> None:
        if not _is_in_front(self._file):
            asyncio.get_running_loop().remove_reader(self._file)
            return
        try:
            line = os.read(self._file, CHUNK).decode(sys.stdin.encoding or "utf-8", "replace")
        except OSError:
            line = ""
        if not line:  # Ctrl-D, or the terminal is gone: the next prompt finds out
            asyncio.get_running_loop().remove_reader(self._file)
            self._keys.append(Key("delete-or-leave"))
        elif self._overhear is None or not self._overhear(line):
            self._keys.extend(split_keys(line)[0])

    def _begin(self) -> None:
        if self._before is not None:
            _take_letters(self._file, self._before)
        if self._ended:
            return
        try:
            asyncio.get_running_loop().add_reader(self._file, self._hear)
        except PermissionError:  # a file is always ready
            while not self._ended:
                self._hear()

    def _hear(self) -> None:
        try:
            data = os.read(self._file, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # the terminal is gone
        split = split_lines if self._before is None else split_keys
        keys, self._partial = split(self._partial + self._decode(data, final=not data))
        self._keys.extend(keys)
        if not data:
            self._ended = True
            asyncio.get_running_loop().remove_reader(self._file)
            if self._before is None and self._partial:
                self._keys += (Key("text", self._partial), Key("enter"))
        self._heard.set()
        self._use_keys()

    def _use_keys(self) -> None:
        """Let the line that is asked for have the keys, up to its end."""
        reading = self._readings[-1] if self._readings else None
        if reading is None:
            return
        while self._keys and not reading.line.done():
            self._press(reading, self._keys.popleft())
        if not reading.line.done():
            self._draw()
            if self._ended:
                self._end(reading, reading.editor.text or None)

    def _press(self, reading: _Reading, key: Key) -> None:
        editor = reading.editor
        if key.name == "enter":
            self._draw()
            self._end(reading, editor.text)
        elif key.name == "delete-or-leave" and not editor.text:
            self._end(reading, None)
        elif key.name == "tab":
            completed = self._complete(editor.text)
            if completed != editor.text:
                editor.text, editor.at = completed, len(completed)
        else:
            editor.press(key)

    def _end(self, reading: _Reading, line: str | None) -> None:
        if self._before is not None or line is None:
            self._write(self._drawn.leave())
        reading.line.set_result(line)

    def _draw(self) -> None:
        if not self._readings or self._readings[-1].line.done():
            return
        reading = self._readings[-1]
        shown = reading.editor if self._before is not None else LineEditor()
        self._write(self._drawn.draw(reading.prompt, shown, self._width()))

    def _width(self) -> int:
        """Of the terminal; where next to nothing fits, the line may as well be wrapped."""
        if self._screen is None:
            return WIDTH
        with suppress(OSError, ValueError):
            columns = os.get_terminal_size(self._screen.fileno()).columns
            return columns if columns >= LEAST_WIDTH else WIDTH
        return WIDTH

    def _write(self, text: str) -> None:
        """Past the stream, which would take the backspaces away; everything else in it is harmless."""
        if self._screen is not None and text:
            with suppress(OSError):
                self._screen.flush()
                os.write(self._screen.fileno(), text.encode(self._screen.encoding, "replace"))


def find_screen() -> TextIO | None:
    """Where somebody sees what they type, if anybody types."""
    ends = (sys.stdout, sys.stderr) if sys.stdin.isatty() else ()
    return next((each for each in ends if each.isatty()), None)


def _terminal_state(file: int) -> list[Any] | None:
    try:
        state = termios.tcgetattr(file)
    except termios.error:
        return None
    return state if state[_LOCAL] & termios.ECHO else None


def _is_in_front(file: int) -> bool:
    """Whether the terminal is ours to read; a program in the background is stopped when it tries."""
    try:
        return os.tcgetpgrp(file) == os.getpgrp()
    except OSError:
        return False


def _take_letters(file: int, before: list[Any]) -> None:
    """Have each letter at once and unechoed; the keys that send signals go on sending them."""
    state = [*before]
    state[_LOCAL] &= ~(termios.ICANON | termios.ECHO)
    state[_CHARACTERS] = [*before[_CHARACTERS]]
    state[_CHARACTERS][termios.VMIN], state[_CHARACTERS][termios.VTIME] = 1, 0
    _restore(file, state)


def _restore(file: int, state: list[Any]) -> None:
    with suppress(termios.error):  # the terminal is gone
        termios.tcsetattr(file, termios.TCSANOW, state)
