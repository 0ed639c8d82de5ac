"""`RemoteProvider`: a provider that another robota host runs, with its keys and its network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError, ProviderError, RobotaError
from robota.core.jsontext import decode
from robota.core.messages import AssistantMessage
from robota.core.provider import Capabilities, ChatRequest, Chunk, assert_native_web_tools_available
from robota.providers.remote.failures import describe_host_refusal, read_error
from robota.providers.remote.reply import RemoteReader
from robota.providers.remote.wire import RequestEncoder, check_request, decode_message
from robota.providers.wire.channel import HttpChannel, endpoint, iterate_body, read_body
from robota.providers.wire.errors import Refusal
from robota.providers.wire.reply import MAX_BODY_BYTES

if TYPE_CHECKING:
    from typing import Self

    import httpx2

DRAIN_SECONDS = 0.5
"""How long to wait, after the reply, for the end of the HTTP message; without it no connection is reused."""


class RemoteChannel(HttpChannel):
    """The way to a host, whose errors cross as they are."""

    def describe(self, refusal: Refusal) -> RobotaError:
        return describe_host_refusal(refusal, self.provider, self.secrets)


class RemoteProvider:
    """The provider named `provider` of the host at `server_url`.

    `user_api_key` is the key to the host; those of the vendors stay there. `timeout` is how many seconds the
    host may say nothing at all: it sends signs of life while a model thinks. `capabilities` are those of the
    provider on the host, which does not tell them; images and files are sent as they are in any case.

    Building one costs nothing: httpx2 and the connections come with the first request. One provider serves
    many runs, in several event loops too; close it with `aclose()` or use it as an async context manager.
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
        key = user_api_key.strip()
        own = {} if headers is None else dict(headers)
        self._whole, self._streamed = (
            RemoteChannel(
                endpoint(server_url, path),
                {"authorization": f"Bearer {key}", **own},
                provider=name,
                secrets=[key],
                transport=transport,
                silence=timeout,
            )
            for path in ("/chat", "/chat/stream")
        )
        self._encoder = RequestEncoder(provider)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """One reply, chunk by chunk as the provider on the host gave it."""
        import httpx2  # noqa: PLC0415 - 74 ms, paid by the first request

        channel = self._streamed
        response = await self._post(channel, request)
        parts = iterate_body(response)
        reader = RemoteReader(self.name, channel.secrets)
        try:
            async for part in parts:
                for chunk in reader.feed(part):
                    yield chunk
                if reader.over:
                    break
            if reader.message is not None:
                await _drain(parts)
        except httpx2.HTTPError as error:
            reader.cut = channel.translate(error)
        finally:
            await parts.aclose()
            await response.aclose()
        reader.finish()

    async def chat(self, request: ChatRequest) -> AssistantMessage:
        """The whole answer in one piece."""
        import httpx2  # noqa: PLC0415 - as above

        channel = self._whole
        response = await self._post(channel, request)
        try:
            body = await read_body(response, MAX_BODY_BYTES)  # what is cut there cannot be read
        except httpx2.HTTPError as error:
            raise channel.translate(error) from error
        return self._read_answer(body)

    async def _post(self, channel: RemoteChannel, request: ChatRequest) -> httpx2.Response:
        model = request.model or self.model
        check_request(self.provider, model, request.messages)
        assert_native_web_tools_available(self, request.native_web_tools)
        return await channel.post(self._encoder.encode(request, model), model=model)

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


async def _drain(parts: AsyncGenerator[bytes, None]) -> None:
    import anyio  # noqa: PLC0415 - httpx2 has loaded it

    with anyio.move_on_after(DRAIN_SECONDS):
        async for _ in parts:
            pass
