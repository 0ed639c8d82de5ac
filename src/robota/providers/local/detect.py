"""Model servers that run on this machine already, recognised by their answers and never by their ports.

Nothing is sent but GET requests to the loopback interface, past any proxy. A server that is none of them gets
a single one, for the list of models that all of them have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from robota.core.jsontext import decode
from robota.core.messages import Json

if TYPE_CHECKING:
    import httpx2

ServerKind: TypeAlias = Literal["ollama", "lmstudio", "llama.cpp", "vllm"]

USUAL_ADDRESSES = (
    "http://127.0.0.1:11434",
    "http://127.0.0.1:1234",
    "http://127.0.0.1:8080",
    "http://127.0.0.1:8000",
)
DEADLINE_SECONDS = 0.5
MAX_ANSWER_BYTES = 1 << 20
_CHAT_TYPES = ("llm", "vlm")


class LocalServer(Struct, frozen=True):
    kind: ServerKind
    base_url: str
    """Where it speaks Chat Completions."""
    models: tuple[str, ...]


async def detect_local_servers(
    addresses: Sequence[str] = USUAL_ADDRESSES, *, deadline: float = DEADLINE_SECONDS
) -> list[LocalServer]:
    """The servers at these addresses that said who they are before the deadline, in the order given."""
    import anyio  # noqa: PLC0415 - a loop is running

    found: dict[str, LocalServer] = {}

    async def look(address: str) -> None:
        server = await _look_at(address.rstrip("/"))
        if server is not None:
            found[address] = server

    with anyio.move_on_after(deadline):
        async with anyio.create_task_group() as tasks:
            for address in addresses:
                tasks.start_soon(look, address)
    return [found[address] for address in addresses if address in found]


async def _look_at(address: str) -> LocalServer | None:
    if not await _answers(address):
        return None
    import httpx2  # noqa: PLC0415 - 74 ms, only if somebody is there

    async with httpx2.AsyncClient(base_url=address, trust_env=False, follow_redirects=False) as client:
        listing = await _get(client, "/v1/models")
        if listing is None or not _is_listing(listing.body):
            return None
        for recognise in (_llama_cpp, _vllm, _ollama, _lm_studio):
            found = await recognise(client, listing)
            if found is not None:
                kind, models = found
                return LocalServer(kind, f"{address}/v1", tuple(models))
    return None


async def _answers(address: str) -> bool:
    """Whether anybody takes connections there."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - as anyio below

    import anyio  # noqa: PLC0415 - a loop is running

    parts = urlsplit(address)
    try:
        connection = await anyio.connect_tcp(parts.hostname or "127.0.0.1", parts.port or 80)
    except OSError:
        return False
    await connection.aclose()
    return True


# --- who it is -------------------------------------------------------------------------------------------


class _Answer(Struct, frozen=True):
    body: Json
    server: str
    """What it calls itself in the header."""


_Found: TypeAlias = tuple[ServerKind, list[str]]


async def _llama_cpp(client: httpx2.AsyncClient, listing: _Answer) -> _Found | None:
    if listing.server != "llama.cpp":
        return None
    props = await _get(client, "/props")
    if props is None or not isinstance(_field(props, "default_generation_settings"), dict):
        return None
    return "llama.cpp", _names(_entries(listing, "data"), "id")


async def _vllm(client: httpx2.AsyncClient, listing: _Answer) -> _Found | None:
    entries = _entries(listing, "data")
    if not entries or any(entry.get("owned_by") != "vllm" for entry in entries):
        return None
    version = await _get(client, "/version")
    return ("vllm", _names(entries, "id")) if isinstance(_field(version, "version"), str) else None


async def _ollama(client: httpx2.AsyncClient, listing: _Answer) -> _Found | None:
    version = await _get(client, "/api/version")
    if not isinstance(_field(version, "version"), str):
        return None
    tags = await _get(client, "/api/tags")
    if not isinstance(_field(tags, "models"), list):
        return None
    return "ollama", _names(_entries(tags, "models"), "name")


async def _lm_studio(client: httpx2.AsyncClient, listing: _Answer) -> _Found | None:
    models = await _get(client, "/api/v0/models")
    entries = _entries(models, "data")
    if not entries or any("state" not in entry or "type" not in entry for entry in entries):
        return None
    return "lmstudio", _names([entry for entry in entries if entry["type"] in _CHAT_TYPES], "id")


# --- what it says ----------------------------------------------------------------------------------------


async def _get(client: httpx2.AsyncClient, path: str) -> _Answer | None:
    """A JSON answer with status 200, or nothing."""
    import httpx2  # noqa: PLC0415 - see _look_at

    body = bytearray()
    try:
        async with client.stream("GET", path) as response:
            if response.status_code != 200:
                return None
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    return None
            return _Answer(decode(bytes(body)), response.headers.get("server", ""))
    except (httpx2.HTTPError, ValueError):
        return None


def _is_listing(body: Json) -> bool:
    return isinstance(body, dict) and isinstance(body.get("data", ()) or [], list) and "data" in body


def _field(answer: _Answer | None, name: str) -> Json:
    return answer.body.get(name) if answer is not None and isinstance(answer.body, dict) else None


def _entries(answer: _Answer | None, name: str) -> list[dict[str, Json]]:
    entries = _field(answer, name)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _names(entries: Sequence[dict[str, Json]], field: str) -> list[str]:
    return [entry[field] for entry in entries if isinstance(entry.get(field), str)]
