"""A session in a process of its own, to be killed while a subagent works: `python -m …cut_process HOME`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.sdk.agents.workshop import start

from robota.core.events import SubagentEvent, TextDelta
from robota.sdk.interactive import InteractiveSession
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, Stall, call


def make_session(home: Path, provider: ScriptedProvider, **options: object) -> InteractiveSession:
    return InteractiveSession(
        cwd=home / "project",
        provider=provider,
        permission_mode="bypassPermissions",
        session_store=SessionStore(home / "sessions"),
        environment={**os.environ, "HOME": str(home)},
        **options,  # type: ignore[arg-type]
    )


async def main(home: Path) -> None:
    write = call("Write", file_path="made.txt", content="x")
    script = ScriptedProvider([start("work")], ["Writing now.", write], ["Half", Stall()])
    session = make_session(home, script)

    def tell(event: SubagentEvent) -> None:
        if isinstance(event.inner, TextDelta) and event.inner.text == "Half":
            print(session.session_id, flush=True)

    session.events.on(SubagentEvent, tell)
    await session.submit("go")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
