"""A model server for tests: plays HTTP replies on a loopback port and records what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass
class Reply:
    """What to answer. A part is sent as one HTTP chunk, or waited for; `hang` never ends."""

    parts: Sequence[bytes | asyncio.Event | asyncio.Barrier] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    hang: bool = False
    cut: bool = False
    """Hang up in the middle of the message."""


@dataclass
class Recorded:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Loopback:
    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[Recorded] = []
        self.connections = 0
        self.asked = asyncio.Event()
        """A request has come."""
        self.hung_up = asyncio.Event()
        """The client closed a connection on which a reply was under way."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.origin = f"http://{host}:{port}"
        self.url = f"{self.origin}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append(Recorded(head[0].split()[1], headers, body))
        self.asked.set()
        reply = self.replies.pop(0)
        lines = [f"HTTP/1.1 {reply.status} Whatever", "transfer-encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for part in reply.parts:
            if not isinstance(part, bytes):
                await part.wait()
            elif part:
                writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                await writer.drain()
        if reply.cut:
            return False
        if reply.hang:
            await reader.read(1)
            self.hung_up.set()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def event(delta: dict[str, Any] | None = None, finish: str | None = None, **fields: Any) -> bytes:
    """One event of a Chat Completions stream."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    body = {"id": "chatcmpl-1", "model": "served-model", "choices": choices, **fields}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def text_reply(*texts: str) -> Reply:
    return Reply([*(event({"content": text}) for text in texts), event({}, "stop"), DONE])


def tool_delta(**fields: Any) -> dict[str, Any]:
    return {"tool_calls": [fields]}
