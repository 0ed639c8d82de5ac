"""Contents by their SHA-256: one private file each, compressed where that pays, safe before it has its name.

A batch writes temporary files and gives them their names at its end, so that a name always stands for a whole
content. Who uses a batch holds the lock of the store.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Self

from msgspec import Struct

from robota.core.errors import StorageError
from robota.tools.files.directory import CHUNK_BYTES, SystemCalls, open_descriptor, write_all

CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_SMALLEST_COMPRESSED = 128
_PAYS = 0.9
"""Compressed data is kept if it is at most this part of the original."""
_MANY = 64
"""So many files are brought to the disk together instead of one by one."""
_FICLONE = 0x40049409


class BlobStore(Struct, frozen=True):
    base: str
    system: SystemCalls

    def find(self, digest: bytes) -> str | None:
        """The file that holds this content, if there is one."""
        plain = self._path_of(digest)
        return next((path for path in (plain, plain + ".z") if os.path.lexists(path)), None)

    def read(self, digest: bytes) -> bytes:
        return b"".join(self.chunks(digest))

    def chunks(self, digest: bytes) -> Iterator[bytes]:
        """The content piece by piece; raises at the end if it is not the one that was stored."""
        path = self.find(digest)
        if path is None:
            raise StorageError(f"The undo store has lost a content ({digest.hex()[:12]}).")
        check = sha256()
        try:
            for chunk in self._unpacked(path):
                check.update(chunk)
                yield chunk
        except zlib.error as error:
            raise _damaged(path) from error
        if check.digest() != digest:
            raise _damaged(path)

    def _unpacked(self, path: str) -> Iterator[bytes]:
        unpack = zlib.decompressobj() if path.endswith(".z") else None
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk if unpack is None else unpack.decompress(chunk)
        if unpack is not None:
            yield unpack.flush()

    def sizes(self) -> dict[bytes, int]:
        """Every content that is there, and the room it takes."""
        found: dict[bytes, int] = {}
        for folder in os.scandir(self.base):
            for file in os.scandir(folder.path):
                with suppress(ValueError):
                    found[bytes.fromhex(folder.name + file.name.removesuffix(".z"))] = file.stat().st_size
        return found

    def size_of(self, digest: bytes) -> int:
        path = self.find(digest)
        return 0 if path is None else os.path.getsize(path)

    def remove(self, digest: bytes) -> None:
        path = self.find(digest)
        if path is not None:
            self.system.unlink(path)

    def _path_of(self, digest: bytes) -> str:
        name = digest.hex()
        return f"{self.base}/{name[:2]}/{name[2:]}"

    def settle(self, pending: dict[bytes, tuple[str, bool]]) -> None:
        """Give temporary files the names of their contents, both safe on disk."""
        folders: set[str] = set()
        self.bring_to_disk([path for path, _ in pending.values()])
        for digest, (path, packed) in pending.items():
            target = self._path_of(digest)
            folder = os.path.dirname(target)
            if folder not in folders:
                with suppress(FileExistsError):
                    self.system.mkdir(folder, 0o700)
                    folders.add(self.base)
                folders.add(folder)
            self.system.replace(path, target + ".z" if packed else target)
        self.bring_to_disk(sorted(folders))

    def bring_to_disk(self, paths: Sequence[str | bytes]) -> None:
        """Contents written so far, all at once if they are many."""
        if len(paths) > _MANY:
            self.system.sync()
            return
        for path in paths:
            sync_path(self.system, path)


class _NewFile(Struct):
    descriptor: int
    digest: bytes = b""
    packed: bool = False


class QuotaExceeded(Exception):
    """The new contents do not fit."""


class Batch(Struct):
    """New contents on their way into the store; leaving the block normally settles them.

    There may be `room` bytes of them; `temporary` is a directory on the same disk.
    """

    blobs: BlobStore
    system: SystemCalls
    temporary: str
    room: float
    pending: dict[bytes, tuple[str, bool]] = {}
    stored: int = 0
    """Bytes that this batch adds to the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self.blobs.settle(self.pending)
                self.pending = {}
        finally:
            for path, _ in self.pending.values():
                with suppress(OSError):
                    self.system.unlink(path)

    def add(self, data: bytes) -> bytes:
        digest = sha256(data).digest()
        if self._has(digest):
            return digest
        packed = zlib.compress(data, 1) if len(data) >= _SMALLEST_COMPRESSED else data
        pays = len(packed) <= len(data) * _PAYS
        with self._new_file() as new:
            self._write(new.descriptor, packed if pays else data)
            new.digest, new.packed = digest, pays and packed is not data
        return digest

    def add_file(self, source: int) -> bytes:
        """The rest of an open file, as a clone where the file system has them."""
        with self._new_file() as new:
            if _clone(source, new.descriptor):
                new.digest = _hash_file(self.system, new.descriptor)
            else:
                new.digest, new.packed = self._copy(source, new.descriptor)
            return new.digest

    @contextmanager
    def _new_file(self) -> Iterator[_NewFile]:
        """A temporary file; it becomes part of the batch when it has a digest at the end of the block."""
        path = f"{self.temporary}/{os.urandom(8).hex()}"
        try:
            new = _NewFile(self.system.open(path, CREATE, 0o600))
        except OSError as error:
            raise _full(error) from error
        try:
            yield new
        finally:
            size = os.fstat(new.descriptor).st_size
            self.system.close(new.descriptor)
            if new.digest and not self._has(new.digest):
                self.pending[new.digest] = path, new.packed
                self.stored += size
            else:
                self.system.unlink(path)
        if self.stored > self.room:
            raise QuotaExceeded

    def _write(self, descriptor: int, data: bytes) -> None:
        try:
            write_all(self.system, descriptor, data)
        except OSError as error:
            raise _full(error) from error

    def _has(self, digest: bytes) -> bool:
        return digest in self.pending or self.blobs.find(digest) is not None

    def _copy(self, source: int, target: int) -> tuple[bytes, bool]:
        check, pack, first = sha256(), None, True
        while chunk := self.system.read(source, CHUNK_BYTES):
            if first and len(zlib.compress(chunk, 1)) <= len(chunk) * _PAYS:
                pack = zlib.compressobj(1)
            first = False
            check.update(chunk)
            self._write(target, chunk if pack is None else pack.compress(chunk))
            if os.fstat(target).st_size + self.stored > self.room:
                raise QuotaExceeded
        if pack is not None:
            self._write(target, pack.flush())
        return check.digest(), pack is not None


def sync_path(system: SystemCalls, path: str | bytes) -> None:
    with open_descriptor(system, path, os.O_RDONLY | os.O_CLOEXEC) as descriptor:
        system.fsync(descriptor)


def _damaged(path: str) -> StorageError:
    return StorageError(f"A saved content of the undo store is damaged: {path}")


def _full(error: OSError) -> StorageError:
    return StorageError(f"The undo store cannot be written: {error.strerror or error}")


def _clone(source: int, target: int) -> bool:
    if sys.platform != "linux":
        return False
    import fcntl  # noqa: PLC0415 - not on every system

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def _hash_file(system: SystemCalls, descriptor: int) -> bytes:
    check = sha256()
    while chunk := system.read(descriptor, CHUNK_BYTES):
        check.update(chunk)
    return check.digest()
