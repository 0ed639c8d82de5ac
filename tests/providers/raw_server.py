"""A server that answers requests with given bytes, whatever HTTP would say about them, and then hangs up."""

from __future__ import annotations

import asyncio
from typing import Self

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class RawServer:
    """One answer per connection. `endless` is sent again and again after it, until the client has enough."""

    def __init__(self, *answers: bytes, endless: bytes = b"") -> None:
        self._answers = list(answers)
        self._endless = endless
        self.requests: list[bytes] = []
        """Heads of the requests."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.lower().partition(b": ")[::2] for line in head.split(b"\r\n")[1:])
            await reader.readexactly(int(fields.get(b"content-length", 0)))
            self.requests.append(head)
            writer.write(self._answers.pop(0))
            await writer.drain()
            while self._endless and not self._answers:
                writer.write(self._endless)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


def refusal(status: int, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} No", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(*parts: bytes) -> bytes:
    """A reply in HTTP chunks, without its end."""
    head = HEAD.replace(b"connection: close", b"transfer-encoding: chunked")
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
