"""What MCP servers cost a session: fifty of them at the first request, a thousand tools beside ten.

    python bench/mcp_servers.py [--quick]

Ratios of wall time in one process; the sides take turns and the smallest sample counts. A missed goal is no
failure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from robota import InteractiveSession
from robota.core.provider import Capabilities, ChatRequest, Chunk, StopChunk, TextChunk

STUB = Path(__file__).parents[1] / "tests" / "support" / "mcp_server.py"
SERVERS, TOOLS = 50, 20
GOAL = 1.1


class Instant:
    """Answers at once; notes when it was asked, and with what."""

    name = "instant"
    capabilities = Capabilities()

    def __init__(self) -> None:
        self.asked = 0.0
        self.tools: list[str] = []

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        self.asked = time.perf_counter()
        self.tools = [tool.name for tool in request.tools]
        yield TextChunk("Done.")
        yield StopChunk("end_turn")


def define(count: int, tools: int) -> dict[str, Any]:
    return {
        f"server{at}": {
            "command": sys.executable,
            "args": ["-S", str(STUB), json.dumps({"name": f"s{at}", "own": 0, "tools": tools})],
            "startupTimeout": 300_000,
        }
        for at in range(count)
    }


def open_session(root: Path, servers: dict[str, Any], search: bool) -> tuple[InteractiveSession, Instant]:
    provider = Instant()
    session = InteractiveSession(
        provider=provider,
        model="instant",
        context_window=200_000,
        cwd=root,
        mcp_servers=servers,
        settings={"toolSearch": "auto" if search else False},
        environment={"HOME": str(root), "PATH": "/usr/bin:/bin"},
    )
    return session, provider


async def first_request(root: Path, servers: dict[str, Any]) -> float:
    """Seconds from the first use of a session to the model's first request."""
    session, provider = open_session(root, servers, search=True)
    async with session:
        began = time.perf_counter()
        await session.submit("Hello.")
        assert not count_tools(provider)
        return provider.asked - began


async def compare_rounds(root: Path, count: int) -> float:
    """A round with a thousand deferred tools beside one with ten, taking turns; the best of each."""
    few, asked_few = open_session(root, define(1, 10), search=False)
    many, asked_many = open_session(root, define(SERVERS, TOOLS), search=True)
    best = {few: float("inf"), many: float("inf")}
    async with few, many:
        for session in best:
            await session.ready()
            await session.kit.servers.settle(300)
        for _ in range(count):
            for session in best:
                began = time.perf_counter()
                await session.submit("Hello.")
                best[session] = min(best[session], time.perf_counter() - began)
    assert count_tools(asked_few) == 10
    assert count_tools(asked_many) == 0
    return best[many] / best[few]


def count_tools(provider: Instant) -> int:
    return sum(name.startswith("mcp__") for name in provider.tools)


async def main(quick: bool) -> None:
    repeats, prompts = (2, 50) if quick else (5, 300)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        plain, crowded = float("inf"), float("inf")
        for _ in range(repeats):
            plain = min(plain, await first_request(root, {}))
            crowded = min(crowded, await first_request(root, define(SERVERS, TOOLS)))
        print(f"first request, {SERVERS} servers beside none: {crowded / plain:.2f}x  (information)")
        ratio = await compare_rounds(root, prompts)
        verdict = "ok" if ratio <= GOAL else "MISSED"
        words = f"a round with {SERVERS * TOOLS:,} deferred tools beside ten"
        print(f"{words}: {ratio:.2f}x  (goal {GOAL:.2f}x) {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    asyncio.run(main(parser.parse_args().quick))
