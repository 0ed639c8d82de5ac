"""Serves one connection of the Agent Client Protocol over pipes, from the first line to its end."""

from __future__ import annotations

import asyncio

from robota.transports.acp.agent import AcpAgent
from robota.transports.line_reader import read_lines
from robota.transports.line_writer import LineWriter
from robota.transports.session_maker import SessionMaker

ENDING_SECONDS = 5.0


async def run_acp(host: SessionMaker, *, stdin: int = 0, stdout: int = 1) -> None:
    """Let an editor drive sessions over pipes, until it leaves. Then what runs is stopped and saved."""
    gone = asyncio.Event()
    writer = LineWriter(stdout, lambda why: gone.set())
    agent = AcpAgent(host, writer.write)
    reading = asyncio.create_task(_read(agent, stdin))
    leaving = asyncio.create_task(gone.wait())
    try:
        await asyncio.wait((reading, leaving), return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()  # a line without end
    finally:
        for task in (reading, leaving):
            task.cancel()
        await asyncio.wait((reading, leaving))
        await agent.close()
        await agent.peer.end(ENDING_SECONDS)
    if writer.broken is None:
        await writer.drain()


async def _read(agent: AcpAgent, stdin: int) -> None:
    async for line in read_lines(stdin):
        agent.peer.take_line(line)
