"""A session in a process of its own, to be killed: `python -m tests.sessions.recorded_process HOME URL`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.sessions.recorded_session import RecordedSession, add

from robota.core.tool import ToolContext
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.tools.function_tool import tool


@tool
async def hang(ctx: ToolContext) -> str:
    """Never come back."""
    Path(ctx.cwd, "hanging").touch()
    await asyncio.sleep(600)
    return "never"


async def main(home: str, url: str) -> None:
    async with OpenAICompatibleProvider("test", f"{url}/v1", "scripted") as provider:
        recorded = RecordedSession(Path(home), provider, tools=(add, hang))
        await recorded.run("first", "second")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
