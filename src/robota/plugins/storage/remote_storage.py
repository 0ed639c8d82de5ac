"""Entries posted to a server, in batches: `{"entries": [{"value": …, "key": …}, …]}`."""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.jsontext import encode
from robota.plugins.posting import Poster
from robota.plugins.storage.port import Entry


class RemoteStorage:
    """Only takes: what the server does with it is its own business."""

    def __init__(self, poster: Poster, *, collection: str) -> None:
        self._poster = poster
        self._collection = collection

    async def write(self, entries: Sequence[Entry]) -> None:
        await self._poster.post(encode({"collection": self._collection, "entries": list(entries)}))

    async def read(self) -> list[Entry]:
        return []

    async def remove(self, key: str) -> bool:
        return False
