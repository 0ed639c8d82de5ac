"""Finding names by a few of their letters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
_BREAKS = "/-_. :"


def score(needle: str, name: str) -> int | None:
    """How badly a name fits, `None` if it does not have the letters in this order: 0 is best. Letters that
    stand together or begin a word fit better, and of equals the shorter."""
    needle, low = needle.casefold(), name.casefold()
    at = low.rfind(needle)
    if at >= 0:
        begins = at == 0 or low[at - 1] in _BREAKS
        return len(name) + (0 if at == 0 else 100 if begins else 200)
    worse, at = 1000, -1
    for letter in needle:
        found = low.find(letter, at + 1)
        if found < 0:
            return None
        if found != at + 1 and (found == 0 or low[found - 1] not in _BREAKS):
            worse += 10
        at = found
    return worse + len(name)


def find(needle: str, items: Iterable[T], name: Callable[[T], str], limit: int) -> list[T]:
    """The best of those that fit, the best first; without letters the first of all."""
    if not needle:
        return [item for _, item in zip(range(limit), items, strict=False)]
    scored = [(score(needle, name(item)), at, item) for at, item in enumerate(items)]
    fitting = [(points, at, item) for points, at, item in scored if points is not None]
    return [item for _, _, item in sorted(fitting, key=lambda each: each[:2])[:limit]]
