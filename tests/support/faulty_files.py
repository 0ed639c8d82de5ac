"""A disk that fails on demand, for tests of everything that must not lose data.

Run the same steps with `fail_at` 0, 1, 2, … until `fired` stays False: then every file operation has failed
once. After a `SimulatedCrash`, `after_crash` leaves in the directory what a real disk may hold after a power
cut: nothing that was not synced can be relied on, and a failed sync never made anything safe.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable, Container
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.sessions.files import REAL_FILES, Files

Fault: TypeAlias = Literal["error", "short", "crash"]


class SimulatedCrash(BaseException):
    """The process ends here; nothing may catch it, clean up or go on."""


class FaultyFiles(Files):
    """Works on the directory `root` like the real disk, except for the one operation that fails.

    `fault`: "error" raises `OSError` with `error`, "short" takes half of a write (only writes count), "crash"
    raises `SimulatedCrash` then and for ever. `lasting` lets all later operations fail too, until `heal`.
    """

    __slots__ = (
        "_dead", "_error", "_fault", "_lasting", "_open", "_states", "fail_at", "fired", "only",
        "operations", "root",
    )  # fmt: skip

    def __init__(
        self,
        root: str,
        *,
        fail_at: int | None = None,
        fault: Fault = "error",
        error: int = errno.EIO,
        lasting: bool = False,
        only: Container[str] | None = None,
    ) -> None:
        self.root = os.path.abspath(root)
        self.fail_at = fail_at
        """Which operation fails, counted from 0; None for none."""
        self.operations = 0
        """How many that may fail were asked for."""
        self.fired = False
        self._fault: Fault = fault
        self._error = error
        self._lasting = lasting
        self.only = only
        """The operations that count and fail; None for all."""
        self._dead = False
        self._open: dict[int, _Content] = {}
        self._states: dict[str, list[_Content | None]] = {}
        """For every path: the safe state, then those since the last sync of its directory."""
        for place, directories, names in os.walk(self.root):
            for name in directories:
                self._states[os.path.join(place, name)] = [_Content(None)]
            for name in names:
                path = os.path.join(place, name)
                self._states[path] = [_Content(Path(path).read_bytes())]

    def heal(self) -> None:
        """Nothing fails from now on."""
        self.fail_at = None

    def after_crash(self, seed: int = 0) -> Files:
        """Give the tree one of the states a power cut may leave; returns the real disk to look at it.

        May be called again with another seed for another state after the same crash.
        """
        self._dead = True
        for fd in self._open:
            os.close(fd)
        self._open.clear()
        rng = random.Random(seed)
        shutil.rmtree(self.root)
        os.mkdir(self.root)
        for path in sorted(self._states, key=lambda path: (path.count(os.sep), path)):
            content = rng.choice(self._states[path])
            if content is None or not os.path.isdir(os.path.dirname(path)):
                continue
            data = content.survive(rng)
            if data is None:
                os.mkdir(path, 0o700)
            else:
                Path(path).write_bytes(data)
                os.chmod(path, 0o600)
        return REAL_FILES

    def make_directory(self, path: str) -> None:
        self._step("make_directory")
        missing = []
        place = os.path.abspath(path)
        while not os.path.isdir(place):
            missing.append(place)
            place = os.path.dirname(place)
        for place in missing:
            self._change(place, _Content(None))
        super().make_directory(path)

    def open_append(self, path: str) -> int:
        return self._opened(super().open_append, path)

    def create(self, path: str) -> int:
        return self._opened(super().create, path)

    def open_read(self, path: str) -> int:
        return self._opened(super().open_read, path)

    def open_read_unlinked(self, path: str) -> int:
        return self._opened(super().open_read_unlinked, path)

    def _opened(self, open: Callable[[str], int], path: str) -> int:
        self._step(open.__name__)
        new = not os.path.exists(path)
        fd = open(path)
        if new:
            self._change(path, _Content(b""))
        self._open[fd] = self._content(path)
        return fd

    def write(self, fd: int, data: bytes) -> int:
        if self._step("write"):
            data = data[: len(data) // 2]
        taken = super().write(fd, data)
        self._open[fd].note(os.lseek(fd, 0, os.SEEK_CUR) - taken, data[:taken])
        return taken

    def write_at(self, fd: int, data: bytes, offset: int) -> int:
        if self._step("write_at"):
            data = data[: len(data) // 2]
        taken = super().write_at(fd, data, offset)
        self._open[fd].note(offset, data[:taken])
        return taken

    def truncate(self, fd: int, size: int) -> None:
        self._step("truncate")
        super().truncate(fd, size)
        self._open[fd].note(size, None)

    def sync(self, fd: int) -> None:
        try:
            self._step("sync")
        except OSError:
            self._open[fd].drop()
            raise
        self._open[fd].settle()

    def close(self, fd: int) -> None:
        if fd not in self._open:
            return  # `after_crash` closed it, and the number may be somebody else's by now
        try:
            if not self._dead:
                self._step("close")
        finally:
            del self._open[fd]
            super().close(fd)

    def replace(self, source: str, target: str) -> None:
        self._step("replace")
        content = self._content(source)
        super().replace(source, target)
        self._change(source, None)
        self._change(target, content)

    def unlink(self, path: str) -> None:
        self._step("unlink")
        super().unlink(path)
        self._change(path, None)

    def sync_directory(self, path: str) -> None:
        self._step("sync_directory")
        directory = os.path.abspath(path)
        for place, states in self._states.items():
            if os.path.dirname(place) == directory:
                del states[:-1]

    def _step(self, name: str) -> bool:
        """Count an operation; raises when it is its turn to fail, True when it is to stop half way."""
        if self._dead:
            raise SimulatedCrash
        if self.only is not None and name not in self.only:
            return False
        if self._fault == "short" and name not in ("write", "write_at"):
            return False
        number = self.operations
        self.operations += 1
        if self.fail_at is None or (number < self.fail_at if self._lasting else number != self.fail_at):
            return False
        self.fired = True
        if self._fault == "crash":
            self._dead = True
            raise SimulatedCrash
        if self._fault == "error":
            raise OSError(self._error, os.strerror(self._error))
        return True

    def _content(self, path: str) -> _Content:
        content = self._states[os.path.abspath(path)][-1]
        assert content is not None
        return content

    def _change(self, path: str, content: _Content | None) -> None:
        self._states.setdefault(os.path.abspath(path), [None]).append(content)


def _counted(name: str) -> Callable[..., object]:
    """An operation that changes nothing, and may fail."""
    operation = getattr(Files, name)

    def perform(self: FaultyFiles, *given: object) -> object:
        self._step(name)
        return operation(self, *given)

    return perform


for _name in ("read", "read_at", "size", "size_of", "names", "lock", "is_at"):
    setattr(FaultyFiles, _name, _counted(_name))


class _Content(Struct, eq=False):
    """What a file holds for certain and what was written since; a directory has neither."""

    _safe: bytes | None
    _pending: list[tuple[int, bytes | None]] = []
    """Offset and data of a write, or the new size and None."""

    def note(self, place: int, data: bytes | None) -> None:
        self._pending.append((place, data))

    def settle(self) -> None:
        """Everything written is safe."""
        for place, data in self._pending:
            self._safe = _apply(self._safe or b"", place, data)
        self._pending.clear()

    def drop(self) -> None:
        """The kernel forgot that these pages have to be written; only the new sizes are still under way."""
        self._pending = [change for change in self._pending if change[1] is None]

    def survive(self, rng: random.Random) -> bytes | None:
        """The safe content with some of what was still under way; None for a directory."""
        if self._safe is None:
            return None
        content = self._safe
        scattered = rng.random() < 0.3  # blocks may reach the disk in any order
        last = rng.randint(0, len(self._pending))
        for number, (place, data) in enumerate(self._pending[: last + 1]):
            if scattered and rng.random() < 0.3:
                continue
            if number == last and data is not None:
                data = _cut(rng, data)
            content = _apply(content, place, data)
        return content


def _cut(rng: random.Random, data: bytes) -> bytes:
    """The beginning of a write; sometimes the file has grown already but the rest of it is zero."""
    begun = data[: rng.randint(0, len(data))]
    return begun.ljust(len(data), b"\0") if rng.random() < 0.3 else begun


def _apply(content: bytes, place: int, data: bytes | None) -> bytes:
    if data is None:
        return content[:place].ljust(place, b"\0")
    return content[:place].ljust(place, b"\0") + data + content[place + len(data) :]
