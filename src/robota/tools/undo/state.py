"""What a path was: its kind, mode, owner, time and content, by which before and after are compared.

Paths are bytes, since a file name is. A path without a state is one where nothing is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["file", "directory", "link", "pipe", "special"]
_KINDS: Mapping[int, Kind] = {
    stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "pipe",
}  # fmt: skip


_BLOCK_BYTES = 512
"""What `st_blocks` counts, whatever the file system's blocks are."""


class PathState(Struct, frozen=True, array_like=True):
    """Short as an array: a workspace has many of them."""

    kind: Kind
    mode: int
    """Permission bits."""
    uid: int
    gid: int
    mtime_ns: int
    size: int = 0
    digest: bytes | None = None
    """SHA-256 of a file's content; none when it was not read."""
    target: bytes | None = None
    """Where a link leads, as written."""
    inode: int = 0
    """Given for a file with several names, whose content is put back without breaking them apart."""
    essence: bytes | None = None
    """Given for an index of git: what it says, whatever its bytes are."""
    sparse: bool = False
    """Whether it has holes, which take no room."""


class Manifest(Struct, frozen=True, array_like=True):
    """The states of everything in a scope at one moment."""

    states: dict[bytes, PathState]
    left_out: tuple[bytes, ...] = ()
    """What was there and was not saved."""
    trees: tuple[bytes, ...] = ()
    """What was entered, to be looked at again if the call is cut off."""
    skipped: tuple[bytes, ...] = ()
    """Trees inside of these that were not."""


class Change(Struct, frozen=True, array_like=True):
    path: bytes
    before: PathState | None
    after: PathState | None

    @property
    def visible(self) -> bool:
        """Whether it is one, and more than the time of a directory, which changes with every file in it."""
        if is_identical(self.before, self.after):
            return False
        directories = self.before is not None and self.before.kind == "directory"
        return not (directories and is_same(self.before, self.after))


def describe_stat(
    facts: os.stat_result,
    *,
    digest: bytes | None = None,
    target: bytes | None = None,
    essence: bytes | None = None,
) -> PathState:
    kind = _KINDS.get(stat.S_IFMT(facts.st_mode), "special")
    return PathState(
        kind,
        stat.S_IMODE(facts.st_mode),
        facts.st_uid,
        facts.st_gid,
        facts.st_mtime_ns,
        facts.st_size if kind == "file" else 0,
        digest,
        target,
        facts.st_ino if kind == "file" and facts.st_nlink > 1 else 0,
        essence,
        kind == "file" and facts.st_blocks * _BLOCK_BYTES < facts.st_size,
    )


def has_same_content(one: PathState | None, other: PathState | None) -> bool:
    """Whether two states hold the same; without a digest the size and the time have to do."""
    if one is None or other is None:
        return one is other
    if (one.kind, one.target) != (other.kind, other.target):
        return False
    if one.kind != "file":
        return True
    if one.digest is not None and other.digest is not None:
        return one.digest == other.digest
    return (one.size, one.mtime_ns) == (other.size, other.mtime_ns)


def is_same(one: PathState | None, other: PathState | None) -> bool:
    """Whether a person would see no difference: content and mode."""
    return has_same_content(one, other) and (one is None or other is None or one.mode == other.mode)


def is_equivalent(one: PathState | None, other: PathState | None) -> bool:
    """Whether nobody changed one into the other on purpose."""
    if one is not None and other is not None and one.essence is not None:
        return one.essence == other.essence and one.mode == other.mode
    return is_same(one, other)


def is_identical(one: PathState | None, other: PathState | None) -> bool:
    """Whether times and owners are equal as well."""
    if one is None or other is None:
        return one is other
    facts = (one.uid, one.gid, one.mtime_ns), (other.uid, other.gid, other.mtime_ns)
    return facts[0] == facts[1] and is_same(one, other)


def compare(before: Manifest, after: Mapping[bytes, PathState]) -> list[Change]:
    """What became different, sorted by path, with the other names of files that did, to be linked again."""
    left_out = frozenset(before.left_out)
    paths = [path for path in before.states.keys() | after.keys() if path not in left_out]
    differing = {path for path in paths if not is_identical(before.states.get(path), after.get(path))}
    inodes = {before.states[path].inode for path in differing & before.states.keys()} - {0}
    if inodes:
        differing.update(path for path, state in before.states.items() if state.inode in inodes)
    return [Change(path, before.states.get(path), after.get(path)) for path in sorted(differing)]


def chain(calls: Iterable[Sequence[Change]]) -> list[Change]:
    """The changes of several calls, oldest first, as those of one.

    A path goes back as far as each call found it as the one before had left it: what somebody else did in
    between is what it becomes again.
    """
    joined: dict[bytes, Change] = {}
    broken: set[bytes] = set()
    for changes in reversed(list(calls)):
        for change in changes:
            later = joined.get(change.path)
            if later is None:
                joined[change.path] = change
            elif change.path in broken or not (
                is_equivalent(later.before, change.after) or is_same(later.before, change.before)
            ):
                broken.add(change.path)
            else:
                joined[change.path] = Change(change.path, change.before, later.after)
    return [joined[path] for path in sorted(joined)]


def is_in_any(path: bytes, folders: Iterable[bytes]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip(b"/") + b"/") for folder in folders)
