"""Contents by their SHA-256: in a private file each or together in packs, safe before they have a name.

A batch writes temporary files and gives them their names at its end, so that a name always stands for a whole
content. Who uses a batch holds the lock of the store.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Self

from msgspec import Struct

from robota.core.errors import StorageError
from robota.tools.files.directory import CHUNK_BYTES, SystemCalls, open_descriptor, write_all
from robota.tools.undo.packs import CREATE, PACK_BYTES, NewPack, Packs, Place, sync_path

_SMALLEST_COMPRESSED = 128
_PAYS = 0.9
"""Compressed data is kept if it is at most this part of the original."""
_SAMPLE_BYTES = 65536
"""So much of a large file says whether compressing it pays."""
_MANY = 64
"""So many small contents of a batch become a pack, and so many files are brought to the disk together."""
_PLAIN = 1 / 8
"""Packs are compressed once a batch takes more than this part of the room: to read a workspace takes ten
times as long with compression as without."""
_WAITING_BYTES = 8 * CHUNK_BYTES
_FICLONE = 0x40049409


class BlobStore:
    __slots__ = ("base", "packs", "system")

    def __init__(self, base: str, system: SystemCalls) -> None:
        self.base = base
        self.system = system
        self.packs = Packs(f"{base}/packs", system)

    def has(self, digest: bytes) -> bool:
        return digest in self.packs.places or self._find(digest) is not None

    def _find(self, digest: bytes) -> str | None:
        """The file of its own that holds this content, if there is one."""
        plain = self._path_of(digest)
        return next((path for path in (plain, plain + ".z") if os.path.lexists(path)), None)

    def read(self, digest: bytes) -> bytes:
        return b"".join(self.chunks(digest))

    def chunks(self, digest: bytes) -> Iterator[bytes]:
        """The content piece by piece; raises at the end if it is not the one that was stored."""
        place = self.packs.places.get(digest)
        return self._read_alone(digest) if place is None else iter((self._read_packed(digest, place),))

    def _read_packed(self, digest: bytes, place: Place) -> bytes:
        data = self.packs.read(place)
        try:
            data = zlib.decompress(data) if place.compressed else data
        except zlib.error as error:
            raise _damaged(digest) from error
        if sha256(data).digest() != digest:
            raise _damaged(digest)
        return data

    def _read_alone(self, digest: bytes) -> Iterator[bytes]:
        path = self._find(digest)
        if path is None:
            raise StorageError(f"The undo store has lost a content ({digest.hex()[:12]}).")
        check, unpack = sha256(), zlib.decompressobj() if path.endswith(".z") else None
        try:
            with open(path, "rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    data = chunk if unpack is None else unpack.decompress(chunk)
                    check.update(data)
                    yield data
            if unpack is not None and (data := unpack.flush()):
                check.update(data)
                yield data
        except zlib.error as error:
            raise _damaged(digest) from error
        if check.digest() != digest:
            raise _damaged(digest)

    def sizes(self) -> dict[bytes, int]:
        """Every content that is there, and the room it takes."""
        found = {digest: place.room for digest, place in self.packs.places.items()}
        for folder in os.scandir(self.base):
            for file in os.scandir(folder.path):
                with suppress(ValueError):  # a pack
                    found[bytes.fromhex(folder.name + file.name.removesuffix(".z"))] = file.stat().st_size
        return found

    def size_of(self, digest: bytes) -> int:
        path = self._find(digest)
        return 0 if path is None else os.path.getsize(path)

    def remove(self, digests: Collection[bytes], temporary: str) -> None:
        """`temporary` is a directory on the same disk, for what is left of packs."""
        for digest in digests:
            self.remove_alone(digest)
        self.packs.remove(digests, temporary)

    def remove_alone(self, digest: bytes) -> None:
        """A content that has a file of its own."""
        path = self._find(digest)
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
        """Contents written so far; if they are many, together with all of their disk."""
        if len(paths) <= _MANY:
            for path in paths:
                sync_path(self.system, path)
            return
        folders = {os.path.dirname(path) for path in paths}
        for folder in {os.lstat(folder).st_dev: folder for folder in folders}.values():
            with open_descriptor(self.system, folder, os.O_RDONLY | os.O_CLOEXEC) as descriptor:
                self.system.sync_disk(descriptor)


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
    waiting: dict[bytes, bytes] = {}
    """Small contents: many of them become a pack, a few get files of their own."""
    packs: list[NewPack] = []
    stored: int = 0
    """Bytes that this batch adds to the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            for pack in self.packs:
                pack.discard()
            for path, _ in self.pending.values():
                with suppress(OSError):
                    self.system.unlink(path)

    def _finish(self) -> None:
        try:
            for digest, data in self.waiting.items():
                self._add_alone(digest, data)
            for pack in self.packs:
                pack.close()
        except OSError as error:
            raise _full(error) from error
        self.blobs.packs.settle(self.packs)
        self.blobs.settle(self.pending)
        self.pending = {}

    def add(self, data: bytes, *, alone: bool = False) -> bytes:
        """`alone`: in a file of its own, which can be removed at once."""
        digest = sha256(data).digest()
        if self._has(digest):
            return digest
        if alone:
            self._add_alone(digest, data)
        elif self.packs:
            self._pack(digest, data)
        else:
            self.waiting[digest] = data
            if len(self.waiting) > _MANY or sum(map(len, self.waiting.values())) > _WAITING_BYTES:
                self._begin_packs()
        return digest

    def _add_alone(self, digest: bytes, data: bytes) -> None:
        data, compressed = _compress(data)
        with self._new_file() as new:
            self._write(new.descriptor, data)
            new.digest, new.packed = digest, compressed

    def _begin_packs(self) -> None:
        waiting, self.waiting = self.waiting, {}
        for digest, data in waiting.items():
            self._pack(digest, data)

    def _pack(self, digest: bytes, data: bytes) -> None:
        compressed = False
        if self.stored > self.room * _PLAIN:
            data, compressed = _compress(data)
        try:
            if not self.packs or self.packs[-1].size > PACK_BYTES:
                self.packs.append(NewPack(self.system, self.temporary))
            pack = self.packs[-1]
            before = pack.room
            pack.add(digest, data, compressed=compressed)
        except OSError as error:
            raise _full(error) from error
        self._count(pack.room - before)

    def _count(self, size: int) -> None:
        self.stored += size
        if self.stored > self.room:
            raise QuotaExceeded

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
            kept = bool(new.digest) and (new.digest in self.waiting or not self._has(new.digest))
            if kept:
                self.pending[new.digest] = path, new.packed
            else:
                self.system.unlink(path)
        self._count(size if kept else 0)

    def _write(self, descriptor: int, data: bytes) -> None:
        try:
            write_all(self.system, descriptor, data)
        except OSError as error:
            raise _full(error) from error

    def _has(self, digest: bytes) -> bool:
        mine = digest in self.pending or digest in self.waiting
        return mine or any(digest in pack for pack in self.packs) or self.blobs.has(digest)

    def _copy(self, source: int, target: int) -> tuple[bytes, bool]:
        check, pack, first = sha256(), None, True
        while chunk := self.system.read(source, CHUNK_BYTES):
            if first and _compress(chunk[:_SAMPLE_BYTES])[1]:
                pack = zlib.compressobj(1)
            first = False
            check.update(chunk)
            self._write(target, chunk if pack is None else pack.compress(chunk))
            if os.fstat(target).st_size + self.stored > self.room:
                raise QuotaExceeded
        if pack is not None:
            self._write(target, pack.flush())
        return check.digest(), pack is not None


def _compress(data: bytes) -> tuple[bytes, bool]:
    """The data, smaller if that pays, and whether it is."""
    packed = zlib.compress(data, 1) if len(data) >= _SMALLEST_COMPRESSED else data
    return (packed, True) if len(packed) <= len(data) * _PAYS and packed is not data else (data, False)


def _damaged(digest: bytes) -> StorageError:
    return StorageError(f"A saved content of the undo store is damaged ({digest.hex()[:12]}).")


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
