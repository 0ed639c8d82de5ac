"""`Storage`: what a plugin that keeps something needs of the place where it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from robota.core.messages import JsonObject


class Entry(Struct, frozen=True):
    """One thing to keep. With a `key` it takes the place of the one that had that key before."""

    value: JsonObject
    key: str = ""


@runtime_checkable
class Storage(Protocol):
    """Keeps entries in the order in which they were written, at most as many as it was made for.

    Every method may be called from any event loop, and raises `PluginError` when the place cannot be used.
    Nothing is held open between two calls, so there is nothing to close.
    """

    async def write(self, entries: Sequence[Entry]) -> None:
        """Keep all of them, or none."""

    async def read(self) -> list[Entry]:
        """Everything that is kept, the oldest first; nothing for a place that only takes."""

    async def remove(self, key: str) -> bool:
        """Forget the entry with that key; false when there was none."""
