"""Entries in a file of JSON lines, for the user alone.

Lines are appended in one write. When the file has twice as many as it may keep, the latest are written to
another file that takes its place, so whoever reads it sees all of the old one or all of the new one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from anyio import to_thread

from robota.core.errors import PluginError
from robota.core.jsontext import encode
from robota.core.private_directory import make_private_directories
from robota.plugins.storage.port import Entry

T = TypeVar("T")
_LINE = msgspec.json.Decoder(Entry)


class FileStorage:
    """One file. Several processes may append to it; only what one of them trims at that moment is lost."""

    def __init__(self, path: str | os.PathLike[str], *, limit: int) -> None:
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self._limit = limit
        self._lines: int | None = None
        """How many the file has; not known before it was read."""
        self._turn = threading.Lock()

    async def write(self, entries: Sequence[Entry]) -> None:
        await self._call(lambda: self._append(entries))

    async def read(self) -> list[Entry]:
        return await self._call(self._read)

    async def remove(self, key: str) -> bool:
        def forget() -> bool:
            found = self._read()
            kept = [entry for entry in found if entry.key != key]
            if len(kept) < len(found):
                self._replace(kept)
            return len(kept) < len(found)

        return await self._call(forget)

    async def _call(self, work: Callable[[], T]) -> T:
        def run() -> T:
            with self._turn:
                return work()

        try:
            return await to_thread.run_sync(run)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise PluginError(
                f"{self.path} cannot be used ({reason}): check the path and the disk."
            ) from error

    def _append(self, entries: Sequence[Entry]) -> None:
        if self._lines is None:
            self._lines = self._count()
        make_private_directories(os.path.dirname(self.path))
        data = b"".join(encode(entry) + b"\n" for entry in entries)
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.lseek(fd, 0, os.SEEK_END) and not self._ends_with_line():
                data = b"\n" + data  # a line that a crash has cut stays its own
            written = os.write(fd, data)
            while written < len(data):
                written += os.write(fd, data[written:])
        finally:
            os.close(fd)
        self._lines += len(entries)
        if self._lines > 2 * self._limit:
            self._replace(self._read())

    def _ends_with_line(self) -> bool:
        with open(self.path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _count(self) -> int:
        try:
            with open(self.path, "rb") as file:
                return sum(1 for _ in file)
        except FileNotFoundError:
            return 0

    def _read(self) -> list[Entry]:
        kept: dict[str | int, Entry] = {}
        try:
            with open(self.path, "rb") as file:
                for number, line in enumerate(file):
                    try:
                        entry = _LINE.decode(line)
                    except msgspec.DecodeError:
                        continue  # cut by a crash, or not ours
                    kept.pop(entry.key or number, None)
                    kept[entry.key or number] = entry
        except FileNotFoundError:
            return []
        return list(kept.values())[-self._limit :]

    def _replace(self, entries: Sequence[Entry]) -> None:
        temporary = f"{self.path}.{os.urandom(6).hex()}.new"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(fd, "wb") as file:
                file.write(b"".join(encode(entry) + b"\n" for entry in entries))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except OSError:
            os.unlink(temporary)
            raise
        self._lines = len(entries)
