"""Lines from a file, read by a thread of their own, so that they arrive whatever else goes on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from threading import Thread

from robota.core.errors import ValidationError

LINE_LIMIT = 64 << 20
"""Bytes of one line: a prompt with images is long."""
_CHUNK = 1 << 16


async def read_lines(fd: int) -> AsyncIterator[bytes]:
    """The lines of a file without their ends, as they come, until its end."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

    def put(item: bytes | Exception | None) -> None:
        try:
            loop.call_soon_threadsafe(lines.put_nowait, item)
        except RuntimeError:
            return  # the loop is closed, nobody reads any more

    Thread(target=_read, args=(fd, put), name="robota-stdin", daemon=True).start()
    while (item := await lines.get()) is not None:
        if isinstance(item, Exception):
            raise item
        yield item


def _read(fd: int, put: object) -> None:
    assert callable(put)
    parts: list[bytes] = []
    size = 0
    while True:
        try:
            data = os.read(fd, _CHUNK)
        except OSError:
            data = b""  # gone, which is its end too
        *whole, rest = data.split(b"\n")
        for line in whole:
            put(b"".join((*parts, line)))
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > LINE_LIMIT:
            put(ValidationError(f"A line on standard input is longer than {LINE_LIMIT >> 20} MB."))
            return
        if not data:
            last = b"".join(parts)
            if last.strip():
                put(last)
            put(None)
            return
