"""A run in a process of its own, to be killed in the middle: `python -m tests.sessions.cut_process HOME`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from robota.core.tool import Tool
from robota.sessions.options import SessionOptions
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call
from robota.tools.function_tool import FunctionTool

FREE = SessionOptions(permissions=PermissionRules(mode="bypassPermissions"))
PLAIN = {"type": "object", "properties": {}}


def make_tools(home: Path, *, hang: bool) -> tuple[Tool, ...]:
    async def change() -> str:
        with (home / "changes").open("a") as file:
            file.write("changed\n")
        return "changed"

    async def look() -> str:
        print("looking", flush=True)
        if hang:
            await asyncio.Event().wait()
        return "seen"

    return (
        FunctionTool("Change", "", PLAIN, change, tool_class="modify"),
        FunctionTool("Look", "", PLAIN, look, tool_class="inspect"),
    )


async def main(home: Path) -> None:
    session = Session(
        provider=ScriptedProvider([call("Change")], [call("Look")], "never said"),
        model="m",
        tools=make_tools(home, hang=True),
        cwd=str(home),
        store=SessionStore(home / "sessions"),
        session_id="s-1",
        options=FREE,
    )
    session.steer("And hurry.", id="m-1")
    await session.submit("work", id="p-1")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
