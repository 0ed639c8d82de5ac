"""`RemoteProvider`: a provider that another robota host runs, with its keys and its network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError, ProviderError, RobotaError
from robota.core.jsontext import decode
from robota.core.messages import AssistantMessage, JsonObject
from robota.core.provider import Capabilities, ChatRequest, Chunk
from robota.http.errors import HttpError
from robota.http.sse import ServerSentEvent
from robota.providers.remote.failures import describe_host_refusal, read_error
from robota.providers.remote.protocol import RequestEncoder, check_request, decode_event, decode_message
from robota.providers.service import endpoint
from robota.providers.wire.channel import HttpChannel
from robota.providers.wire.provider import WireProvider
from robota.providers.wire.reply import MAX_BODY_BYTES, ReplyContent, ReplyReader

if TYPE_CHECKING:
    import httpx2


class RemoteContent(ReplyContent):
    surface = ""
    format = "robota host"
    advice = "check the server URL"
    advice_after_cut = "try again, or check the server URL if it never answers"

    def read_whole(self, reply: JsonObject, chunks: list[Chunk]) -> bool:
        return False  # which only `/chat` answers with

    def close(self) -> list[Chunk]:
        return []


class RemoteReader(ReplyReader):
    """Gives out the chunks as they are. Only the whole message, the last event, says that a reply is over."""

    message: AssistantMessage | None = None
    """The whole answer, once it has come."""

    def _read_event(
        self, event: ServerSentEvent | JsonObject, chunks: list[Chunk], *, last: bool = False
    ) -> None:
        assert isinstance(event, ServerSentEvent)
        if last:  # it was cut
            return
        try:
            told = decode_event(event.event, event.data, self._peer.secrets)
        except ValueError:
            raise self._refuse(event.data) from None
        if isinstance(told, AssistantMessage):
            self.message = told
            self._content.done = True
        elif isinstance(told, RobotaError):
            raise told
        elif told is not None:
            chunks.append(told)


class RemoteProvider(WireProvider):
    """The provider named `provider` of the host at `server_url`.

    `user_api_key` is the key to the host; those of the vendors stay there. `timeout` is how many seconds the
    host may say nothing at all: it sends signs of life while a model thinks. `capabilities` are those of the
    provider on the host, which does not tell them; images and files are sent as they are in any case.
    """

    reader = RemoteReader

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
        self.provider = provider
        self._whole, streamed = (
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
        able = Capabilities(vision=True, files=True) if capabilities is None else capabilities
        encoder = RequestEncoder(provider)
        super().__init__(
            name, model, able, channel=streamed, encoder=encoder, content=lambda _: RemoteContent()
        )

    async def chat(self, request: ChatRequest) -> AssistantMessage:
        """The whole answer in one piece."""
        channel, model = self._whole, self._choose_model(request)
        incoming = await channel.open(self.encoder.encode(self._fit(request), model), model=model)
        try:
            body = await incoming.read(MAX_BODY_BYTES)  # what is cut there cannot be read
        except HttpError as error:
            raise channel.translate(error) from error
        try:
            answer = decode(body)
            if isinstance(answer, dict) and "error" in answer:  # it failed after the first sign of life
                raise read_error(answer["error"], channel.secrets)
            return decode_message(body)
        except ValueError as error:
            raise ProviderError(
                f"{self.name} sent something that is not an answer of a robota host; check the server URL.",
                provider=self.name,
                status=200,
            ) from error

    def _fit(self, request: ChatRequest) -> ChatRequest:
        check_request(self.provider, self._choose_model(request), request.messages)
        return super()._fit(request)

    async def aclose(self) -> None:
        await super().aclose()
        await self._whole.aclose()
