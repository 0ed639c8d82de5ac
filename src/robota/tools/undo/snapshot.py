"""Which paths a call may change, how they look now, and the contents of the files among them.

A file is read once. It counts as unchanged when inode, size, modification and change time are equal. The
change time cannot be set back, but two changes may share a tick of the clock: a file changed just before it
was read is not remembered.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.permissions.paths import is_inside
from robota.tools.files.directory import CHUNK_BYTES
from robota.tools.undo.blobs import Batch
from robota.tools.undo.git import INDEX_SIGNATURE, digest_index
from robota.tools.undo.state import Manifest, PathState, describe_stat, is_in_any

_SYSTEM_TREES = ("/dev", "/proc", "/sys")
_MEMORY_DISK = "/dev/shm"
_SETTLED_NS = 2_000_000_000
"""The coarsest clocks of file systems tick every two seconds."""
_CHECK_BYTES = 32
UnprotectedCode: TypeAlias = Literal[
    "file_too_large", "too_many_files", "quota", "unreadable", "store", "outside"
]
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_READ_ATTEMPTS = 3


class Scope(Struct, frozen=True):
    """Real absolute paths: the directory a path is in goes through no link."""

    trees: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Single ones: of a directory, not what is in it."""

    def join(self, other: Scope) -> Scope:
        return Scope(_outermost((*self.trees, *other.trees)), (*self.paths, *other.paths))


def cover(paths: Iterable[str], *, shallow: Iterable[str] = ()) -> Scope:
    """The scope of these paths and of the directories they are in; `shallow` directories are not entered."""
    trees: list[str] = []
    single: list[str] = []
    for path in paths:
        tree = resolve_parent(path)
        while not os.path.lexists(os.path.dirname(tree)):  # the directories that would be made for it
            tree = os.path.dirname(tree)
        trees.append(tree)
        single.append(os.path.dirname(tree))
    for path in shallow:
        real = resolve_parent(path)
        single += (real, os.path.dirname(real))
    return Scope(_outermost(trees), tuple(dict.fromkeys(single)))


def resolve_parent(path: str) -> str:
    """The path with links resolved in the directories above it, not in its last name."""
    head, name = os.path.split(path.rstrip("/") or "/")
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(head), name)


def is_system_path(path: str) -> bool:
    """Whether it is not a file of a person: devices and the kernel's own."""
    return not is_inside(path, _MEMORY_DISK) and any(is_inside(path, tree) for tree in _SYSTEM_TREES)


def _outermost(trees: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for tree in sorted(set(trees), key=lambda path: path.replace("/", "\0")):  # what is inside comes next
        if not is_system_path(tree) and not (kept and is_inside(tree, kept[-1])):
            kept.append(tree)
    return tuple(kept)


class KnownFile(Struct, frozen=True, array_like=True):
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    digest: bytes
    stored: bool
    """Whether the content is in the store."""


class HashCache(Struct, eq=False):
    """`stored` holds as long as nothing is removed from the store; who removes something clears the cache."""

    known: dict[bytes, KnownFile] = {}
    complete: bool = False
    """Whether it was made by a look at a whole workspace."""
    changed: bool = False

    def look_up(self, path: bytes, facts: os.stat_result) -> KnownFile | None:
        known = self.known.get(path)
        if known is None or _identity(facts) != (known.inode, known.size, known.mtime_ns, known.ctime_ns):
            return None
        return known

    def remember(self, path: bytes, facts: os.stat_result, digest: bytes, *, stored: bool) -> None:
        if max(facts.st_ctime_ns, facts.st_mtime_ns) > time.time_ns() - _SETTLED_NS:
            self.known.pop(path, None)
            return
        self.known[path] = KnownFile(*_identity(facts), digest, stored)
        self.changed = True

    def clear(self) -> None:
        self.known = {}
        self.changed, self.complete = True, False

    def drop_missing(self, trees: tuple[bytes, ...], seen: Collection[bytes]) -> None:
        gone = [path for path in self.known if path not in seen and is_in_any(path, trees)]
        for path in gone:
            del self.known[path]
        self.changed = self.changed or bool(gone) or not self.complete
        self.complete = True

    def encode(self) -> bytes:
        body = msgspec.msgpack.encode(self.known)
        return sha256(body).digest() + body


def decode_cache(data: bytes) -> HashCache:
    """A cache that is damaged is an empty one."""
    body = data[_CHECK_BYTES:]
    if sha256(body).digest() != data[:_CHECK_BYTES]:
        return HashCache()
    return HashCache(msgspec.msgpack.decode(body, type=dict[bytes, KnownFile]), complete=True)


def _identity(facts: os.stat_result) -> tuple[int, int, int, int]:
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


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


class Scanner(Struct):
    """Looks at paths. Without a batch contents are only hashed, and large ones not even that."""

    cache: HashCache
    batch: Batch | None = None
    limits: Limits | None = None
    skip: tuple[bytes, ...] = ()
    """Trees that are not looked at."""
    made: Mapping[bytes, PathState] = {}
    """What was just written and checked: as long as size and time say so, it is not read again."""
    states: dict[bytes, PathState] = {}
    problems: dict[bytes, Unprotected] = {}

    def scan(self, scope: Scope, workspace: str = "") -> Snapshot:
        """The states in the scope, and of other names in the workspace that files in it have."""
        self.look_at(map(os.fsencode, scope.paths))
        for tree in scope.trees:
            self._walk(os.fsencode(tree))
        inodes = {state.inode for state in self.states.values()} - {0}
        if inodes and workspace:
            for name in _find_names(os.fsencode(workspace), inodes, self.skip):
                if name not in self.states:
                    self.look(name)
        left_out = tuple(sorted(self.problems))
        trees = tuple(map(os.fsencode, scope.trees))
        manifest = Manifest(dict(sorted(self.states.items())), left_out, trees, self.skip)
        return Snapshot(manifest, tuple(self.problems[path] for path in left_out))

    def measure(self, scope: Scope) -> int:
        """About how many bytes a snapshot would read; raises when there are too many files."""
        size, count, pending = 0, 0, [os.fsencode(tree) for tree in scope.trees]
        limits = self.limits or Limits()
        skipped = frozenset(self.skip)
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

    def look_at(self, paths: Iterable[bytes]) -> None:
        """The states of these paths; what is found only through one of them that is a link is not there."""
        links: set[bytes] = set()
        for path in sorted(paths):
            if links and os.path.dirname(path) in links:
                links.add(path)
                continue
            state = self.look(path)
            if state is not None and state.kind == "link":
                links.add(path)

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
            state = describe_stat(facts) if self.batch is None else None
        if state is not None:
            self.states[path] = state
        if self.batch and self.limits and len(self.states) > self.limits.files:
            raise TooMany
        return state

    def _walk(self, top: bytes) -> None:
        pending = [] if is_in_any(top, self.skip) else [top]
        skipped = frozenset(self.skip)
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
        made = self.made.get(path)
        if made is not None and (made.size, made.mtime_ns) == (facts.st_size, facts.st_mtime_ns):
            return describe_stat(facts, digest=made.digest, essence=made.essence)
        known = self.cache.look_up(path, facts)
        if known is not None and (known.stored or self.batch is None):
            return describe_stat(facts, digest=known.digest)
        if self.limits is not None and facts.st_size > self.limits.file_bytes:
            if self.batch is None:
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
            self.cache.remember(path, facts, digest, stored=self.batch is not None)
        return describe_stat(facts, digest=digest, essence=essence)

    def _keep(self, descriptor: int, size: int) -> tuple[bytes, bytes | None]:
        """The digest of the content, and what it says if it is an index of git."""
        data = os.read(descriptor, CHUNK_BYTES)
        if data.startswith(INDEX_SIGNATURE):
            data += b"".join(iter(lambda: os.read(descriptor, CHUNK_BYTES), b""))
            digest = sha256(data).digest() if self.batch is None else self.batch.add(data)
            return digest, digest_index(data)
        if self.batch is None:
            check = sha256(data)
            while data := os.read(descriptor, CHUNK_BYTES):
                check.update(data)
            return check.digest(), None
        if size <= len(data):
            return self.batch.add(data), None
        os.lseek(descriptor, 0, os.SEEK_SET)
        return self.batch.add_file(descriptor), None

    def _leave_out(self, path: bytes, code: UnprotectedCode, why: str) -> None:
        name = os.fsdecode(path)
        reasons = {
            "file_too_large": f"{name} is too large to be saved for undo ({why}).",
            "unreadable": f"{name} cannot be read and so not be saved for undo ({why}).",
        }
        self.problems[path] = Unprotected(code, reasons[code])


def _find_names(top: bytes, inodes: Collection[int], skip: Collection[bytes]) -> Iterator[bytes]:
    """Names below a directory that stand for one of these files, as far as directory entries tell."""
    pending = [top]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending += [] if entry.path in skip else [entry.path]
                elif entry.inode() in inodes and entry.is_file(follow_symlinks=False):
                    yield entry.path
