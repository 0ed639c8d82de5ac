"""Model servers that run on this machine already, recognised by their answers and never by their ports.

Nothing is sent but GET requests to the loopback interface, past any proxy. A server that is none of them gets
a single one, for the list of models that all of them have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from robota.core.jsontext import decode
from robota.core.messages import Json
from robota.http.errors import HttpError
from robota.http.request import build_request
from robota.http.url import parse_url

if TYPE_CHECKING:
    from robota.http.client import HttpClient

ServerKind: TypeAlias = Literal["ollama", "lmstudio", "llama.cpp", "vllm"]

USUAL_ADDRESSES = (
    "http://127.0.0.1:11434",
    "http://127.0.0.1:1234",
    "http://127.0.0.1:8080",
    "http://127.0.0.1:8000",
)
DEADLINE_SECONDS = 0.5
MAX_ANSWER_BYTES = 1 << 20
_HEADERS = {"accept": "application/json", "accept-encoding": "gzip"}
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
    from robota.http.client import HttpClient  # noqa: PLC0415 - as anyio above

    async with HttpClient(proxies=False) as client:
        get = partial(_get, client, address)
        listing = await get("/v1/models")
        if listing is None or not _is_listing(listing.body):
            return None
        for recognise in (_llama_cpp, _vllm, _ollama, _lm_studio):
            found = await recognise(get, listing)
            if found is not None:
                kind, models = found
                return LocalServer(kind, f"{address}/v1", tuple(models))
    return None


# --- who it is -------------------------------------------------------------------------------------------


class _Answer(Struct, frozen=True):
    body: Json
    server: str
    """What it calls itself in the header."""


_Get: TypeAlias = Callable[[str], Awaitable[_Answer | None]]
"""The answer to a GET of that path."""
_Found: TypeAlias = tuple[ServerKind, list[str]]


async def _llama_cpp(get: _Get, listing: _Answer) -> _Found | None:
    if listing.server != "llama.cpp":
        return None
    props = await get("/props")
    if props is None or not isinstance(_field(props, "default_generation_settings"), dict):
        return None
    return "llama.cpp", _names(_entries(listing, "data"), "id")


async def _vllm(get: _Get, listing: _Answer) -> _Found | None:
    entries = _entries(listing, "data")
    if not entries or any(entry.get("owned_by") != "vllm" for entry in entries):
        return None
    version = await get("/version")
    return ("vllm", _names(entries, "id")) if isinstance(_field(version, "version"), str) else None


async def _ollama(get: _Get, listing: _Answer) -> _Found | None:
    version = await get("/api/version")
    if not isinstance(_field(version, "version"), str):
        return None
    tags = await get("/api/tags")
    if not isinstance(_field(tags, "models"), list):
        return None
    return "ollama", _names(_entries(tags, "models"), "name")


async def _lm_studio(get: _Get, listing: _Answer) -> _Found | None:
    models = await get("/api/v0/models")
    entries = _entries(models, "data")
    if not entries or any("state" not in entry or "type" not in entry for entry in entries):
        return None
    return "lmstudio", _names([entry for entry in entries if entry["type"] in _CHAT_TYPES], "id")


# --- what it says ----------------------------------------------------------------------------------------


async def _get(client: HttpClient, address: str, path: str) -> _Answer | None:
    """A JSON answer with status 200, or nothing."""
    try:
        reply = await client.send(build_request("GET", parse_url(address + path), _HEADERS))
        body = await reply.read(MAX_ANSWER_BYTES)
        if reply.status != 200 or not reply.whole:
            return None
        return _Answer(decode(body), reply.headers.get("server", ""))
    except (HttpError, ValueError):
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
