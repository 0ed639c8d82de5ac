"""A web server for tests: answers on a loopback port with exactly the bytes it is told, honest or not."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Self, TypeAlias
from urllib.parse import parse_qsl, urlsplit

Send: TypeAlias = Callable[[bytes], Awaitable[None]]
Answer: TypeAlias = bytes | Callable[["Request", Send], Awaitable[None]]


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)


def answer(
    body: bytes | str = b"", content_type: str = "text/plain", *headers: str, status: str = "200 OK"
) -> bytes:
    """An honest answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", *headers]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    return "\r\n".join([*lines, "", ""]).encode() + data


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(b"", "text/plain", f"Location: {location}", status=status)


class Site:
    """Serves `pages` by path; `"*"` is served for every other path. One request per connection."""

    def __init__(self, pages: dict[str, Answer], *, tls: ssl.SSLContext | None = None) -> None:
        self.pages = pages
        self.requests: list[Request] = []
        self.hung_up = asyncio.Event()
        """A client left before it had everything."""
        self._tls = tls
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for each in tuple(self._serving):  # newer Pythons wait for those that never answer
            each.cancel()
        await self._server.wait_closed()

    @property
    def paths(self) -> list[str]:
        return [request.target for request in self.requests]

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        try:
            request = await _read_request(reader)
            self.requests.append(request)
            page = self.pages.get(request.path, self.pages.get("*", answer(status="404 Not Found")))
            if isinstance(page, bytes):
                await send(page)
            else:
                await page(request, send)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up.set()
        finally:
            writer.close()


async def _read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    return Request(method, target, headers, await reader.readexactly(int(headers.get("content-length", 0))))


def names(**hosts: str | Iterable[str]) -> Callable[[str, int], Awaitable[list[str]]]:
    """A resolver that knows these hosts (`_` for `.`) and no other."""
    known = {
        name.replace("_", "."): [found] if isinstance(found, str) else list(found)
        for name, found in hosts.items()
    }

    async def resolve(host: str, port: int) -> list[str]:
        return known[host]

    return resolve
