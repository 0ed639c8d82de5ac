"""One request to a service the user configured, such as a search service: within limits, no redirects.

Unlike a page for a model its address was chosen by a person, so it may be private, and proxies of the
environment apply. Credentials are in the headers or the query: no error repeats either.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio
from msgspec import Struct

from robota._version import __version__
from robota.http.client import CONNECT_SECONDS, HttpClient
from robota.http.errors import HeaderError, HttpError
from robota.http.request import build_request
from robota.http.url import Url
from robota.tools.web.failure import DO_NOT_RETRY, FetchError, describe_failure, too_slow

MAX_BODY_BYTES = 5_000_000
USER_AGENT = f"robota/{__version__}"


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
    sent = {"user-agent": USER_AGENT, "accept": "*/*", "accept-encoding": "gzip"}
    sent |= {name.lower(): value for name, value in headers.items()}
    try:
        request = build_request(method, url, sent)
        with anyio.fail_after(timeout):
            async with HttpClient(connect_seconds=min(CONNECT_SECONDS, timeout / 2)) as client:
                reply = await client.send(request, body)
                content = await reply.read(max_bytes)
    except HeaderError as error:
        raise FetchError("configuration", str(error), "Check the value it is given.") from error
    except TimeoutError as error:
        raise too_slow(url, timeout) from error
    except HttpError as error:
        raise describe_failure(error, url) from error
    if not reply.whole:
        raise FetchError(
            "too_large", f"The answer of {url.host} is larger than {max_bytes:,} bytes.", DO_NOT_RETRY
        )
    return Reply(status=reply.status, headers=reply.headers, body=content)
