"""One request to a service the user configured, such as a search service: within limits, no redirects.

Unlike a page for a model its address was chosen by a person, so it may be private, and proxies of the
environment apply. Credentials are in the headers or the query: no error repeats either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct

from robota.http.url import Url
from robota.tools.web.body import USER_AGENT, BodyReader, trusting_context
from robota.tools.web.failure import DO_NOT_RETRY, FetchError, describe_failure, too_slow

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 10.0
MAX_BODY_BYTES = 5_000_000


class Reply(Struct, frozen=True, kw_only=True):
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")


async def exchange(
    method: str,
    url: Url,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    timeout: float,
    max_bytes: int = MAX_BODY_BYTES,
) -> Reply:
    """Send one request and read the reply, whatever its status; what goes wrong is a `FetchError`."""
    import httpx2  # noqa: PLC0415 - 74 ms, paid by the first exchange

    sent = {"user-agent": USER_AGENT, "accept-encoding": "gzip"}
    sent |= {name.lower(): value for name, value in headers.items()}
    waiting = httpx2.Timeout(None, connect=min(CONNECT_SECONDS, timeout / 2))
    try:
        with anyio.fail_after(timeout):
            async with (
                httpx2.AsyncClient(verify=trusting_context(), timeout=waiting) as client,
                client.stream(method, str(url), headers=sent, content=body or None) as response,
            ):
                return await _read(url, response, max_bytes)
    except TimeoutError as error:
        raise too_slow(url, timeout) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise describe_failure(error, url) from error


async def _read(url: Url, response: httpx2.Response, max_bytes: int) -> Reply:
    body = BodyReader(url, response.headers.get("content-encoding", ""), max_bytes)
    async for piece in response.aiter_raw():
        if not body.take(piece):
            raise FetchError(
                "too_large", f"The answer of {url.host} is larger than {max_bytes:,} bytes.", DO_NOT_RETRY
            )
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(status=response.status_code, headers=headers, body=body.finish())
