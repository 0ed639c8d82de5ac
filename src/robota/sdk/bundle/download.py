"""Downloads an archive: over our own client, from addresses that may be contacted, within limits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import TypeAlias

import anyio

from robota.http.address import AddressPolicy
from robota.http.client import HttpClient
from robota.http.errors import HttpError, UrlError
from robota.http.exchange import Reply, build_request
from robota.http.url import Url, parse_url
from robota.sdk.bundle.names import BundleError
from robota.sdk.bundle.source import Source

FETCH_SECONDS = 120.0
MAX_DOWNLOAD = 50 * 1024 * 1024
MAX_REDIRECTS = 5
Tell: TypeAlias = Callable[[str], None]
"""Told what goes on, in a sentence."""
_MOVED = (301, 302, 303, 307, 308)
_HEADERS = {"user-agent": "robota", "accept": "*/*", "accept-encoding": "identity"}


def say_nothing(sentence: str) -> None:
    """Nobody watches."""


async def download(source: Source, tell: Tell, near: str) -> bytes:
    """The bytes of an archive. No redirect leads to an address that is not public, but for the host `near`
    that a person named; none leads from https to http."""
    policy = AddressPolicy(allowed_hosts=(near,) if near else ())
    try:
        with anyio.fail_after(FETCH_SECONDS):
            async with HttpClient(policy=policy) as client:
                reply = await _ask(client, parse_url(source.location), source)
                return await _read(reply, source, tell)
    except TimeoutError:
        raise BundleError(
            f"{source.describe()} did not come within {FETCH_SECONDS:g} s: try again later."
        ) from None
    except UrlError as error:
        raise BundleError(f"{source.describe()} cannot be used: {error}.") from error
    except HttpError as error:
        raise BundleError(f"{source.describe()} could not be fetched: {error}.") from error


async def _ask(client: HttpClient, url: Url, source: Source) -> Reply:
    for _ in range(MAX_REDIRECTS + 1):
        reply = await client.send(build_request("GET", url, _HEADERS), b"")
        location = reply.headers.get("location")
        if reply.status == 200:
            return reply
        await reply.aclose()
        if reply.status not in _MOVED or location is None:
            raise BundleError(f"{source.describe()} cannot be had: its server says {reply.status}.")
        url = _follow(url, location, source)
    raise BundleError(f"{source.describe()} leads on and on: refused.")


def _follow(url: Url, location: str, source: Source) -> Url:
    from urllib.parse import urljoin  # noqa: PLC0415 - for redirects

    target = parse_url(urljoin(str(url), location))
    if url.scheme == "https" and target.scheme != "https":
        raise BundleError(f"{source.describe()} leads from https to {target.scheme}: refused.")
    return target


async def _read(reply: Reply, source: Source, tell: Tell) -> bytes:
    length = reply.headers.get("content-length", "")
    size, told, data = int(length) if length.isdecimal() else 0, 0, bytearray()
    async with reply, aclosing(reply.parts()) as parts:
        async for part in parts:
            data += part
            if len(data) > MAX_DOWNLOAD:
                raise BundleError(f"{source.describe()} is larger than {MAX_DOWNLOAD >> 20} MB: refused.")
            if size and len(data) * 10 // size > told:
                told = len(data) * 10 // size
                tell(f"Downloading {source.describe()}: {told}0% of {size / 1e6:.1f} MB")
    return bytes(data)
