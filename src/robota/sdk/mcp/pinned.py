"""`oauth.authServerMetadataUrl`: where one logs in is what the definition says, not what the server tells.

Importing this loads the protocol's library.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx2
from mcp.shared.auth import OAuthMetadata
from pydantic import ValidationError

from robota.core.errors import ConfigurationError
from robota.core.jsontext import decode, encode
from robota.core.messages import JsonObject
from robota.tools.mcp.definition import ServerDefinition

_OF_AUTHORIZATION = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


class PinnedMetadata(httpx2.Auth):
    """Around what logs in: its looks for an authorization server end at the address of the definition."""

    def __init__(self, inner: httpx2.Auth, definition: ServerDefinition, address: str) -> None:
        self._inner = inner
        self._definition = definition
        self._address = address
        self._known: OAuthMetadata | None = None

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = self._inner.async_auth_flow(request)
        try:
            wanted = await anext(flow)
            while True:
                if wanted is request or wanted.method != "GET":
                    response = yield wanted
                else:
                    if self._known is None:
                        said = yield httpx2.Request("GET", self._address)
                        await said.aread()
                        self._known = self._read(said)
                    if any(place in wanted.url.path for place in _OF_AUTHORIZATION):
                        response = _answer(wanted, self._known.model_dump_json(exclude_none=True).encode())
                    else:
                        said = yield wanted
                        await said.aread()
                        response = self._point(said, self._known)
                wanted = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _read(self, response: httpx2.Response) -> OAuthMetadata:
        why = f"its server says {response.status_code}"
        if response.status_code == httpx2.codes.OK:
            try:
                return OAuthMetadata.model_validate_json(response.content)
            except ValidationError as error:
                why = f"it has no metadata of an authorization server ({error.error_count()} mistakes)"
        raise ConfigurationError(
            f"The MCP server {self._definition.name!r} cannot be logged in at: {self._address} "
            f"(authServerMetadataUrl): {why}."
        )

    def _point(self, response: httpx2.Response, known: OAuthMetadata) -> httpx2.Response:
        """What the server says of itself, with the authorization server that counts."""
        said: JsonObject = {"resource": self._definition.url}
        if response.status_code == httpx2.codes.OK:
            try:
                told = decode(response.content)
            except ValueError:
                told = None
            said |= told if isinstance(told, dict) else {}
        return _answer(response.request, encode(said | {"authorization_servers": [str(known.issuer)]}))


def _answer(request: httpx2.Request, content: bytes) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    return httpx2.Response(httpx2.codes.OK, headers=headers, content=content, request=request)
