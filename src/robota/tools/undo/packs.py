"""Many contents in one file: written one after the other and brought to the disk at once.

A pack ends with an index of its contents; how many they are is part of its name. It has that name only when
it is whole and on the disk, and is never changed: what is still needed of one becomes another.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct

from robota.tools.files.directory import CHUNK_BYTES, SystemCalls, open_descriptor, write_all

CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
PACK_BYTES = 64 * 1024 * 1024
"""A pack is closed when it is larger: no more than this has to be copied to free a part of it."""
_RECORD = struct.Struct(">32sQI?")
"""Digest, offset, size, and whether it is compressed."""


class Place(NamedTuple):
    pack: str
    offset: int
    size: int
    compressed: bool

    @property
    def room(self) -> int:
        return self.size + _RECORD.size


class Packs(Struct, eq=False):
    """The packs of a store. `refresh` before use: other processes add and remove some."""

    base: str
    system: SystemCalls
    _fresh: bool = False
    _names: frozenset[str] = frozenset()
    _places: dict[bytes, Place] = {}
    _window: tuple[str, int, bytes] = "", 0, b""
    """What was read last; the next content is mostly beside it."""

    def refresh(self) -> None:
        self._fresh = False
        self._window = "", 0, b""

    @property
    def places(self) -> Mapping[bytes, Place]:
        if not self._fresh:
            self._look()
        return self._places

    def _look(self) -> None:
        found = os.listdir(self.base) if os.path.isdir(self.base) else ()
        names = frozenset(
            name for name in found if name.rpartition(".")[2].isdecimal()
        )  # others are not ours
        if not self._names <= names:
            self._names, self._places = frozenset(), {}
        for name in sorted(names - self._names):
            self._places.update(self._read_index(name))
        self._names, self._fresh = names, True

    def _read_index(self, name: str) -> dict[bytes, Place]:
        size = _count(name) * _RECORD.size
        with open(self._path(name), "rb") as file:
            if file.seek(0, os.SEEK_END) < size:
                return {}  # cut by somebody: its contents are missed when they are wanted
            file.seek(-size, os.SEEK_END)
            records = _RECORD.iter_unpack(file.read(size))
        return {digest: Place(name, *place) for digest, *place in records}

    def read(self, place: Place) -> bytes:
        """The bytes of a content as they are in the pack."""
        pack, start, data = self._window
        if pack != place.pack or not start <= place.offset <= start + len(data) - place.size:
            start = place.offset - place.offset % CHUNK_BYTES
            end = max(start + CHUNK_BYTES, place.offset + place.size)
            with open(self._path(place.pack), "rb") as file:
                file.seek(start)
                data = file.read(end - start)
            self._window = place.pack, start, data
        return data[place.offset - start : place.offset - start + place.size]

    def settle(self, packs: Collection[NewPack]) -> None:
        """Give packs that are on the disk their names."""
        if not packs:
            return
        if not os.path.isdir(self.base):
            self.system.mkdir(self.base, 0o700)
            sync_path(self.system, os.path.dirname(self.base))
        for pack in packs:
            self.system.replace(pack.path, self._path(pack.name))
        sync_path(self.system, self.base)
        self._fresh = False

    def remove(self, digests: Collection[bytes], temporary: str) -> None:
        """Free the room of these contents; `temporary` is a directory on the same disk."""
        places = self.places
        kept: dict[str, dict[bytes, Place]] = {name: {} for name in self._names}
        for digest, place in places.items():
            if digest not in digests:
                kept[place.pack][digest] = place
        partly = {name: rest for name, rest in kept.items() if len(rest) < _count(name)}
        for name in sorted(partly, key=lambda name: len(partly[name])):  # first what takes no room to remove
            if partly[name]:
                self._copy(partly[name], temporary)
            self.system.unlink(self._path(name))
        self.refresh()

    def _copy(self, places: Mapping[bytes, Place], temporary: str) -> None:
        pack = NewPack(self.system, temporary)
        try:
            for digest, place in sorted(places.items(), key=lambda item: item[1].offset):
                pack.add(digest, self.read(place), compressed=place.compressed)
            pack.close()
            self.settle([pack])
        finally:
            pack.discard()

    def _path(self, name: str) -> str:
        return f"{self.base}/{name}"


def _count(name: str) -> int:
    return int(name.rpartition(".")[2])


def sync_path(system: SystemCalls, path: str | bytes) -> None:
    with open_descriptor(system, path, os.O_RDONLY | os.O_CLOEXEC) as descriptor:
        system.fsync(descriptor)


class NewPack:
    """A pack that is being written."""

    __slots__ = ("_descriptor", "_index", "_system", "_unwritten", "path", "size")

    def __init__(self, system: SystemCalls, temporary: str) -> None:
        self.path = f"{temporary}/{os.urandom(8).hex()}"
        self.size = 0
        """Of the contents, with those that are still in memory."""
        self._system = system
        self._index: dict[bytes, bytes] = {}
        self._unwritten = bytearray()
        self._descriptor = system.open(self.path, CREATE, 0o600)

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._index

    @property
    def name(self) -> str:
        return f"{os.path.basename(self.path)}.{len(self._index)}"

    @property
    def room(self) -> int:
        return self.size + len(self._index) * _RECORD.size

    def add(self, digest: bytes, data: bytes, *, compressed: bool) -> None:
        self._index[digest] = _RECORD.pack(digest, self.size, len(data), compressed)
        self.size += len(data)
        self._unwritten += data
        if len(self._unwritten) >= CHUNK_BYTES:
            self._write(b"")

    def close(self) -> None:
        """Complete it and bring it to the disk."""
        self._write(b"".join(self._index.values()))
        self._system.fsync(self._descriptor)

    def _write(self, more: bytes) -> None:
        data, self._unwritten = bytes(self._unwritten) + more, bytearray()
        write_all(self._system, self._descriptor, data)

    def discard(self) -> None:
        """Let go of it, and of the file if it was not given its name."""
        self._system.close(self._descriptor)
        with suppress(FileNotFoundError):
            self._system.unlink(self.path)
