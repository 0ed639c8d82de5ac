"""What all providers on a wire do alike: one request sent, one reply read to its end, however it ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Protocol

from msgspec import structs

from robota.core.closing import AsyncClosing
from robota.core.errors import ConfigurationError, NetworkError, ProviderError
from robota.core.jsontext import decode, encode
from robota.core.messages import Json
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativePayload,
    RetryNotice,
    assert_native_web_tools_available,
)
from robota.http.errors import HttpError
from robota.providers.encoding import Encoder
from robota.providers.wire.errors import Peer, describe_failure, read_request_id
from robota.providers.wire.reply import ReplyContent, ReplyReader

DRAIN_SECONDS = 0.5
"""How long to wait, after the reply, for the end of the HTTP message; without it no connection is reused."""
_UNKNOWN = (
    "unknown", "unrecognized", "unrecognised", "unsupported", "not support", "not permitted", "not allowed",
    "extra inputs", "extra_forbidden", "unexpected", "additional propert", "cannot find field",
)  # fmt: skip
"""How services call a field that they do not know or take."""
_CONVERSATION = ("messages", "input", "contents")
_IN_CONVERSATION = (
    rf"""["']?\b(?:{"|".join(_CONVERSATION)})\b["']?"""
    r"""(?:[.\[][\w.\[\]]+|(?:, ?(?:\d+|["'][\w-]+["']))+)"""
)
"""A place in the messages, as a path or as the list of its steps."""
_MARKS = ("cache_control", "extra_content")
"""The optional fields that stand in messages."""


class Incoming(Protocol):
    """A reply that is under way."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    def parts(self) -> AsyncGenerator[Json, None]:
        """Its bytes as they arrive, or its events, decoded by a client."""
        ...

    async def aclose(self) -> None: ...


class Channel:
    """The way to a service: its own address over HTTP, or a client object that was handed in."""

    provider: str
    origin: str
    """Where requests go, without path and credentials: fit to be shown."""
    secrets: Sequence[str]

    async def open(self, body: bytes, *, model: str) -> Incoming:
        """Send it and return the reply to read, which the caller must close; a refusal is raised."""
        raise NotImplementedError

    def translate(self, error: Exception) -> NetworkError:
        """A failure of what sends and receives as the error to raise."""
        return describe_failure(error, self.provider, self.origin, self.secrets)

    async def aclose(self) -> None:
        """Close what is ours; a client that was handed in is its owner's."""


class WireProvider(AsyncClosing):
    """A model behind a wire. Adapters say how requests are encoded, where they go and what replies mean.

    Building one costs nothing: the HTTP client and its connections come with the first request. One provider
    serves many runs, in several event loops too; close it with `aclose()` or use it as an async context
    manager.
    """

    reader: ClassVar[type[ReplyReader]] = ReplyReader

    def __init__(
        self,
        name: str,
        model: str | None,
        capabilities: Capabilities,
        *,
        channel: Channel,
        encoder: Encoder,
        content: Callable[[ChatRequest], ReplyContent],
    ) -> None:
        self.name = name
        self.model = model
        """Used by requests that name none."""
        self.capabilities = capabilities
        self.channel = channel
        self.encoder = encoder
        self.content = content

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys that go with requests."""
        return tuple(self.channel.secrets)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """One reply. Native payloads are bytes of JSON, for a journal to embed without encoding them anew."""
        model = self._choose_model(request)
        request = self._fit(request)
        content = self.content(request)
        while True:
            body = self.encoder.encode(request, model)
            self._check(body)
            if request.want_raw and content.surface:
                facts = self._request_facts(model)
                yield NativePayload(kind="request", payload=body, api_surface=content.surface, metadata=facts)
            try:
                incoming = await self.channel.open(body, model=model)
                break
            except ProviderError as error:
                yield self._leave_out(error, body)
        secrets = self.channel.secrets
        peer = Peer(self.name, read_request_id(incoming.headers, secrets), secrets)
        reader = self.reader(content, peer, want_raw=request.want_raw)
        parts = incoming.parts()
        try:
            async for part in parts:
                for chunk in reader.feed(part):
                    yield chunk
                if reader.over:
                    break
            if reader.done:
                await drain(parts)
        except (NetworkError, HttpError) as error:
            reader.cut = error if isinstance(error, NetworkError) else self.channel.translate(error)
        finally:
            await parts.aclose()
            await incoming.aclose()
        for chunk in reader.conclude():
            yield chunk

    def _leave_out(self, error: ProviderError, body: bytes) -> RetryNotice:
        """Do without the field that the service rejects, now and later; raises the error if it is no such."""
        encoder = self.encoder
        field = find_rejected(
            error, [name for name in encoder.optional if name not in encoder.left_out], body
        )
        if field is None:
            raise error
        self.encoder = structs.replace(encoder, left_out=encoder.left_out | {field})
        said = (
            f"{error.problem or error}: it is asked again without {field!r}, which is left out from now on."
        )
        return RetryNotice(attempt=2, max_attempts=2, delay=0, message=said)

    def _check(self, body: Json) -> None:
        """Refuse what is known to come back with an error, before it is sent."""

    def _request_facts(self, model: str) -> Mapping[str, Json]:
        """What a journal needs besides the body to know what was asked."""
        return {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, model {self.model!r}>"

    def _fit(self, request: ChatRequest) -> ChatRequest:
        """The request without what the model is known not to take; refused if the user would miss it."""
        assert_native_web_tools_available(self, request.native_web_tools)
        if request.tools and not self.capabilities.function_calling:
            return structs.replace(request, tools=())
        return request

    def _choose_model(self, request: ChatRequest) -> str:
        model = request.model or self.model
        if not model:
            raise ConfigurationError(
                f"Provider {self.name!r} needs a model: pass model= to the agent or the provider."
            )
        return model

    async def aclose(self) -> None:
        await self.channel.aclose()


async def drain(parts: AsyncGenerator[Json, None]) -> None:
    """Read a reply, of which everything is known, to the end of its HTTP message, if that comes soon."""
    import asyncio  # noqa: PLC0415 - a loop is running, so it is loaded

    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in parts:
                pass


def find_rejected(error: ProviderError, fields: Sequence[str], body: bytes) -> str | None:
    """The one of these fields that a refusal is about, because the service does not know or take it.

    Some are called like everyday words (`text`, `thinking`), so the field has to be in the body, and what is
    said about media types and about places in the conversation does not count.
    """
    if error.status not in (400, 422):
        return None
    import re  # noqa: PLC0415 - most requests are not refused

    text = str(error)
    if not any(word in text.lower() for word in _UNKNOWN):
        return None
    text = re.sub(_IN_CONVERSATION, lambda place: place[0] if place[0].endswith(_MARKS) else "", text)
    sent = _sent_fields(decode(body))
    found = {field: re.search(rf"(?<![\w/-]){field}(?![\w/-])", text) for field in fields if field in sent}
    places = {place.start(): field for field, place in found.items() if place is not None}
    return places[min(places)] if places else None  # what comes later is what to use instead


def _sent_fields(body: Json) -> set[str]:
    """The names of all fields of a request, without what its messages consist of."""
    names: set[str] = set()
    waiting: list[Json] = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            names |= node.keys()
            waiting += (value for key, value in node.items() if key not in _CONVERSATION)
        elif isinstance(node, list):
            waiting += node
    messages = [encode(value) for key, value in body.items() if key in _CONVERSATION]
    return names | {mark for mark in _MARKS if any(f'"{mark}":'.encode() in one for one in messages)}
