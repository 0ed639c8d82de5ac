"""The server over standard input and output, one message a line."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
from mcp.server import Server
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from robota.transports.line_reader import read_lines
from robota.transports.line_writer import LineWriter


async def run_stdio(server: Server[Any], *, stdin: int = 0, stdout: int = 1) -> None:
    """Serve until the client leaves. Reading is done by a thread that nobody waits for, so that a signal
    ends the program although the client holds the pipe open."""
    gone = asyncio.Event()
    writer = LineWriter(stdout, lambda why: gone.set())
    put_in, taken = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    said, put_out = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with put_in:
            async for line in read_lines(stdin):
                if not line.strip():
                    continue
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    await put_in.send(error)
                else:
                    await put_in.send(SessionMessage(message))

    async def write() -> None:
        async with put_out:
            async for message in put_out:
                writer.write(
                    message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                )

    async with anyio.create_task_group() as group:

        async def leave() -> None:
            await gone.wait()
            group.cancel_scope.cancel()

        group.start_soon(read)
        group.start_soon(write)
        group.start_soon(leave)
        await server.run(taken, said, server.create_initialization_options())
        group.cancel_scope.cancel()
    if writer.broken is None:
        await writer.drain()
