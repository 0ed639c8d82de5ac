"""Room in the undo store: what each entry needs, and which entries go when there is too little."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from robota.core.errors import StorageError
from robota.tools.undo.blobs import Batch, BlobStore
from robota.tools.undo.journal import Begun, Ended, OpenEntry, Removal
from robota.tools.undo.state import Change, Manifest, PathState

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
