"""The list of saved calls: one line for each beginning and each end, every line with its checksum.

Lines are only added. What a kill left of a line is passed over, and never joined to the next one. Only
`rewrite`, which takes the place of the whole file in one step, leaves something out. `collect` says what that
may be when there is too little room.
"""

from __future__ import annotations

import math
import os
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import sha256
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.errors import StorageError
from robota.tools.files.directory import SystemCalls, open_descriptor, write_all
from robota.tools.undo.blobs import Batch, BlobStore
from robota.tools.undo.packs import CREATE, sync_path
from robota.tools.undo.snapshot import Unprotected
from robota.tools.undo.state import Change, Manifest, PathState

_CHECK_CHARACTERS = 16
Action: TypeAlias = Literal["restore", "delete", "change mode or time"]


class Begun(Struct, frozen=True, kw_only=True, tag="begun", rename="camel", omit_defaults=True):
    """Everything that the call may change is saved; written before it runs."""

    id: str
    at: float
    label: str
    manifest: str
    """The states before, as `keep_list` has put them."""
    stored: int
    tool: str = ""
    session_id: str = ""
    call_id: str = ""
    undoes: tuple[str, ...] = ()
    """The entries that this one takes back."""
    unprotected: tuple[str, ...] = ()


class Ended(Struct, frozen=True, kw_only=True, tag="ended", rename="camel"):
    id: str
    at: float
    changes: str
    """What became different, likewise; it takes the place of the manifest."""
    files: int
    size: int
    """Bytes of the files before."""
    stored: int
    """Negative when the end freed more than it took: the manifest is not needed any more."""


class Carried(Struct, frozen=True, tag="carried"):
    """Room that is in use although the records that took it are gone; the first record after `rewrite`."""

    stored: int
    generation: str = ""
    """No two files begin alike."""


Record: TypeAlias = Begun | Ended | Carried
_DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


class Journal(Struct):
    """What the file says, added up as it grows: nothing here costs more the longer it is."""

    path: str
    system: SystemCalls
    seen: tuple[int, int, bytes] | None = None
    """Device, inode and first line of the file at the last refresh: an inode alone is soon used again."""
    offset: int = 0
    pairs: dict[str, OpenEntry] = {}
    """The entries in the order they began, as they were at the last refresh or append."""
    unfinished: dict[str, OpenEntry] = {}
    """Those whose call runs, or never ended."""
    used: int = 0
    """Bytes that the contents of all records take."""
    oldest: float = math.inf
    """When the first of the entries began."""

    def refresh(self) -> bool:
        """Read what was added; True when the file is another one and everything known is out of date."""
        try:
            with open(self.path, "rb") as file:
                facts = os.fstat(file.fileno())
                now = facts.st_dev, facts.st_ino, file.readline()
                fresh = now != self.seen
                if fresh:
                    self._forget(now)
                file.seek(self.offset)
                data = file.read()
        except FileNotFoundError:
            fresh = self.seen is not None
            self._forget(None)
            return fresh
        whole = data.rfind(b"\n") + 1
        self.offset += whole
        for line in data[:whole].split(b"\n"):
            if record := _decode(line):
                self._add(record)
        return fresh

    def _forget(self, seen: tuple[int, int, bytes] | None) -> None:
        self.seen, self.offset, self.used, self.oldest = seen, 0, 0, math.inf
        self.pairs, self.unfinished = {}, {}

    def _add(self, record: Record) -> None:
        self.used += record.stored
        if isinstance(record, Begun):
            self.pairs[record.id] = self.unfinished[record.id] = OpenEntry(record)
            self.oldest = min(self.oldest, record.at)
        elif isinstance(record, Ended) and record.id in self.pairs:
            self.pairs[record.id] = OpenEntry(self.pairs[record.id].begun, record)
            self.unfinished.pop(record.id, None)

    def append(self, record: Record) -> None:
        new = not os.path.lexists(self.path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with open_descriptor(self.system, self.path, flags, 0o600) as descriptor:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            write_all(self.system, descriptor, b"\n" * torn + _encode(record))
            self.system.fsync(descriptor)
        if new:
            sync_path(self.system, os.path.dirname(self.path))
        self.refresh()

    def rewrite(self, records: list[Record], temporary: str) -> None:
        path = f"{temporary}/{os.urandom(8).hex()}"
        with open_descriptor(self.system, path, CREATE, 0o600) as descriptor:
            write_all(self.system, descriptor, b"".join(map(_encode, records)))
            self.system.fsync(descriptor)
        self.system.replace(path, self.path)
        sync_path(self.system, os.path.dirname(self.path))
        self.refresh()


def _encode(record: Record) -> bytes:
    body = msgspec.json.encode(record)
    return _checksum(body) + b" " + body + b"\n"


def _decode(line: bytes) -> Record | None:
    check, _, body = line.partition(b" ")
    if check != _checksum(body):
        return None
    try:
        return _DECODER.decode(body)
    except msgspec.ValidationError as error:
        raise StorageError("The undo store was written by a newer version; update robota.") from error


def _checksum(body: bytes) -> bytes:
    return sha256(body).hexdigest()[:_CHECK_CHARACTERS].encode()


class Entry(Struct, frozen=True, kw_only=True):
    id: str
    at: float
    label: str
    ended: bool = False
    """False while the call runs, and for ever when the process died meanwhile."""
    files: int = 0
    size: int = 0
    """Bytes of what was changed or deleted."""
    tool: str = ""
    session_id: str = ""
    call_id: str = ""
    undoes: tuple[str, ...] = ()
    """The entries that this one took back."""
    unprotected: tuple[str, ...] = ()


class Saved(Struct, frozen=True):
    """What `save` did. Without an id nothing was saved."""

    entry_id: str | None
    unprotected: tuple[Unprotected, ...] = ()
    notices: tuple[str, ...] = ()
    """Which older entries had to go."""


class PathPreview(Struct, frozen=True, kw_only=True):
    path: str
    action: Action
    before: PathState | None
    now: PathState | None
    conflict: bool
    """Whether it became something else after the call ended, or nobody saw how the call left it."""

    @property
    def size(self) -> int:
        """Bytes that would be written."""
        return self.before.size if self.before is not None and self.action == "restore" else 0


class Preview(Struct, frozen=True):
    entries: tuple[Entry, ...]
    paths: tuple[PathPreview, ...]

    @property
    def size(self) -> int:
        return sum(each.size for each in self.paths)


class KeptPath(Struct, frozen=True):
    path: str
    reason: str


class Undone(Struct, frozen=True):
    entry_id: str | None
    """The entry of this undo, by which it can be undone; none when there was nothing to do."""
    restored: tuple[str, ...] = ()
    kept: tuple[KeptPath, ...] = ()
    """What was left as it is: changed meanwhile, or not possible."""


class Removal(Struct, frozen=True, kw_only=True):
    """What `gc` removed, or would remove."""

    done: bool
    entries: tuple[Entry, ...]
    blobs: int
    bytes_before: int
    bytes_after: int
    leftovers: int = 0
    """Among the blobs, those that no entry ever named: a process died while it saved them."""

    def describe(self, reason: str) -> list[str]:
        """A sentence for people, if anything went that they could have wanted."""
        if not self.entries:
            return []
        count, last = len(self.entries), time.strftime("%Y-%m-%d %H:%M", time.localtime(self.entries[-1].at))
        what = "The oldest undo entry was" if count == 1 else f"The {count} oldest undo entries were"
        return [f"{what} removed (up to {last}), because {reason}."]


class OpenEntry(Struct, frozen=True):
    """A pair of records."""

    begun: Begun
    ended: Ended | None = None

    @property
    def entry(self) -> Entry:
        entry = msgspec.convert(self.begun, Entry, from_attributes=True)
        if self.ended is None:
            return entry
        return msgspec.structs.replace(entry, ended=True, files=self.ended.files, size=self.ended.size)


# --- what the records hold, and the room it takes ------------------------------------------------------

INLINE_BYTES = 2048
"""A list up to this size stands in the record itself: as a content it would cost three waits for the disk."""


def keep_list(batch: Batch, value: Manifest | list[Change]) -> str:
    """Put a list where `read_states` and `read_changes` find it: what the record says of it."""
    data = msgspec.msgpack.encode(value)
    return f"={b64encode(data).decode()}" if len(data) <= INLINE_BYTES else batch.add(data, alone=True).hex()


def find_content(kept: str) -> set[bytes]:
    """The content that holds a list, if the record does not."""
    return set() if kept.startswith("=") else {bytes.fromhex(kept)}


def _read_list(blobs: BlobStore, kept: str) -> bytes:
    return b64decode(kept[1:]) if kept.startswith("=") else blobs.read(bytes.fromhex(kept))


def read_states(blobs: BlobStore, begun: Begun) -> Manifest:
    """What was there before a call."""
    return msgspec.msgpack.decode(_read_list(blobs, begun.manifest), type=Manifest)


def read_changes(blobs: BlobStore, ended: Ended) -> list[Change]:
    """What a call made different."""
    return msgspec.msgpack.decode(_read_list(blobs, ended.changes), type=list[Change])


def find_needed(blobs: BlobStore, pair: OpenEntry) -> set[bytes]:
    """The contents without which an entry could not be undone."""
    own = pair.begun.manifest if pair.ended is None else pair.ended.changes
    states: Iterable[PathState | None]
    try:
        if pair.ended is None:
            states = read_states(blobs, pair.begun).states.values()
        else:
            states = [change.before for change in read_changes(blobs, pair.ended)]
    except StorageError:
        return set()  # such an entry cannot be undone any more, whatever is kept for it
    digests = (state.digest for state in states if state is not None and state.digest is not None)
    return {*find_content(own), *digests}


def collect(
    pairs: Sequence[OpenEntry],
    blobs: BlobStore,
    quota_bytes: float,
    is_running: Callable[[str], bool],
    *,
    since: float = 0.0,
    wanted: Collection[bytes] = (),
) -> tuple[Removal, list[OpenEntry], list[bytes]]:
    """The report, the entries that stay and the contents that go.

    Those that began before `since` go, and then the oldest ones until what the others need fits. One whose
    call still runs always stays, and so do `wanted` contents.
    """
    sizes, needs = blobs.sizes(), [find_needed(blobs, pair) for pair in pairs]
    uses = Counter(digest for need in (*needs, frozenset(wanted)) for digest in need)
    known = frozenset(uses)
    total = sum(sizes.get(digest, 0) for digest in known)
    keep: list[OpenEntry] = []
    gone: list[OpenEntry] = []
    for pair, need in zip(pairs, needs, strict=True):
        if (total <= quota_bytes and pair.begun.at >= since) or is_running(pair.begun.id):
            keep.append(pair)
            continue
        gone.append(pair)
        for digest in need:
            uses[digest] -= 1
            total -= 0 if uses[digest] else sizes.get(digest, 0)
    unused = [digest for digest in sizes if not uses[digest]]
    removal = Removal(
        done=False,
        entries=tuple(pair.entry for pair in gone),
        blobs=len(unused),
        bytes_before=sum(sizes.values()),
        bytes_after=total,
        leftovers=sum(digest not in known for digest in sizes),
    )
    return removal, keep, unused
