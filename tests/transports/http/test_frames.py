"""WebSockets whose bytes are wrong, too many, or come no more: the others notice nothing."""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from pathlib import Path

import pytest
from tests.support.serving import TOKEN, Serving, ended, serving, until
from websockets.asyncio.client import connect

from robota.testing import ScriptedProvider
from robota.transports.http import server as servers

pytestmark = pytest.mark.anyio
MASK = b"\0\0\0\0"
Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def frame(head: int, body: bytes, *, masked: bool = True) -> bytes:
    """A frame; the first byte has its opcode, and whether it is the last of its message."""
    bit = 0x80 if masked else 0
    size = bytes([bit | len(body)]) if len(body) < 126 else bytes([bit | 127]) + len(body).to_bytes(8, "big")
    return bytes([head]) + size + (MASK if masked else b"") + body


async def open_socket(server: Serving, id: str) -> Pipe:
    """A WebSocket without a library that would keep us from being wrong."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    key = b64encode(os.urandom(16)).decode()
    head = (
        f"GET /sessions/{id}/ws?token={TOKEN} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    writer.write(head.encode())
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def read_close(reader: asyncio.StreamReader) -> int:
    """The status with which the server closes the connection; 0 if it only hangs up."""
    while (head := await reader.read(2)) and len(head) == 2:
        size = head[1] & 0x7F
        if size >= 126:
            size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
        body = await reader.readexactly(size)
        if head[0] & 0x0F == 8:
            return int.from_bytes(body[:2], "big")
    return 0


BROKEN = {
    "not masked": (frame(0x81, b"{}", masked=False), 1002),
    "an opcode that is reserved": (frame(0x83, b"{}"), 1002),
    "a reserved bit": (frame(0xC1, b"{}"), 1002),
    "a continuation of nothing": (frame(0x80, b"{}"), 1002),
    "a ping in pieces": (frame(0x09, b"x"), 1002),
    "text that is none": (frame(0x81, b"\xff\xfe"), 1007),
    "too large in one": (frame(0x81, b"x" * 70_000), 1009),
    "too large in pieces": (frame(0x01, b"x" * 40_000) + frame(0x00, b"x" * 40_000), 1009),
}


async def test_frames_that_are_wrong_end_their_connection_and_no_other(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "MESSAGE_BYTES", 64 << 10)
    async with serving(ScriptedProvider(["still ", "here"]), project) as server:
        id = await server.new()
        hosted = server.host.sessions[id]
        address = f"ws://127.0.0.1:{server.port}/sessions/{id}/ws?token={TOKEN}"
        async with connect(address, max_queue=None):  # or it would not read as far as its end
            statuses = {}
            for name, (data, _) in BROKEN.items():
                reader, writer = await open_socket(server, id)
                writer.write(data)
                statuses[name] = await read_close(reader)
                writer.close()
            await until(lambda: len(hosted.readers) == 1)
            await server.submit(id, "hi")
            events = await server.read(id, ended)

    assert statuses == {name: status for name, (_, status) in BROKEN.items()}
    assert events[-1].name == "complete"


async def test_a_socket_whose_other_end_is_gone_without_a_word_is_let_go(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "SOCKET_PING_SECONDS", 0.05)
    async with serving(ScriptedProvider(), project) as server:
        id = await server.new()
        hosted = server.host.sessions[id]
        _, writer = await open_socket(server, id)  # which answers no ping
        await until(lambda: hosted.readers)
        await until(lambda: not hosted.readers)
        writer.close()
