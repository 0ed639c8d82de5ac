"""Asks a service one question by GET and reads the JSON it answers with: lists of models, checks of a key.

The rules are those of the channel: no redirects, every failure one of our errors, no secret in any text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from robota.core.errors import NetworkError, ProviderError, RobotaError
from robota.core.jsontext import decode
from robota.core.messages import Json
from robota.providers.wire.channel import CONNECT_SECONDS, HttpChannel
from robota.providers.wire.errors import Refusal, describe_refusal

if TYPE_CHECKING:
    import httpx2

PATIENCE = 20.0
"""Seconds for the whole answer."""
MAX_BYTES = 16 * 1024 * 1024


async def get_json(
    url: str,
    headers: Mapping[str, str],
    *,
    provider: str,
    secrets: Sequence[str] = (),
    timeout: float | None = None,
    describe: Callable[[Refusal, str, Sequence[str]], RobotaError] = describe_refusal,
) -> Json:
    """The JSON at that address; a refusal, a failure or anything that is no JSON is raised."""
    import anyio  # noqa: PLC0415 - httpx2 loads it
    import httpx2  # noqa: PLC0415 - 74 ms, paid by those who ask

    channel = HttpChannel(url, headers, provider=provider, secrets=secrets)  # checks address and headers
    asked = {"accept": "application/json", **headers}
    try:
        with anyio.fail_after(timeout or PATIENCE):
            async with (
                httpx2.AsyncClient(timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS)) as client,
                client.stream("GET", url, headers=asked, follow_redirects=False) as response,
            ):
                body = await _read(response)
    except httpx2.HTTPError as error:
        raise channel.translate(error) from error
    except TimeoutError as error:
        raise NetworkError(
            f"{provider} at {channel.origin} did not answer in time; check the address and the network.",
            provider=provider,
        ) from error
    if not response.is_success:
        refusal = Refusal(response.status_code, dict(response.headers.items()), body, "", url)
        raise describe(refusal, provider, channel.secrets)
    try:
        return decode(body)
    except ValueError as error:
        raise ProviderError(
            f"{provider} at {channel.origin} answered with something that is no JSON; "
            "check the base URL: this may be a web page or a proxy.",
            provider=provider,
            status=response.status_code,
        ) from error


async def _read(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_BYTES:
            break
    return bytes(body)
