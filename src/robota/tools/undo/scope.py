"""Which paths a call may change: whole trees, and single paths that are not entered."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct

_SYSTEM_TREES = ("/dev", "/proc", "/sys")


class Scope(Struct, frozen=True):
    """Real absolute paths: the directory a path is in goes through no link."""

    trees: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def join(self, other: Scope) -> Scope:
        return Scope(_outermost((*self.trees, *other.trees)), (*self.places, *other.places))


def cover(paths: Iterable[str], *, shallow: Iterable[str] = ()) -> Scope:
    """The scope of these paths and of the directories they are in; `shallow` directories are not entered."""
    trees: list[str] = []
    places: list[str] = []
    for path in paths:
        tree = resolve_parent(path)
        while not os.path.lexists(os.path.dirname(tree)):  # the directories that would be made for it
            tree = os.path.dirname(tree)
        trees.append(tree)
        places.append(os.path.dirname(tree))
    for path in shallow:
        place = resolve_parent(path)
        places += (place, os.path.dirname(place))
    return Scope(_outermost(trees), tuple(dict.fromkeys(places)))


def resolve_parent(path: str) -> str:
    """The path with links resolved in the directories above it, not in its last name."""
    head, name = os.path.split(path.rstrip("/") or "/")
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(head), name)


def lies_in(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree.rstrip("/") + "/")


def is_system_path(path: str) -> bool:
    """Whether it is no file of a person: devices and the kernel's own."""
    return any(lies_in(path, tree) for tree in _SYSTEM_TREES)


def _outermost(trees: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for tree in sorted(set(trees)):
        if not is_system_path(tree) and not any(lies_in(tree, outer) for outer in kept):
            kept.append(tree)
    return tuple(kept)
