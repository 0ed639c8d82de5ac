"""Looking at everything in a scope, and keeping the contents of its files.

A file is read once: later snapshots know by its inode, size and times that it is still the same.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from robota.tools.undo.blobs import CHUNK_BYTES, Batch
from robota.tools.undo.git_index import INDEX_SIGNATURE, digest_index
from robota.tools.undo.hash_cache import HashCache
from robota.tools.undo.scope import Scope
from robota.tools.undo.state import Manifest, PathState, describe_stat, is_inside

UnprotectedCode: TypeAlias = Literal["file_too_large", "too_many_files", "quota", "unreadable", "store"]
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_READ_ATTEMPTS = 3


class Unprotected(Struct, frozen=True):
    """Something that undo could not bring back, said before the call runs."""

    code: UnprotectedCode
    reason: str


class Limits(Struct, frozen=True, kw_only=True):
    file_bytes: int = 256 * 1024 * 1024
    files: int = 200_000


class TooMany(Exception):
    """There are more files in the scope than may be saved at once."""


class Snapshot(NamedTuple):
    manifest: Manifest
    unprotected: tuple[Unprotected, ...]


class Camera:
    """Takes snapshots. Without a batch contents are only hashed, and large ones not even that."""

    __slots__ = ("_batch", "_cache", "_limits", "_problems", "_skip", "states")

    def __init__(
        self,
        cache: HashCache,
        *,
        batch: Batch | None = None,
        limits: Limits | None = None,
        skip: tuple[bytes, ...] = (),
    ) -> None:
        """`skip`: trees that are not looked at."""
        self._cache = cache
        self._batch = batch
        self._limits = limits
        self._skip = skip
        self.states: dict[bytes, PathState] = {}
        self._problems: dict[bytes, Unprotected] = {}

    def take(self, scope: Scope) -> Snapshot:
        for place in scope.places:
            self.look(os.fsencode(place))
        for tree in scope.trees:
            self._walk(os.fsencode(tree))
        left_out = tuple(sorted(self._problems))
        manifest = Manifest(
            dict(sorted(self.states.items())),
            left_out,
            tuple(map(os.fsencode, scope.trees)),
            self._skip,
        )
        return Snapshot(manifest, tuple(self._problems[path] for path in left_out))

    def measure(self, scope: Scope) -> int:
        """About how many bytes a snapshot would read; raises when there are too many files."""
        size, count, pending = 0, 0, [os.fsencode(tree) for tree in scope.trees]
        limits = self._limits or Limits()
        skipped = frozenset(self._skip)
        while pending:
            path = pending.pop()
            with suppress(OSError), os.scandir(path) as names:
                for entry in names:
                    count += 1
                    if count > limits.files:
                        raise TooMany
                    if entry.path in skipped:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        bytes_here = entry.stat(follow_symlinks=False).st_size
                        size += bytes_here if bytes_here <= limits.file_bytes else 0
        return size

    def look(self, path: bytes) -> PathState | None:
        """The state of one path; it becomes part of the snapshot."""
        try:
            facts = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._leave_out(path, "unreadable", error.strerror or str(error))
            return None
        try:
            state = self._describe(path, facts)
        except OSError as error:
            self._leave_out(path, "unreadable", error.strerror or str(error))
            state = describe_stat(facts) if self._batch is None else None
        if state is not None:
            self.states[path] = state
        if self._batch and self._limits and len(self.states) > self._limits.files:
            raise TooMany
        return state

    def _walk(self, top: bytes) -> None:
        pending = [] if is_inside(top, self._skip) else [top]
        skipped = frozenset(self._skip)
        while pending:
            path = pending.pop()
            if path in skipped:
                continue
            state = self.look(path)
            if state is not None and state.kind == "directory":
                pending.extend(self._enter(path))

    def _enter(self, path: bytes) -> Iterator[bytes]:
        try:
            names = os.listdir(path)
        except OSError as error:
            self._leave_out(path, "unreadable", error.strerror or str(error))
            return
        yield from (path.rstrip(b"/") + b"/" + name for name in names)

    def _describe(self, path: bytes, facts: os.stat_result) -> PathState | None:
        if stat.S_ISLNK(facts.st_mode):
            return describe_stat(facts, target=os.readlink(path))
        if not stat.S_ISREG(facts.st_mode):
            return describe_stat(facts)
        known = self._cache.look_up(path, facts)
        if known is not None and (known.stored or self._batch is None):
            return describe_stat(facts, digest=known.digest)
        if self._limits is not None and facts.st_size > self._limits.file_bytes:
            if self._batch is None:
                return describe_stat(facts)
            self._leave_out(path, "file_too_large", f"{facts.st_size:,} bytes")
            return None
        return self._read(path)

    def _read(self, path: bytes) -> PathState:
        descriptor = os.open(path, _OPEN)
        try:
            for _ in range(_READ_ATTEMPTS):
                facts = os.fstat(descriptor)
                digest, essence = self._keep(descriptor, facts.st_size)
                after = os.fstat(descriptor)
                if (facts.st_mtime_ns, facts.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns):
                    break
                os.lseek(descriptor, 0, os.SEEK_SET)  # somebody wrote while it was read
        finally:
            os.close(descriptor)
        if essence is None:  # the cache knows digests only
            self._cache.remember(path, facts, digest, stored=self._batch is not None)
        return describe_stat(facts, digest=digest, essence=essence)

    def _keep(self, descriptor: int, size: int) -> tuple[bytes, bytes | None]:
        """The digest of the content, and what it says if it is an index of git."""
        data = os.read(descriptor, CHUNK_BYTES)
        if data.startswith(INDEX_SIGNATURE):
            data += b"".join(iter(lambda: os.read(descriptor, CHUNK_BYTES), b""))
            digest = sha256(data).digest() if self._batch is None else self._batch.add(data)
            return digest, digest_index(data)
        if self._batch is None:
            check = sha256(data)
            while data := os.read(descriptor, CHUNK_BYTES):
                check.update(data)
            return check.digest(), None
        if size <= len(data):
            return self._batch.add(data), None
        os.lseek(descriptor, 0, os.SEEK_SET)
        return self._batch.add_file(descriptor), None

    def _leave_out(self, path: bytes, code: UnprotectedCode, why: str) -> None:
        name = os.fsdecode(path)
        reasons = {
            "file_too_large": f"{name} is too large to be saved for undo ({why}).",
            "unreadable": f"{name} cannot be read and so not be saved for undo ({why}).",
        }
        self._problems[path] = Unprotected(code, reasons[code])
