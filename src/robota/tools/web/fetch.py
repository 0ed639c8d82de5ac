"""Requests to web servers, within hard limits; what goes wrong is a `FetchError`.

`exchange` asks a service the user configured, such as a search service: a person chose its address, so it may
be private, and proxies of the environment apply; no redirects. Credentials are in the headers or the query:
no error repeats either. `Fetcher` reads one page for a model: public addresses only, exactly those that were
checked, no cookies, no credentials, no proxy. A redirect is a new URL with every check made again; one that
leads elsewhere is handed back as data. Failures are told in words a model can act on, made here from their
kind and the host's name.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
from msgspec import Struct

from robota._version import __version__
from robota.core.plain_text import clip
from robota.http.address import AddressPolicy, Resolve
from robota.http.client import CONNECT_SECONDS, HttpClient
from robota.http.errors import FailureKind, HeaderError, HttpError, UrlError
from robota.http.exchange import Reply as HttpReply
from robota.http.exchange import build_request
from robota.http.url import MAX_REDIRECTS, Url, judge_redirect, parse_url
from robota.tools.web.text import kind_of, media_type

if TYPE_CHECKING:
    import ssl

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


# --- pages ---------------------------------------------------------------------------------------------

_HEADERS = {
    "User-Agent": USER_AGENT,
    "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.5",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Page(Struct, frozen=True):
    """What a server answered."""

    url: Url
    """Where it was found in the end."""
    status: int
    content_type: str
    body: bytes


class UnfollowedRedirect(Struct, frozen=True):
    """A redirect that was not followed."""

    url: Url
    status: int
    reason: str


class Fetcher(Struct, frozen=True, kw_only=True):
    """How pages are fetched; `resolve` and `tls` stand for the network's edge."""

    policy: AddressPolicy
    may_follow: Callable[[str], bool] | None
    """Asked with the URL of a redirect on the same host: permission rules may look at more than the host."""
    timeout: float
    max_bytes: int
    """Of a page, counted as it arrives and again when decompressed."""
    resolve: Resolve | None
    tls: ssl.SSLContext | None

    async def fetch(self, address: str, headers: Mapping[str, str]) -> Page | UnfollowedRedirect:
        """The page at an address. `headers` replace those of ours of the same name."""
        try:
            url = parse_url(address)
        except UrlError as error:
            raise FetchError("invalid_url", f"{clip(str(error), 300)} Correct its format.") from error
        try:
            with anyio.fail_after(self.timeout):
                return await self._follow(url, {**_HEADERS, **headers})
        except TimeoutError as error:
            raise too_slow(url, self.timeout) from error

    async def _follow(self, url: Url, headers: Mapping[str, str]) -> Page | UnfollowedRedirect:
        followed = 0
        while True:
            answer = await self._ask(url, headers)
            if isinstance(answer, Page):
                return answer
            status, location = answer
            if followed >= MAX_REDIRECTS:
                raise FetchError(
                    "redirects", f"{url.host} redirected more than {MAX_REDIRECTS} times.", DO_NOT_RETRY
                )
            try:
                redirect = judge_redirect(url, location, followed=followed)
            except ValueError as error:
                raise FetchError(
                    "redirects", f"{url.host} redirects to nowhere. {clip(str(error), 300)}"
                ) from error
            if not redirect.follow:
                return UnfollowedRedirect(redirect.url, status, redirect.reason)
            if self.may_follow is not None and not self.may_follow(str(redirect.url)):
                return UnfollowedRedirect(redirect.url, status, "a permission rule does not allow it")
            url = redirect.url
            followed += 1

    async def _ask(self, url: Url, headers: Mapping[str, str]) -> Page | tuple[int, str]:
        """The page, or the status of a redirect and where it leads."""
        client = HttpClient(
            connect_seconds=min(CONNECT_SECONDS, self.timeout / 2),
            tls=self.tls,
            policy=self.policy,
            resolve=self.resolve,
        )
        try:
            async with client, await client.send(build_request("GET", url, headers)) as reply:
                return await self._read(url, reply)
        except UrlError as error:
            raise FetchError("forbidden_address", str(error)) from error
        except HttpError as error:
            raise describe_failure(error, url) from error

    async def _read(self, url: Url, reply: HttpReply) -> Page | tuple[int, str]:
        status, headers = reply.status, reply.headers
        if status in _REDIRECTS and "location" in headers:
            return status, headers["location"]
        if not 200 <= status < 300:
            raise bad_status(status)
        content_type = headers.get("content-type", "")
        size = headers.get("content-length", "")
        if kind_of(content_type) == "binary":
            raise FetchError("binary", _binary(url, content_type, size))
        if size.isdecimal() and len(size) < 20 and int(size) > self.max_bytes:
            raise self._too_large(f"{int(size):,} bytes")
        body = await reply.read(self.max_bytes)
        if not reply.whole:
            raise self._too_large("it does not end before that")
        return Page(url, status, content_type, body)

    def _too_large(self, how: str) -> FetchError:
        return FetchError(
            "too_large", f"Response too large: {how}; the limit is {self.max_bytes:,} bytes.", DO_NOT_RETRY
        )


def _binary(url: Url, content_type: str, size: str) -> str:
    length = f", {int(size):,} bytes" if size.isdecimal() and len(size) < 20 else ""
    media = "".join(char for char in media_type(content_type)[:80] if char.isalnum() or char in "./+-")
    return (
        f"{url} is not text ({media}{length}), and only text can be shown. "
        "If it is needed, save it with a command and use a program that reads it."
    )
