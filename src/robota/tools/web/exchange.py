"""One request to a service the user configured, such as a search service: within limits, no redirects.

Unlike a page for a model its address was chosen by a person, so it may be private, and proxies of the
environment apply. Credentials are in the headers or the query: no error repeats either. Failures are told in
words a model can act on, made here from their kind and the host's name.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Literal, TypeAlias

import anyio
from msgspec import Struct

from robota._version import __version__
from robota.http.client import CONNECT_SECONDS, HttpClient
from robota.http.errors import FailureKind, HeaderError, HttpError
from robota.http.exchange import build_request
from robota.http.url import Url

MAX_BODY_BYTES = 5_000_000
USER_AGENT = f"robota/{__version__}"
FailureCode: TypeAlias = Literal[
    "invalid_url", "forbidden_address", "dns", "refused", "reset", "timeout", "certificate", "protocol",
    "network", "http_status", "too_large", "binary", "redirects", "configuration",
]  # fmt: skip
RETRY_ONCE = "You may retry once."
DO_NOT_RETRY = "Do not retry."


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


class FetchError(Exception):
    """An exchange that gave nothing to use: a fact, and advice on what to do next."""

    def __init__(self, code: FailureCode, fact: str, advice: str = "") -> None:
        super().__init__(f"{fact} {advice}".rstrip())
        self.code = code
        self.fact = fact
        self.advice = advice


_FAILURES: Mapping[FailureKind, tuple[FailureCode, str, str]] = {
    "refused": (
        "refused",
        "{host} refused the connection on port {port}.",
        "Check the address; retry only if the service is just starting.",
    ),
    "certificate": ("certificate", "The certificate of {host} was not accepted: {error}.", DO_NOT_RETRY),
    "tls": ("certificate", "{host} does not speak TLS as it should.", DO_NOT_RETRY),
    "connect_timeout": ("timeout", "{host} did not answer in time.", RETRY_ONCE),
    "silence": ("timeout", "{host} did not answer in time.", RETRY_ONCE),
    "closed": ("reset", "{host} closed the connection before its answer was complete.", RETRY_ONCE),
    "protocol": ("protocol", "{host} did not answer in proper HTTP: {error}.", DO_NOT_RETRY),
    "connect": ("network", "{host} could not be reached.", RETRY_ONCE),
    "proxy": ("network", "{host} could not be reached.", RETRY_ONCE),
}


def describe_failure(error: HttpError, url: Url) -> FetchError:
    """What a failure of the HTTP client means."""
    if error.kind == "dns":
        return _unknown_host(error.__cause__, url.host)
    code, fact, advice = _FAILURES[error.kind]
    return FetchError(code, fact.format(host=url.host, port=url.port, error=error), advice)


def too_slow(url: Url, seconds: float) -> FetchError:
    return FetchError("timeout", f"{url.host} did not answer within {seconds:g} s.", RETRY_ONCE)


def bad_status(status: int, who: str = "") -> FetchError:
    """`HTTP 404 Not Found.` and whether to try again; the words are ours, not the server's."""
    from http import HTTPStatus  # noqa: PLC0415 - only for refusals

    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    if status >= 500:
        advice = "The server has a problem; you may retry later."
    elif status in (408, 429):
        advice = "The server asks for patience; retry later, not at once."
    else:
        advice = DO_NOT_RETRY
    return FetchError("http_status", f"{who} HTTP {status}{phrase}.".lstrip(), advice)


def _unknown_host(cause: BaseException | None, where: str) -> FetchError:
    if cause is None:
        return FetchError("dns", f"The host {where!r} has no address.")
    if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_AGAIN:
        return FetchError("dns", f"The name {where!r} cannot be looked up at the moment.", RETRY_ONCE)
    return FetchError("dns", f"The host {where!r} was not found. Check its spelling.", DO_NOT_RETRY)
