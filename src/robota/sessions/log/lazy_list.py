"""Lists in log entries that cost nothing until somebody looks into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from robota.core.messages import Json


class LazyList(Sequence[Json]):
    """A list whose items are made when they are looked at.

    Lists with the same `source` are beginnings of one list that only grows.
    """

    __slots__ = ("_items", "_make", "source")

    def __init__(self, items: Sequence[Any], make: Callable[[Any], Json], source: object = None) -> None:
        self._items = items
        self._make = make
        self.source = source

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Json: ...
    @overload
    def __getitem__(self, index: slice) -> list[Json]: ...
    def __getitem__(self, index: int | slice) -> Json:
        if isinstance(index, slice):
            return [self._make(item) for item in self._items[index]]
        return self._make(self._items[index])

    def __iter__(self) -> Iterator[Json]:
        return (self._make(item) for item in self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a list is no key

    def __repr__(self) -> str:
        return f"<{len(self)} items>"
