"""Which entries go to make room, and which contents nobody needs then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from robota.tools.undo.entry import OpenEntry, Removal, RemovedEntry


def collect(
    pairs: Sequence[OpenEntry],
    sizes: Mapping[bytes, int],
    quota_bytes: int,
    needed_by: Callable[[OpenEntry], set[bytes]],
    is_running: Callable[[str], bool],
) -> tuple[Removal, list[OpenEntry], list[bytes]]:
    """The report, the entries that stay and the contents that go.

    Oldest entries first, until what the others need fits. One whose call still runs always stays.
    """
    needs = [needed_by(pair) for pair in pairs]
    named = set[bytes]().union(*needs)
    uses: dict[bytes, int] = {}
    for need in needs:
        for digest in need:
            uses[digest] = uses.get(digest, 0) + 1
    total = sum(sizes.get(digest, 0) for digest in named)
    keep: list[OpenEntry] = []
    gone: list[OpenEntry] = []
    for pair, need in zip(pairs, needs, strict=True):
        if total <= quota_bytes or is_running(pair.begun.id):
            keep.append(pair)
            continue
        gone.append(pair)
        for digest in need:
            uses[digest] -= 1
            total -= 0 if uses[digest] else sizes.get(digest, 0)
    blobs = [digest for digest in sizes if not uses.get(digest)]
    entries = tuple(
        RemovedEntry(entry.id, entry.at, entry.label, entry.files) for entry in (pair.entry for pair in gone)
    )
    removal = Removal(
        done=False,
        entries=entries,
        blobs=len(blobs),
        bytes_before=sum(sizes.values()),
        bytes_after=total,
        leftovers=sum(digest not in named for digest in sizes),
    )
    return removal, keep, blobs
