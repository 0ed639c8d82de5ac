"""Fetching one page for a model: public addresses only, exactly those that were checked, within hard limits.

No cookies, no credentials, no proxy. A redirect is a new URL with every check made again; one that leads
elsewhere is handed back as data. What goes wrong is a `FetchError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct

from robota.core.plain_text import clip
from robota.http.address import AddressPolicy, Resolve
from robota.http.client import CONNECT_SECONDS, HttpClient
from robota.http.errors import HttpError, UrlError
from robota.http.exchange import Reply, build_request
from robota.http.url import MAX_REDIRECTS, Url, judge_redirect, parse_url
from robota.tools.web.exchange import (
    DO_NOT_RETRY,
    USER_AGENT,
    FetchError,
    bad_status,
    describe_failure,
    too_slow,
)
from robota.tools.web.text import kind_of, media_type

if TYPE_CHECKING:
    import ssl

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

    async def _read(self, url: Url, reply: Reply) -> Page | tuple[int, str]:
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
