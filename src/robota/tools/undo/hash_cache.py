"""Which content a file had when it was last read, so that a file that did not change is not read again.

A file counts as unchanged when inode, size, modification and change time are equal. The change time cannot be
set back, but two changes may share a tick of the clock: a file changed just before it was read is not
remembered.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from hashlib import sha256

import msgspec
from msgspec import Struct

from robota.tools.undo.state import is_inside

_SETTLED_NS = 2_000_000_000
"""The coarsest clocks of file systems tick every two seconds."""
_CHECK_BYTES = 32


class KnownFile(Struct, frozen=True, array_like=True):
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    digest: bytes
    stored: bool
    """Whether the content is in the store."""


class HashCache:
    """`stored` holds as long as nothing is removed from the store; who removes something clears the cache."""

    __slots__ = ("_known", "changed", "complete")

    def __init__(self, known: dict[bytes, KnownFile] | None = None) -> None:
        self._known = known or {}
        self.changed = False
        self.complete = known is not None
        """Whether it was made by a look at a whole workspace."""

    def look_up(self, path: bytes, facts: os.stat_result) -> KnownFile | None:
        known = self._known.get(path)
        if known is None or _identity(facts) != (known.inode, known.size, known.mtime_ns, known.ctime_ns):
            return None
        return known

    def remember(self, path: bytes, facts: os.stat_result, digest: bytes, *, stored: bool) -> None:
        if max(facts.st_ctime_ns, facts.st_mtime_ns) > time.time_ns() - _SETTLED_NS:
            self._known.pop(path, None)
            return
        self._known[path] = KnownFile(*_identity(facts), digest, stored)
        self.changed = True

    def clear(self) -> None:
        self._known.clear()
        self.changed, self.complete = True, False

    def drop_missing(self, trees: tuple[bytes, ...], seen: Collection[bytes]) -> None:
        gone = [path for path in self._known if path not in seen and is_inside(path, trees)]
        for path in gone:
            del self._known[path]
        self.changed = self.changed or bool(gone) or not self.complete
        self.complete = True

    def encode(self) -> bytes:
        body = msgspec.msgpack.encode(self._known)
        return sha256(body).digest() + body


def decode_cache(data: bytes) -> HashCache:
    """A cache that is damaged is an empty one."""
    body = data[_CHECK_BYTES:]
    if sha256(body).digest() != data[:_CHECK_BYTES]:
        return HashCache()
    return HashCache(msgspec.msgpack.decode(body, type=dict[bytes, KnownFile]))


def _identity(facts: os.stat_result) -> tuple[int, int, int, int]:
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
