"""A session with work beside it, to be killed: `python -m tests.sdk.background.killed_process PROJECT STORE`.

One command has ended, another one runs and has printed, an agent works, and the model asks for permission.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from robota.core.events import BackgroundTaskChanged, QuestionAsked
from robota.sdk.background.live_task import Work
from robota.sdk.background.request import TaskRequest
from robota.sdk.interactive import InteractiveSession
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, Stall, call

ENDS = call("Bash", command="echo finished", run_in_background=True)
RUNS = call("Bash", command="echo serving; read x < go", run_in_background=True)
ASKS = call("Write", file_path="made.txt", content="x")


async def main(project: str, store: str) -> None:
    session = InteractiveSession(
        cwd=project,
        provider=ScriptedProvider([ENDS, RUNS], "Started.", [ASKS], "never said"),
        permission_mode="acceptEdits",
        session_store=SessionStore(store),
        permission_handler=answer,
    )
    inner = await session.ready()
    seen: set[str] = set()
    ready = asyncio.Event()

    def hear(event: BackgroundTaskChanged | QuestionAsked) -> None:
        if isinstance(event, BackgroundTaskChanged):
            what = f"{event.change} {event.text}"
        else:
            what = "asked about Write" if getattr(event.question, "tool_name", "") == "Write" else ""
        seen.update(word for word in ("completed", "serving", "thinking", "Write") if word in what)
        if len(seen) == 4:
            ready.set()

    session.events.on(BackgroundTaskChanged, hear)
    session.events.on(QuestionAsked, hear)
    await session.submit("start the server")
    inner.permission_mode = "default"

    async def think(work: Work) -> str:
        child = inner.child(work.task_id)
        child.agent.provider = ScriptedProvider(["thinking about it\n", Stall()])
        async with child:
            return (await child.submit(work.request.prompt)).text

    await session.kit.background.spawn(TaskRequest(prompt="think", label="Thinker"), think)
    turn = asyncio.create_task(session.submit("write it"))
    await ready.wait()
    await inner.log.sync()
    print(session.session_id, flush=True)
    await turn


async def answer(question: Any) -> bool:
    if question.tool_name == "Bash":
        return True
    await asyncio.Event().wait()
    return False


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
