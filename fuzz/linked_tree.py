"""Random directory trees with links, for questions about where a path really leads."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path


def build_tree(rng: random.Random, root: Path) -> list[str]:
    """A random directory tree with links (loops and dangling ones included); returns the names used in it."""
    names = ["a", "b", "c", "d"]
    places = [root]
    for _ in range(12):
        place = rng.choice(places) / rng.choice(names)
        if place.is_symlink() or place.exists():
            continue
        kind = rng.random()
        if kind < 0.5:
            place.mkdir()
            places.append(place)
        elif kind < 0.7:
            place.write_text("x")
        else:
            steps = [rng.choice((*names, "..")) for _ in range(rng.randint(1, 3))]
            place.symlink_to(Path(rng.choice(("", str(root))), *steps))
    return names


def leads_nowhere(path: Path) -> bool:
    """Whether links in this path run in a circle, so that no file could ever be opened through it."""
    real = Path(os.path.realpath(path))
    if any(place.is_symlink() for place in (real, *real.parents)):
        return True
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def list_links(root: Path) -> str:
    links = {str(path.relative_to(root)): os.readlink(path) for path in root.rglob("*") if path.is_symlink()}
    return f"\n    links: {links}"
