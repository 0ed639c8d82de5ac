"""What a robota host and its clients say to each other about one model call: values to bytes and back.

For both ends, without HTTP. A request is one JSON object. A reply is a stream of Server-Sent Events, one per
chunk and named after its kind, ended by `message`, the whole answer, or by `error`. Decoders raise ValueError
for what they cannot use; events and fields they do not know are passed over, so that either end may be newer.
The format is written down in docs/adr/0006-remote-wire.md.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias, get_args

import msgspec
from msgspec import Struct

from robota.core.errors import ConfigurationError, RobotaError, ValidationError
from robota.core.events import PayloadKind
from robota.core.jsontext import decode, encode
from robota.core.messages import AssistantMessage, JsonObject, Message, StopReason
from robota.core.provider import (
    CHUNK_NAMES,
    ChatRequest,
    Chunk,
    ModelSettings,
    NativePayload,
    NativeWebTools,
    Provider,
    StopChunk,
    TextChunk,
    ToolSchema,
)
from robota.core.reply import MessageAssembly, chat, open_stream
from robota.providers.encoding import EncodedTools, Encoder, encode_groups
from robota.providers.remote.failures import describe_error, read_error

VERSION = 1
MESSAGE, ERROR = "message", "error"
"""The two events that can end a stream."""
KEEP_ALIVE = b": alive\n\n"
"""A comment, sent while the model says nothing."""
Told: TypeAlias = Chunk | AssistantMessage | RobotaError
"""What an event can be: a chunk, or one of the two ends."""

_DIALECT = ("robota-remote", VERSION)
TOOLS = EncodedTools(encode)
_STOP_REASONS = frozenset(get_args(StopReason))


# --- the request -------------------------------------------------------------------------------------


class RemoteRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """A request as the host reads it."""

    version: int = VERSION
    provider: str
    """Which of the host's providers is to answer."""
    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    settings: ModelSettings = ModelSettings()
    native_web_tools: NativeWebTools | None = None
    output_schema: JsonObject | None = None
    want_raw: bool = False

    def to_chat_request(self) -> ChatRequest:
        return ChatRequest(
            model=self.model,
            messages=self.messages,
            tools=self.tools,
            settings=self.settings,
            native_web_tools=self.native_web_tools,
            output_schema=self.output_schema,
            want_raw=self.want_raw,
        )


class RequestEncoder(Encoder, frozen=True):
    """Writes requests for one provider of a host; settled messages and tools are encoded once."""

    provider: str

    def encode(self, request: ChatRequest, model: str) -> bytes:
        rest = encode(
            {
                "version": VERSION,
                "provider": self.provider,
                "model": model,
                "settings": request.settings,
                "nativeWebTools": request.native_web_tools,
                "outputSchema": request.output_schema,
                "wantRaw": request.want_raw,
            }
        )
        tools = b",".join(TOOLS.find(request.tools))
        messages = b",".join(encode_groups(request, _DIALECT, lambda group: b",".join(map(encode, group))))
        return b'%s,"tools":[%s],"messages":[%s]}' % (rest[:-1], tools, messages)


def read_request(body: bytes) -> RemoteRequest:
    """The request in a body; one that cannot be served raises `ValidationError`."""
    try:
        request = _read_request(body)
    except ValueError as error:
        raise ValidationError(f"The request is not of the format that this host reads: {error}.") from error
    if request.version != VERSION:
        raise ValidationError(
            f"The request is of version {request.version}, and this host reads version {VERSION}; "
            "run the same robota on both sides.",
            field="version",
        )
    check_request(request.provider, request.model, request.messages)
    return request


def check_request(provider: str, model: str, messages: Sequence[Message]) -> None:
    """Refuse what no host can answer, before anything is sent and again where it arrives."""
    if not provider.strip():
        raise ValidationError("A remote request must name a provider of the host.", field="provider")
    if not model.strip():
        raise ValidationError("A remote request must name a model.", field="model")
    if not messages:
        raise ValidationError("A remote request must have at least one message.", field="messages")


# --- the events of a reply ---------------------------------------------------------------------------


def encode_chunk(chunk: Chunk) -> bytes:
    if type(chunk) is TextChunk and chunk.raw is None:
        return b'event: text\ndata: {"text":%s}\n\n' % encode(chunk.text)
    if type(chunk) is NativePayload:
        return _event("native", _encode_native(chunk))
    return _event(CHUNK_NAMES[type(chunk)], encode(chunk))


def encode_message(message: AssistantMessage) -> bytes:
    """The event that ends a stream well."""
    return _event(MESSAGE, encode(message))


def encode_failure(error: JsonObject) -> bytes:
    """The event that ends a stream with an error, as `describe_error` gives it."""
    return _event(ERROR, encode(error))


def decode_event(name: str, data: bytes, secrets: Sequence[str] = ()) -> Told | None:
    """What an event says; `None` for one of a kind that this version does not know.

    `secrets` are the client's own, which a host may repeat in an error.
    """
    if name == ERROR:
        return read_error(decode(data), secrets)
    read = _READERS.get(name)
    return None if read is None else read(data)


def decode_message(data: bytes) -> AssistantMessage:
    """The answer to a request that was not streamed."""
    return _read_answer(data).message


class _Answer(Struct, frozen=True):
    message: AssistantMessage


class _Native(Struct, frozen=True, kw_only=True, rename="camel"):
    kind: PayloadKind
    payload: msgspec.Raw
    api_surface: str | None = None
    sequence: int | None = None
    metadata: dict[str, Any] = {}


class _Stop(Struct, frozen=True):
    reason: str
    detail: str | None = None


def _event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


def _encode_native(chunk: NativePayload) -> bytes:
    head = encode(
        {
            "kind": chunk.kind,
            "apiSurface": chunk.api_surface,
            "sequence": chunk.sequence,
            "metadata": chunk.metadata,
        }
    )
    return b'%s,"payload":%s}' % (head[:-1], _native_json(chunk))


def _native_json(chunk: NativePayload) -> bytes:
    """The payload in one line of JSON. Of the vendor's request only its size: the rest is our request."""
    payload = chunk.payload
    data = payload if isinstance(payload, bytes) else encode(payload)
    if chunk.kind == "request":
        return b'{"byteLength":%d}' % len(data)
    try:
        value = decode(data)
    except ValueError:  # of a provider that hands out something else than JSON
        return encode(data.decode("utf-8", "replace"))
    return encode(value) if b"\n" in data or b"\r" in data else data


def _decode_native(data: bytes) -> NativePayload:
    native = _read_native(data)
    return NativePayload(
        kind=native.kind,
        payload=bytes(native.payload),
        api_surface=native.api_surface,
        sequence=native.sequence,
        metadata=native.metadata,
    )


def _decode_stop(data: bytes) -> StopChunk:
    stop = _read_stop(data)
    if stop.reason in _STOP_REASONS:
        return StopChunk(msgspec.convert(stop.reason, StopReason), stop.detail)
    return StopChunk("other", stop.detail or stop.reason)


_read_request = msgspec.json.Decoder(RemoteRequest).decode
_read_answer = msgspec.json.Decoder(_Answer).decode
_read_native = msgspec.json.Decoder(_Native).decode
_read_stop = msgspec.json.Decoder(_Stop).decode


_READERS: dict[str, Callable[[bytes], Told]] = {
    **{
        name: msgspec.json.Decoder(kind).decode
        for kind, name in CHUNK_NAMES.items()
        if kind not in (NativePayload, StopChunk)
    },
    "native": _decode_native,
    "stop": _decode_stop,
    MESSAGE: msgspec.json.Decoder(AssistantMessage).decode,
}


# --- the host's side ---------------------------------------------------------------------------------
# A host decides who may ask and passes these bytes on. A failure is raised: as long as nothing was sent it is
# an answer with a status (`failures.http_status`), afterwards an `error` event.


class HostedProviders:
    """The providers of a host, by the names that clients know them by."""

    def __init__(self, providers: Mapping[str, Provider], secrets: Sequence[str] = ()) -> None:
        """`secrets` are never repeated to a client."""
        self.providers = dict(providers)
        self._secrets = tuple(secrets)

    def admit(self, body: bytes) -> tuple[Provider, RemoteRequest]:
        """Who answers a request, and what was asked."""
        asked = read_request(body)
        provider = self.providers.get(asked.provider)
        if provider is None:
            raise ConfigurationError(
                f"This host has no provider {asked.provider!r}; it has {', '.join(self.providers)}."
            )
        return provider, asked

    def describe(self, error: Exception, provider: str) -> JsonObject:
        """What a client is told of a failure."""
        return describe_error(error, provider, self._secrets)


async def stream_reply(provider: Provider, request: RemoteRequest) -> AsyncGenerator[bytes, None]:
    """The events of a reply, the whole message last. Closing it closes the provider's stream."""
    assembly = MessageAssembly(provider.name)
    async with aclosing(open_stream(provider, request.to_chat_request())) as chunks:
        async for chunk in chunks:
            assembly.take(chunk)
            yield encode_chunk(chunk)
    yield encode_message(assembly.message())


async def whole_reply(provider: Provider, request: RemoteRequest) -> bytes:
    """The body that answers a request which is not streamed."""
    return encode({"message": await chat(provider, request.to_chat_request())})
