"""The terminal below the interface: frames, finished lines, resizing, pastes.

The only file that touches what prompt_toolkit keeps to itself; `tests/tui/test_surface.py` fails when one of
those names changes.

Finished lines are written once, above the live region, and belong to the terminal from then on. Everything
between erasing the region and drawing it again is one write, so that no half-drawn screen is ever sent.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import BaseStyle

from robota.sdk.view.neutral import TURNING_SIGNS

BEGIN_FRAME, END_FRAME = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output; terminals that do not know it ignore it."""
NOTHING_DRAWN = re.compile(r"\x1b\[\?2026h(?:\x1b\[(?:\?25[lh]|\?12l|\?7[lh]|0?m))*")
"""A frame that only hides the cursor, shows it again and says how to wrap: nothing was drawn."""
SANE = "\x1b[?2026l\x1b[?2004l\x1b[?25h\x1b[?7h\x1b[0m"
"""What a terminal needs to be told when we leave it in a hurry."""
PASTE_END = "\x1b[201~"
KEY_BYTES, PASTE_BYTES = 1024, 65536
CALM_SECONDS = 0.2
"""Without a new size for so long, a resize is over."""
SLOW_LINK_FACTOR, LONGEST_PAUSE = 4, 1.0
ESCAPE_SECONDS = 0.05
"""How long the rest of a key may take that begins with Esc."""
RE_WRAPPING = ("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "WEZTERM_PANE", "ITERM_SESSION_ID")
STDOUT = 1
# Shown as what they are, like control characters: a text that was pasted is read before it is sent.
Char.display_mappings.update((sign, f"<{ord(sign):04x}>") for sign in TURNING_SIGNS)


class FrameOutput(Vt100_Output):
    """Collects what is drawn and sends it as one write."""

    def __init__(self, color_depth: ColorDepth | None, term: str) -> None:
        super().__init__(sys.stdout, read_size, term=term, default_color_depth=color_depth, enable_cpr=False)
        self.depth = 0
        self.pause = 0.0
        """How long to wait before the next frame, because the link is slow."""
        self.drawn = 0.0
        """When something was drawn last."""
        self._file = sys.stdout.fileno()
        self._size: Size | None = None
        """As it was when the frame began: a dozen rows ask for it."""

    def get_size(self) -> Size:
        if not self.depth:
            return super().get_size()
        if self._size is None:
            self._size = super().get_size()
        return self._size

    def flush(self) -> None:
        if self.depth or not self._buffer:
            return
        data = "".join(self._buffer).encode(self.stdout.encoding or "utf-8", "replace")
        self._buffer.clear()
        began = time.monotonic()
        write_all(self._file, data)
        self.pause = min((time.monotonic() - began) * SLOW_LINK_FACTOR, LONGEST_PAUSE)

    def erase_down(self) -> None:
        """The first cell by itself: tmux keeps a screen that is cleared from its very first cell in the
        scrollback, where what is only drawn does not belong."""
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    @contextmanager
    def frame(self) -> Iterator[None]:
        self.depth += 1
        if self.depth == 1:
            self._buffer.append(BEGIN_FRAME)
        try:
            yield
        finally:
            self.depth -= 1
            if self.depth == 0:
                self._size = None
                if NOTHING_DRAWN.fullmatch("".join(self._buffer)):
                    self._buffer.clear()
                else:
                    self._buffer.append(END_FRAME)
                    self.drawn = time.monotonic()
                self.flush()


def read_size() -> Size:
    """Of the real output: what is printed goes elsewhere while the interface is up."""
    try:
        size = os.get_terminal_size(STDOUT)
    except OSError:
        return Size(rows=24, columns=80)
    return Size(rows=size.lines or 24, columns=size.columns or 80)


def write_all(file: int, data: bytes) -> None:
    """All of it, also to a terminal that takes only a part at a time."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(file, left) :]
        except BlockingIOError:
            import select  # noqa: PLC0415 - only where somebody else made the terminal non-blocking

            select.select([], [file], [])


def make_restorer(keyboard: int, screen: int) -> Callable[[], None]:
    """What leaves the terminal sane when the loop itself has broken down."""
    before = termios.tcgetattr(keyboard)

    def restore() -> None:
        with suppress(OSError, termios.error):  # the terminal is gone, and nobody is left to be told
            termios.tcsetattr(keyboard, termios.TCSANOW, before)
            write_all(screen, SANE.encode())

    return restore


class PasteParser(Vt100Parser):
    """Finds the end of a paste in what is new, so that five megabytes take no longer than they must."""

    def __init__(self, take: Callable[[KeyPress], None]) -> None:
        self._parts: list[str] = []
        self._seam = ""
        super().__init__(take)

    @property
    def pasting(self) -> bool:
        return self._in_bracketed_paste

    def feed(self, data: str) -> None:
        if not self._in_bracketed_paste:
            super().feed(data)
            return
        window = self._seam + data
        found = window.find(PASTE_END)
        self._parts.append(data)
        if found < 0:
            self._seam = window[-(len(PASTE_END) - 1) :]
            return
        text = "".join(self._parts)
        end = len(text) - len(window) + found
        self._parts, self._seam, self._in_bracketed_paste = [], "", False
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, text[:end]))
        self.feed(text[end + len(PASTE_END) :])


class PasteInput(Vt100Input):
    """Keys, one read at a time."""

    def __init__(self) -> None:
        super().__init__(sys.stdin)
        # a byte that is no text would become half a character, which nothing can write
        self.stdin_reader = PosixStdinReader(self._fileno, errors="replace", encoding=sys.stdin.encoding)
        self.parser = PasteParser(lambda key: self._buffer.append(key))
        self.vt100_parser = self.parser
        self.burst = False
        """Several keys came at once: a paste in a terminal that does not say so, or a program that types."""

    def read_keys(self) -> list[KeyPress]:
        data = self.stdin_reader.read(PASTE_BYTES if self.parser.pasting else KEY_BYTES)
        self.parser.feed(data)
        keys, self._buffer = self._buffer, []
        self.burst = len(keys) > 1
        return without_enter_in_text(keys)


def without_enter_in_text(keys: list[KeyPress]) -> list[KeyPress]:
    """Enter with text behind it in the same read was pasted: it is a line break and sends nothing."""
    for at in range(len(keys) - 1):
        follows = keys[at + 1]
        if keys[at].key == Keys.ControlM and len(follows.key) == 1 and follows.key.isprintable():
            keys[at] = KeyPress(Keys.ControlJ, "\n")
    return keys


class FramedApplication(Application[int]):
    """Draws in frames, and leaves resizing to the surface."""

    output: FrameOutput
    on_size: Callable[[], None]

    def _redraw(self, render_as_done: bool = False) -> None:
        self._invalidated = False  # what is drawn now is all there is to draw
        with self.output.frame():
            super()._redraw(render_as_done)

    def invalidate(self) -> None:
        """Draw as soon as the loop comes around, from whatever thread this is called. Not its parent's, which
        puts a key's echo off while an answer streams, and draws again what a commit has drawn meanwhile."""
        if self._is_running and not self._invalidated and self.loop is not None and not self.loop.is_closed():
            self._invalidated = True
            self.loop.call_soon_threadsafe(self._draw_if_invalidated)

    def _draw_if_invalidated(self) -> None:
        if self._invalidated:
            self._redraw()

    def _on_resize(self) -> None:
        self.on_size()

    def _update_invalidate_events(self) -> None:
        """Once: rows come and go by conditions, and the layout stays."""
        if not self._invalidate_events:
            super()._update_invalidate_events()


class Surface:
    """Where the interface is drawn. Everything here happens in the thread of the event loop."""

    def __init__(
        self,
        layout: Layout,
        keys: KeyBindingsBase,
        style: BaseStyle,
        *,
        environment: Mapping[str, str],
        vim: bool = False,
        escape_seconds: float = ESCAPE_SECONDS,
    ) -> None:
        from prompt_toolkit.enums import EditingMode  # noqa: PLC0415 - with its only use

        plain = bool(environment.get("NO_COLOR"))
        depth = ColorDepth.DEPTH_1_BIT if plain else None
        self.output = FrameOutput(depth, environment.get("TERM", ""))
        self.input = PasteInput()
        self.app = FramedApplication(
            layout=layout,
            key_bindings=keys,
            style=style,
            input=self.input,
            output=self.output,
            full_screen=False,
            erase_when_done=True,
            mouse_support=False,
            terminal_size_polling_interval=None,
            editing_mode=EditingMode.VI if vim else EditingMode.EMACS,
        )
        self.app.ttimeoutlen = self.app.timeoutlen = escape_seconds
        self.app.on_size = self._on_size
        self.padding = 0
        """Blank rows on top of the region, which keep the input where it is."""
        self.resizing = False
        self._re_wraps = any(environment.get(name) for name in RE_WRAPPING)
        self._calm: asyncio.TimerHandle | None = None
        self._held: list[str] = []

    @property
    def size(self) -> Size:
        return self.output.get_size()

    async def run(self) -> int:
        """Until `leave`; the terminal is as it was before however this ends."""
        restore = make_restorer(self.input.fileno(), self.output.fileno())
        atexit.register(restore)
        try:
            return await self.app.run_async(set_exception_handler=False, handle_sigint=False)
        finally:
            atexit.unregister(restore)

    def leave(self, code: int) -> None:
        if self.app.is_running and self.app.future is not None and not self.app.future.done():
            self.app.exit(result=code)

    def commit(self, lines: Sequence[str]) -> None:
        """Write finished lines above the live region, for good."""
        if not self.app.is_running or self.app._running_in_terminal or self.resizing:
            self._held += lines
            return
        lines = [*self._held, *lines]
        self._held = []
        renderer = self.app.renderer
        with self.output.frame():
            height = 0 if renderer._last_screen is None else renderer._last_screen.height
            renderer.erase()
            if lines:
                self.output.write_raw("\r\n".join(lines) + "\r\n")
            self._pin(height - len(lines))
            self.app._redraw()

    def release(self) -> list[str]:
        """What could not be committed, for whoever is left to print it."""
        held, self._held = self._held, []
        return held

    def redraw(self) -> None:
        """Draw the region anew, as high as it needs to be."""
        if not self.app.is_running or self.app._running_in_terminal:
            return
        self.padding = 0
        with self.output.frame():
            self.app.renderer.erase()
            self.app._redraw()

    def suspend(self) -> None:
        """Ctrl-Z: back to the shell, until it lets us go on."""
        self.app.suspend_to_background()

    def invalidate(self) -> None:
        self.app.invalidate()

    def write(self, sequence: str) -> None:
        """Something for the terminal itself, such as its title: it moves nothing."""
        self.output.write_raw(sequence)
        self.output.flush()

    def _pin(self, rows: int) -> None:
        """Fill up on top what the region would be shorter than `rows`."""
        self.padding = 0
        size = self.size
        with self._app_set():
            needed = self.app.layout.container.preferred_height(size.columns, size.rows).preferred
        self.padding = max(0, min(rows, size.rows - 1) - needed)

    @contextmanager
    def _app_set(self) -> Iterator[None]:
        from prompt_toolkit.application.current import set_app  # noqa: PLC0415 - with its only use

        with set_app(self.app):
            yield

    # --- resizing -----------------------------------------------------------------------------------

    def _on_size(self) -> None:
        """Hide what changes and hold what is finished until the size is calm: the terminal re-wraps the
        region before we hear of it, and a stale line is better than a lost one."""
        self.resizing = True
        self.padding = 0
        renderer = self.app.renderer
        if self._re_wraps:
            renderer._cursor_pos = Point(x=renderer._cursor_pos.x, y=self._rows_above())
        with self.output.frame():
            renderer.erase()
            self.app._redraw()
        if self._calm is not None:
            self._calm.cancel()
        self._calm = asyncio.get_running_loop().call_later(CALM_SECONDS, self._end_resizing)

    def _rows_above(self) -> int:
        """How many rows of the new width the region's rows above the cursor take up."""
        renderer, columns = self.app.renderer, max(self.size.columns, 1)
        screen, cursor = renderer._last_screen, renderer._cursor_pos
        if screen is None:
            return cursor.y
        widths = (width_of_row(screen.data_buffer[row]) for row in range(cursor.y))
        return sum(max(1, -(-width // columns)) for width in widths) + cursor.x // columns

    def _end_resizing(self) -> None:
        self.resizing = False
        self._calm = None
        self.commit(())


def width_of_row(row: Mapping[int, Any]) -> int:
    return max((column + 1 for column, cell in row.items() if cell.char.strip()), default=0)
