"""The way to the Responses API through the vendor's own client, which brings its address and authentication.

The bytes sent and received are those of the direct way; only their transport is the client's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, Self

from robota.core.errors import NetworkError
from robota.core.messages import Json
from robota.providers.wire.errors import Refusal, describe_failure, describe_refusal, secrets_of

if TYPE_CHECKING:
    import httpx2

    from robota.http.exchange import Reply

_HEADERS = {
    "Content-Type": "application/json",
    "X-Stainless-Raw-Response": "stream",  # the client's way to hand out a reply that is not read yet
}
_PACKAGE = "openai"


class OfficialClient(Protocol):
    """What is used of `AsyncOpenAI` and its relatives."""

    @property
    def api_key(self) -> Json: ...
    @property
    def base_url(self) -> httpx2.URL: ...
    def with_options(self, *, max_retries: int) -> Self: ...
    async def post(
        self, path: str, *, cast_to: type[httpx2.Response], content: bytes, options: Json
    ) -> httpx2.Response: ...


class ClientChannel:
    """Sends through a client that was handed in, without its retries; it is not closed here."""

    def __init__(self, client: OfficialClient, *, provider: str) -> None:
        self.provider = provider
        self.secrets = secrets_of(client)
        self._client = client.with_options(max_retries=0)
        self._address = str(client.base_url)

    async def open(self, body: bytes, *, model: str = "") -> Reply:
        """Send it and return the reply to read, which the caller must close; a refusal is raised."""
        import httpx2  # noqa: PLC0415 - the client has loaded it

        from robota.http.detour import reply_of  # noqa: PLC0415 - as above

        package = import_module(_PACKAGE)
        options = {"headers": _HEADERS, "timeout": None}
        try:
            return reply_of(
                await self._client.post("/responses", cast_to=httpx2.Response, content=body, options=options)
            )
        except package.APIStatusError as error:
            refused = error.response
            headers = dict(refused.headers.items())
            refusal = Refusal(refused.status_code, headers, refused.content, model, self._address)
            raise describe_refusal(refusal, self.provider, self.secrets) from error
        except package.APIConnectionError as error:
            raise self.translate(error.__cause__ or error) from error

    def translate(self, error: Exception) -> NetworkError:
        """A failure of httpx2 as the error to raise."""
        return describe_failure(error, self.provider, self._address, self.secrets)

    async def aclose(self) -> None:
        """Nothing to do: whoever made the client closes it."""
