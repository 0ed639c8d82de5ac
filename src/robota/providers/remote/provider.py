"""`RemoteProvider`: a provider that another robota host runs, with its keys and its network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError, NetworkError, ProviderError, RobotaError
from robota.core.jsontext import decode
from robota.core.messages import AssistantMessage
from robota.core.provider import Capabilities, ChatRequest, Chunk, assert_native_web_tools_available
from robota.http.errors import HttpError
from robota.providers.remote.failures import describe_host_refusal, read_error
from robota.providers.remote.protocol import RequestEncoder, check_request, decode_event, decode_message
from robota.providers.service import endpoint
from robota.providers.wire.channel import HttpChannel
from robota.providers.wire.errors import quote
from robota.providers.wire.provider import drain
from robota.providers.wire.reply import MAX_BODY_BYTES, MAX_REPLY_BYTES
from robota.providers.wire.sse import EventSplitter, ServerSentEvent

if TYPE_CHECKING:
    from typing import Self

    import httpx2

    from robota.http.reply import Reply

_FIX = "check the server URL"
_MAX_QUOTE = 200
_LOOK = 4096
"""Bytes that are kept to see what kind of reply it is, and to quote from."""


class RemoteProvider:
    """The provider named `provider` of the host at `server_url`.

    `user_api_key` is the key to the host; those of the vendors stay there. `timeout` is how many seconds the
    host may say nothing at all: it sends signs of life while a model thinks. `capabilities` are those of the
    provider on the host, which does not tell them; images and files are sent as they are in any case.

    Building one costs nothing: the HTTP client and its connections come with the first request. One provider
    serves many runs, in several event loops too; close it with `aclose()` or use it as an async context
    manager.
    """

    def __init__(
        self,
        server_url: str,
        user_api_key: str,
        provider: str,
        model: str,
        *,
        timeout: float = 30.0,
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        name: str = "remote",
        capabilities: Capabilities | None = None,
    ) -> None:
        for value, what in (
            (server_url, "a server_url, such as https://models.example.org"),
            (user_api_key, "a user_api_key, the key to the host"),
            (provider, "the name of a provider of the host"),
            (model, "a model"),
        ):
            if not isinstance(value, str) or not value.strip():
                raise ConfigurationError(f"A remote provider needs {what}.")
        if not timeout > 0:
            raise ConfigurationError(f"timeout must be a number of seconds above 0, not {timeout!r}.")
        self.name = name
        self.provider = provider
        self.model = model
        """Used by requests that name none."""
        self.capabilities = Capabilities(vision=True, files=True) if capabilities is None else capabilities
        self._whole, self._streamed = (
            HttpChannel(
                endpoint(server_url, path),
                headers,
                provider=name,
                key=user_api_key,
                describe=describe_host_refusal,
                transport=transport,
                silence=timeout,
            )
            for path in ("/chat", "/chat/stream")
        )
        self._encoder = RequestEncoder(provider)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """One reply, chunk by chunk as the provider on the host gave it."""
        channel = self._streamed
        incoming = await self._open(channel, request)
        parts = incoming.parts()
        reader = RemoteReader(self.name, channel.secrets)
        try:
            async for part in parts:
                for chunk in reader.feed(part):
                    yield chunk
                if reader.over:
                    break
            if reader.message is not None:
                await drain(parts)
        except HttpError as error:
            reader.cut = channel.translate(error)
        finally:
            await parts.aclose()
            await incoming.aclose()
        reader.finish()

    async def chat(self, request: ChatRequest) -> AssistantMessage:
        """The whole answer in one piece."""
        channel = self._whole
        incoming = await self._open(channel, request)
        try:
            body = await incoming.read(MAX_BODY_BYTES)  # what is cut there cannot be read
        except HttpError as error:
            raise channel.translate(error) from error
        return self._read_answer(body)

    async def _open(self, channel: HttpChannel, request: ChatRequest) -> Reply:
        model = request.model or self.model
        check_request(self.provider, model, request.messages)
        assert_native_web_tools_available(self, request.native_web_tools)
        return await channel.open(self._encoder.encode(request, model), model=model)

    def _read_answer(self, body: bytes) -> AssistantMessage:
        try:
            answer = decode(body)
            if isinstance(answer, dict) and "error" in answer:  # it failed after the first sign of life
                raise read_error(answer["error"], self._whole.secrets)
            return decode_message(body)
        except ValueError as error:
            raise ProviderError(
                f"{self.name} sent something that is no answer of a robota host; check the server URL.",
                provider=self.name,
                status=200,
            ) from error

    async def aclose(self) -> None:
        await self._streamed.aclose()
        await self._whole.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class RemoteReader:
    """Gives out the chunks of one reply; feed it what arrives, then `finish`.

    Only the whole message, the last event, says that a reply is complete.
    """

    __slots__ = (
        "_known", "_provider", "_secrets", "_size", "_splitter", "_start", "cut", "failure", "message",
    )  # fmt: skip

    def __init__(self, provider: str, secrets: Sequence[str] = ()) -> None:
        self.message: AssistantMessage | None = None
        """The whole answer, once it has come."""
        self.failure: RobotaError | None = None
        """What is wrong with the reply; `finish` will raise it."""
        self.cut: RobotaError | None = None
        """Why the connection ended, to be set from outside."""
        self._provider = provider
        self._secrets = secrets
        self._splitter = EventSplitter(provider=provider)
        self._start = b""
        self._size = 0
        self._known = False
        """Some event of a host has come."""

    @property
    def over(self) -> bool:
        """Nothing more is worth reading."""
        return self.message is not None or self.failure is not None

    def feed(self, raw: bytes) -> list[Chunk]:
        chunks: list[Chunk] = []
        self._size += len(raw)
        try:
            if self._size > MAX_REPLY_BYTES:
                raise self._refuse(f"sent more than {MAX_REPLY_BYTES >> 20} MiB in one reply")
            if not self._known:
                self._look(raw)
            for event in self._splitter.feed(raw):
                self._read(event, chunks)
                if self.over:
                    break
        except RobotaError as error:
            self.failure = error
        return chunks

    def finish(self) -> AssistantMessage:
        """The answer as a whole; raises what went wrong."""
        if self.failure is not None:
            raise self.failure
        if self.message is None:
            raise self.cut or NetworkError(
                f"{self._provider} closed the connection before the reply was complete; try again, or "
                f"{_FIX} if it never answers.",
                provider=self._provider,
            )
        return self.message

    def _look(self, raw: bytes) -> None:
        """Recognise what is no event stream at all by its first character."""
        self._start = (self._start + raw[:_LOOK]).lstrip()[:_LOOK]
        if self._start.startswith(b"<"):
            raise self._refuse("answered with a web page")
        if self._start[:1] in (b"{", b"["):
            raise self._refuse(f"sent no stream of a robota host ({self._quote(self._start)})")

    def _read(self, event: ServerSentEvent, chunks: list[Chunk]) -> None:
        try:
            told = decode_event(event.event, event.data, self._secrets)
        except ValueError:
            raise self._refuse(
                f"sent an event that cannot be read ({event.event}: {self._quote(event.data)})"
            ) from None
        if told is None:
            return
        self._known = True
        if isinstance(told, AssistantMessage):
            self.message = told
        elif isinstance(told, RobotaError):
            self.failure = told
        else:
            chunks.append(told)

    def _quote(self, data: bytes) -> str:
        return quote(data[:_LOOK].decode("utf-8", "replace"), self._secrets, _MAX_QUOTE)

    def _refuse(self, what: str) -> ProviderError:
        return ProviderError(f"{self._provider} {what}; {_FIX}.", provider=self._provider, status=200)
