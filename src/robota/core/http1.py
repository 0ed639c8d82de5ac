"""A small HTTP/1.1 client that connects to addresses checked before, for callers without an HTTP library.

One request per connection, no redirects, no cookies, no proxy, no compression. Size and time are capped. What
goes wrong on the way is a `NetworkError`; any answer, whatever its status, is a response.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream
from msgspec import Struct

from robota.core.errors import NetworkError, ValidationError
from robota.core.net import Url

MAX_BODY = 10 * 1024 * 1024
MAX_SECONDS = 30.0

_MAX_HEAD = 64 * 1024
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STATUS = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})(?: (.*))?")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})


class HttpResponse(Struct, frozen=True, kw_only=True):
    status: int
    reason: str = ""
    headers: Mapping[str, str]
    """Names in lower case; repeated fields joined by a comma."""
    body: bytes = b""
    truncated: bool = False
    """The body was longer than the cap; what is here is its beginning."""


async def send_request(
    url: Url,
    addresses: Sequence[str],
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    timeout: float = MAX_SECONDS,
    max_body: int = MAX_BODY,
    tls: ssl.SSLContext | None = None,
) -> HttpResponse:
    """Send one request to the first address that answers and read the response."""
    head = _encode_head(url, method, headers or {}, len(body))
    try:
        with anyio.fail_after(timeout):
            stream = await _connect(url, addresses, tls)
            async with stream:
                await stream.send(head + body)
                return await _read_response(BufferedByteReceiveStream(stream), method, max_body)
    except TimeoutError as error:
        raise NetworkError(f"{url.host} did not answer within {timeout:g} s.") from error
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.IncompleteRead) as error:
        raise NetworkError(f"{url.host} closed the connection before its answer was complete.") from error
    except OSError as error:
        raise NetworkError(f"{url.host} could not be reached: {error}.") from error
    except (anyio.DelimiterNotFound, ValueError) as error:
        raise NetworkError(f"{url.host} did not answer in HTTP/1.1: {error}.") from error


def _encode_head(url: Url, method: str, headers: Mapping[str, str], length: int) -> bytes:
    if not _TOKEN.fullmatch(method):
        raise ValidationError(f"{method!r} is no HTTP method.", field="method")
    lines = [f"{method} {url.target} HTTP/1.1", f"Host: {url.authority}", f"Content-Length: {length}"]
    lines += ["Connection: close", "Accept-Encoding: identity"]
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or name.lower() in _OURS:
            raise ValidationError(f"The header {name!r} cannot be set.", field="headers")
        if any(char in value for char in "\r\n\0") or not value.isascii():
            raise ValidationError(
                f"The value of header {name!r} holds a line end or no ASCII.", field="headers"
            )
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


async def _connect(url: Url, addresses: Sequence[str], tls: ssl.SSLContext | None) -> ByteStream:
    failure: OSError | None = None
    for address in addresses:
        try:
            return await _open(url, address, tls)
        except ssl.SSLError:  # somebody is there, but not who we mean
            raise
        except OSError as error:
            failure = error
    raise NetworkError(f"{url.host} could not be reached: {failure or 'it has no address'}.")


async def _open(url: Url, address: str, tls: ssl.SSLContext | None) -> ByteStream:
    if url.scheme == "http":
        return await anyio.connect_tcp(address, url.port)
    return await anyio.connect_tcp(
        address,
        url.port,
        ssl_context=tls or ssl.create_default_context(),
        tls_standard_compatible=False,
        tls_hostname=url.host,
    )


async def _read_response(stream: BufferedByteReceiveStream, method: str, max_body: int) -> HttpResponse:
    status, reason, headers = await _read_head(stream)
    while status < 200:
        status, reason, headers = await _read_head(stream)
    body, truncated = b"", False
    if method != "HEAD" and status not in (204, 304):
        if headers.get("content-encoding", "identity") != "identity":
            raise ValueError(f"it sent {headers['content-encoding']!r} data although none was offered")
        body, truncated = await _read_body(stream, headers, max_body)
    return HttpResponse(status=status, reason=reason, headers=headers, body=body, truncated=truncated)


async def _read_head(stream: BufferedByteReceiveStream) -> tuple[int, str, dict[str, str]]:
    first, *lines = (await stream.receive_until(b"\r\n\r\n", _MAX_HEAD)).decode("latin-1").split("\r\n")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise ValueError(f"its first line is {first[:60]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name):
            raise ValueError(f"it sent the header line {line[:60]!r}")
        key, text = name.lower(), value.strip(" \t")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return int(status[1]), status[2] or "", headers


async def _read_body(
    stream: BufferedByteReceiveStream, headers: Mapping[str, str], limit: int
) -> tuple[bytes, bool]:
    if "transfer-encoding" in headers:
        if headers["transfer-encoding"].lower() != "chunked":
            raise ValueError(f"it sent the transfer encoding {headers['transfer-encoding']!r}")
        return await _read_chunks(stream, limit)
    if "content-length" in headers:
        sizes = {size.strip() for size in headers["content-length"].split(",")}
        size = sizes.pop()
        if sizes or not size.isdecimal() or len(size) > 15:
            raise ValueError(f"it sent the content length {headers['content-length']!r}")
        return await stream.receive_exactly(min(int(size), limit)), int(size) > limit
    return await _read_to_end(stream, limit)


async def _read_chunks(stream: BufferedByteReceiveStream, limit: int) -> tuple[bytes, bool]:
    body = bytearray()
    while size := await _read_chunk_size(stream):
        room = limit - len(body)
        body += await stream.receive_exactly(min(size, room))
        if size > room:
            return bytes(body), True
        if await stream.receive_exactly(2) != b"\r\n":
            raise ValueError("a chunk does not end where it should")
    return bytes(body), False


async def _read_chunk_size(stream: BufferedByteReceiveStream) -> int:
    line = await stream.receive_until(b"\r\n", 1024)
    digits = line.partition(b";")[0].strip()
    if not re.fullmatch(rb"[0-9A-Fa-f]{1,12}", digits):
        raise ValueError(f"it sent the chunk size {digits[:20]!r}")
    return int(digits, 16)


async def _read_to_end(stream: BufferedByteReceiveStream, limit: int) -> tuple[bytes, bool]:
    body = bytearray()
    try:
        while len(body) <= limit:
            body += await stream.receive(65536)
    except anyio.EndOfStream:
        return bytes(body[:limit]), len(body) > limit
    return bytes(body[:limit]), True
