"""Frames as lines of JSON, short enough for whoever reads them, and the one who writes them to a file: whole,
in order, and without keeping anybody waiting.

Frames come from turns, answers and background tasks at once. A reader who does not read blocks a thread of
the writer's own, and nothing else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject

LINE_LIMIT = 1_048_576
"""Characters of one line that clients read; a longer one ends their session."""
_ROOM = 1024
_FIRST_CUT = 256 * 1024
_NOTE = "[... {:,} characters left out ...]"


class LineWriter:
    """Writes to a file descriptor, from the loop in which it was made."""

    def __init__(self, fd: int, on_broken: Callable[[str], None] = lambda why: None) -> None:
        """`on_broken` is called once, in the loop, when nothing can be written any more."""
        self._fd = fd
        self._on_broken = on_broken
        self._is_screen = os.isatty(fd)
        self._lines: SimpleQueue[bytes | asyncio.Event | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread: Thread | None = None
        self.broken: str | None = None
        """Why nothing can be written any more; empty for a reader who left."""

    def send(self, frame: JsonObject) -> None:
        self.write(encode_line(frame))

    def write(self, data: bytes) -> None:
        if self._is_screen:
            from robota.sdk.view.neutral import neutral_json  # noqa: PLC0415 - for people who look on

            data = neutral_json(data)
        if self._thread is None:
            self._thread = Thread(target=self._work, name="robota-lines", daemon=True)
            self._thread.start()
        self._lines.put(data)

    async def drain(self) -> None:
        """Wait until all that was sent is written, or cannot be."""
        if self._thread is not None and self.broken is None:
            written = asyncio.Event()
            self._lines.put(written)
            await written.wait()

    def _work(self) -> None:
        while True:
            item = self._lines.get()
            if isinstance(item, asyncio.Event):
                self._call(item.set)
            elif item is not None and self.broken is None:
                self._write(item)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            self.broken = "" if isinstance(error, BrokenPipeError) else error.strerror or str(error)
            self._call(lambda: self._on_broken(self.broken or ""))

    def _call(self, action: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            self.broken = self.broken or ""  # the loop is closed: nobody waits any more


def encode_line(frame: JsonObject) -> bytes:
    """The frame as a line. In one that would be too long, the longest texts are cut, as little as needed."""
    line = encode(frame)
    kept = _FIRST_CUT
    while _is_too_long(line):
        line = encode(_cut(frame, kept))
        kept //= 2
    return line + b"\n"


def _is_too_long(line: bytes) -> bool:
    """Counted in characters, where bytes do not settle it."""
    limit = LINE_LIMIT - _ROOM
    return len(line) > limit and len(line.decode()) > limit


def _cut(value: Json, kept: int) -> Json:
    if isinstance(value, str):
        return value if len(value) <= kept else _cut_text(value, kept)
    if isinstance(value, dict):
        if _is_large_image(value, kept):
            return {"type": "text", "text": f"[image left out: {len(value['source']['data']):,} characters]"}
        return {key: _cut(item, kept) for key, item in value.items()}
    if isinstance(value, list | tuple):
        most = max(1, kept // 8)  # a list of many small things is long too
        return [_cut(item, kept) for item in value[:most]]
    return value


def _cut_text(text: str, kept: int) -> str:
    half = kept // 2
    return f"{text[:half]}\n{_NOTE.format(len(text) - 2 * half)}\n{text[len(text) - half :]}"


def _is_large_image(value: JsonObject, kept: int) -> bool:
    source = value.get("source")
    data = (
        source.get("data") if value.get("type") in ("image", "document") and isinstance(source, dict) else ""
    )
    return isinstance(data, str) and len(data) > kept
