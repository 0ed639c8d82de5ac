"""A provider that remembers replies: the same request again is answered from a storage, chunk by chunk.

The key covers everything that can change an answer and nothing that cannot (ids, time stamps, metadata). Only
replies that came to their natural end are kept. An entry that is no longer what was stored is dropped and
reported, never replayed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol

import msgspec
from msgspec import Struct

from robota.core.errors import CacheIntegrityError
from robota.core.messages import Json, Message
from robota.core.ports import REAL_WORLD, Ports
from robota.core.provider import (
    CHUNK_NAMES,
    ChatRequest,
    Chunk,
    NativePayload,
    Provider,
    ProviderWrapper,
    RetryNotice,
    StopChunk,
    TextChunk,
)

_NAMES = {kind: name for kind, name in CHUNK_NAMES.items() if kind not in (NativePayload, RetryNotice)}
"""What an entry may hold. Native payloads and retry notices belong to one call and are not repeated."""
_KINDS = {name: kind for kind, name in _NAMES.items()}
_WHOLE = ("end_turn", "tool_use")


class CacheEntry(Struct, frozen=True):
    """A stored reply. Both fields are plain data, so a storage may keep entries wherever it likes."""

    body: bytes
    integrity: str
    """SHA-256 of the body."""


class CacheStorage(Protocol):
    """Where entries are kept. `get` gives `None` for what is missing or too old."""

    async def get(self, key: str) -> CacheEntry | None: ...
    async def put(self, key: str, entry: CacheEntry) -> None: ...
    async def delete(self, key: str) -> None: ...


class MemoryCacheStorage(Struct, eq=False):
    """The most recently used entries of this process."""

    max_entries: int = 1000
    ttl: float | None = None
    """Seconds an entry lives; `None` is for ever."""
    ports: Ports = REAL_WORLD
    _entries: dict[str, tuple[float, CacheEntry]] = {}
    """Least recently used first."""

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, key: str) -> CacheEntry | None:
        kept = self._entries.pop(key, None)
        if kept is None or (self.ttl is not None and self.ports.monotonic() - kept[0] >= self.ttl):
            return None
        self._entries[key] = kept
        return kept[1]

    async def put(self, key: str, entry: CacheEntry) -> None:
        self._entries.pop(key, None)
        self._entries[key] = (self.ports.monotonic(), entry)
        while len(self._entries) > self.max_entries:
            del self._entries[next(iter(self._entries))]

    async def delete(self, key: str) -> None:
        self._entries.pop(key, None)


class CachingProvider(ProviderWrapper):
    """The wrapped provider, asked only for what the storage does not know."""

    def __init__(self, inner: Provider, storage: CacheStorage | None = None) -> None:
        super().__init__(inner)
        self.storage: CacheStorage = MemoryCacheStorage() if storage is None else storage

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        key = cache_key(request, self.name)
        entry = await self.storage.get(key)
        if entry is not None:
            for chunk in await self._open(key, entry):
                yield chunk
            return
        reply: list[Chunk] = []
        async with aclosing(self.inner.stream(request)) as chunks:
            async for chunk in chunks:
                reply.append(chunk)
                yield chunk
        if any(isinstance(chunk, StopChunk) and chunk.reason in _WHOLE for chunk in reply):
            body = _encode(reply)
            await self.storage.put(key, CacheEntry(body, _sha256(body)))

    async def _open(self, key: str, entry: CacheEntry) -> list[Chunk]:
        try:
            if _sha256(entry.body) == entry.integrity:
                rows = msgspec.json.decode(entry.body)
                return [msgspec.convert(fields, _KINDS[name]) for name, fields in rows]
        except (msgspec.MsgspecError, LookupError, TypeError, ValueError):
            pass  # written by another version, or not by us: reported like any other damage
        await self.storage.delete(key)
        raise CacheIntegrityError(
            f"The cached reply {key[:12]}… is not the one that was stored. It was removed; ask again."
        )


def cache_key(request: ChatRequest, provider: str) -> str:
    """SHA-256 over everything that decides the answer."""
    return _sha256(
        msgspec.json.encode(
            {
                "provider": provider,
                "model": request.model,
                "messages": _normalise(request.messages),
                "tools": request.tools,
                "settings": request.settings,
                "nativeWebTools": request.native_web_tools,
                "outputSchema": request.output_schema,
            },
            order="deterministic",
        )
    )


def _normalise(messages: Sequence[Message]) -> list[Json]:
    plain: list[Json] = msgspec.to_builtins(list(messages))
    for message in plain:
        for accidental in ("id", "timestamp", "metadata"):
            message.pop(accidental, None)
    return plain


def _encode(reply: Sequence[Chunk]) -> bytes:
    rows = [
        (_NAMES[type(chunk)], TextChunk(chunk.text) if isinstance(chunk, TextChunk) else chunk)
        for chunk in reply
        if type(chunk) in _NAMES
    ]
    return msgspec.json.encode(rows)


def _sha256(data: bytes) -> str:
    from hashlib import sha256  # noqa: PLC0415 - loads OpenSSL, which only a program that caches should pay for

    return sha256(data).hexdigest()
