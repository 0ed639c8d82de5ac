"""Model servers that run on this machine already, recognised by their answers and never by their ports.

Nothing is sent but GET requests, past any proxy. A server that is none of them gets a single one, for the
list of models that all of them have. What a server says about its models, above all how large their windows
are, is never assumed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.errors import RobotaError
from robota.core.jsontext import decode, encode, objects_of
from robota.core.messages import Json
from robota.http.errors import HttpError
from robota.http.exchange import build_request
from robota.http.url import parse_url
from robota.providers.catalog import is_listed
from robota.providers.service import base_path

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
ASK_SECONDS = 2.0
LOAD_SECONDS = 120.0
MAX_ANSWER_BYTES = 1 << 20
_HEADERS = {"accept": "application/json", "accept-encoding": "gzip"}
_CHAT_TYPES = ("llm", "vlm")
_SIZE = lazy_pattern(r"(?<![\w.])(\d+(?:\.\d+)?)([bBmM])(?![a-zA-Z])")
_UNITS = {"m": 1_000_000, "b": 1_000_000_000}


class ServedModel(Struct, frozen=True):
    name: str
    context_window: int | None = None
    """Tokens that this server has for a conversation, which may be fewer than the model could take."""
    parameters: int | None = None


class LocalServer(Struct, frozen=True):
    kind: ServerKind
    base_url: str
    """Where it speaks Chat Completions."""
    served: tuple[ServedModel, ...]

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model.name for model in self.served)

    def find(self, name: str) -> ServedModel | None:
        """The model of that name; a server with a single one answers with that to any name."""
        known = next((model for model in self.served if is_listed(name, (model.name,))), None)
        return self.served[0] if known is None and len(self.served) == 1 else known


async def ask_local_server(base_url: str, *, load: str = "") -> LocalServer | None:
    """What the server at this base URL says about itself; `None` if it is none that is known.

    Ollama tells the window of a model only while that is loaded: with `load` it is asked to load this one.
    """
    place, _ = base_path(base_url, "/chat/completions", "/v1")
    found = await detect_local_servers((place,), deadline=ASK_SECONDS)
    if not found or found[0].kind != "ollama" or not load:
        return found[0] if found else None
    known = found[0].find(load)
    if known is not None and known.context_window is None and await _load_ollama(place, known.name):
        found = await detect_local_servers((place,), deadline=ASK_SECONDS) or found
    return found[0]


async def _load_ollama(place: str, model: str) -> bool:
    """Have Ollama load a model, which the first request would do anyway."""
    from robota.providers.wire.channel import HttpChannel  # noqa: PLC0415 - as asyncio below

    channel = HttpChannel(f"{place}/api/generate", provider="ollama")
    try:
        await channel.ask("POST", body=encode({"model": model, "stream": False}), timeout=LOAD_SECONDS)
    except RobotaError:
        return False  # the first request will say why
    finally:
        await channel.aclose()
    return True


async def detect_local_servers(
    addresses: Sequence[str] = USUAL_ADDRESSES, *, deadline: float = DEADLINE_SECONDS
) -> list[LocalServer]:
    """The servers at these addresses that said who they are before the deadline, in the order given."""
    import asyncio  # noqa: PLC0415 - a loop is running

    found: dict[str, LocalServer] = {}

    async def look(address: str) -> None:
        server = await _look_at(address.rstrip("/"))
        if server is not None:
            found[address] = server

    with suppress(TimeoutError):  # who has not answered by then is not there
        async with asyncio.timeout(deadline), asyncio.TaskGroup() as tasks:
            for address in addresses:
                tasks.create_task(look(address))
    return [found[address] for address in addresses if address in found]


async def _look_at(address: str) -> LocalServer | None:
    from robota.http.client import HttpClient  # noqa: PLC0415 - as asyncio above

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
_Found: TypeAlias = tuple[ServerKind, list[ServedModel]]


async def _llama_cpp(get: _Get, listing: _Answer) -> _Found | None:
    if listing.server != "llama.cpp":
        return None
    settings = _field(await get("/props"), "default_generation_settings")
    if not isinstance(settings, dict):
        return None
    return "llama.cpp", [
        ServedModel(name, _count(settings.get("n_ctx")), _count((entry.get("meta") or {}).get("n_params")))
        for entry, name in _named(_entries(listing, "data"), "id")
    ]


async def _vllm(get: _Get, listing: _Answer) -> _Found | None:
    entries = _entries(listing, "data")
    if not entries or any(entry.get("owned_by") != "vllm" for entry in entries):
        return None
    version = await get("/version")
    if not isinstance(_field(version, "version"), str):
        return None
    return "vllm", [
        ServedModel(name, _count(entry.get("max_model_len")), _size_in(name))
        for entry, name in _named(entries, "id")
    ]


async def _ollama(get: _Get, listing: _Answer) -> _Found | None:
    version = await get("/api/version")
    if not isinstance(_field(version, "version"), str):
        return None
    tags = await get("/api/tags")
    if not isinstance(_field(tags, "models"), list):
        return None
    running = _named(_entries(await get("/api/ps"), "models"), "name")
    loaded = {name: entry.get("context_length") for entry, name in running}
    return "ollama", [
        ServedModel(
            name,
            _count(loaded.get(name)),
            _size_in(str((entry.get("details") or {}).get("parameter_size") or name)),
        )
        for entry, name in _named(_entries(tags, "models"), "name")
    ]


async def _lm_studio(get: _Get, listing: _Answer) -> _Found | None:
    models = await get("/api/v0/models")
    entries = _entries(models, "data")
    if not entries or any("state" not in entry or "type" not in entry for entry in entries):
        return None
    return "lmstudio", [
        ServedModel(name, _count(entry.get("loaded_context_length")), _size_in(name))
        for entry, name in _named(entries, "id")
        if entry["type"] in _CHAT_TYPES
    ]


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
    return objects_of(_field(answer, name))


def _named(entries: Sequence[dict[str, Json]], field: str) -> Iterator[tuple[dict[str, Json], str]]:
    """The entries that have a name, with it."""
    return ((entry, entry[field]) for entry in entries if isinstance(entry.get(field), str))


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _size_in(text: str) -> int | None:
    """The parameters that a name such as `qwen2.5-1.5b-instruct` or a size such as `494.03M` speaks of."""
    found = _SIZE.search(text)
    return None if found is None else int(float(found[1]) * _UNITS[found[2].lower()])
