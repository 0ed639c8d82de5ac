"""How many functions a prompt and a tool call pass on their way, over all tasks that are part of it."""

from __future__ import annotations

import asyncio
import sys
from asyncio import selector_events
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import robota
from robota.core.provider import ChatRequest, Chunk, TextChunk
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.sessions.options import SessionOptions
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ModelServer, ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

OURS = str(Path(robota.__file__).parent)
FREE = SessionOptions(permissions=PermissionRules(mode="bypassPermissions"))


def ours(code: Any) -> bool:
    return bool(code.co_filename.startswith(OURS))


def running() -> list[str]:
    """Our functions on the stack of the current task, the outermost first."""
    frame, names = sys._getframe(1), list[str]()
    while frame is not None:
        if ours(frame.f_code):
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back  # type: ignore[assignment]
    return names[::-1]


def suspended(task: asyncio.Task[Any]) -> list[str]:
    """Our functions that wait in a task, the outermost first."""
    waiting, names = task.get_coro(), list[str]()
    while waiting is not None:
        code = getattr(waiting, "cr_code", None) or getattr(waiting, "ag_code", None)
        if code is not None and ours(code):
            names.append(code.co_qualname)
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "ag_await", None)
    return names


class Watch:
    """Notes the way of one prompt up to a point."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.reached = asyncio.Event()
        self.looked_at = asyncio.Event()

    def reach(self) -> None:
        if not self.inside:
            self.inside = running()[:]
            self.reached.set()

    async def follow(self, session: Session) -> list[str]:
        """What the caller waits in, the run, and the task that got to the point."""
        submitted = asyncio.create_task(session.submit("hello"))
        await self.reached.wait()
        # The task of the run was started before anybody waited for it: that is no step of the way.
        way = [name for name in suspended(submitted) if name != "RunTask.finish"]
        run = session.agent.control
        assert run is not None
        inside = self.inside if self.inside[0] == "Loop.run" else [*suspended(run.task), *self.inside]
        self.looked_at.set()
        await submitted
        await session.shutdown()
        return [*way, *inside]


async def test_from_a_session_to_the_provider(tmp_path: Path) -> None:
    watch = Watch()

    class Watching:
        name = "watching"

        async def stream(self, request: ChatRequest) -> AsyncIterator[Chunk]:
            watch.reach()
            await watch.looked_at.wait()
            yield TextChunk("hi")

    session = Session(provider=Watching(), model="m", cwd=str(tmp_path), store=SessionStore(tmp_path / "s"))
    way = await watch.follow(session)
    assert way == ["Session.submit", "Robota.run", "Loop.run", "ModelCall.run"]  # and then `stream`: five


async def test_from_a_session_to_the_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch()
    write = selector_events._SelectorSocketTransport.write  # type: ignore[attr-defined]

    def watched(transport: Any, data: bytes) -> None:
        if data.startswith(b"POST"):
            watch.reach()
        write(transport, data)

    async with (
        ModelServer("hi") as server,
        OpenAICompatibleProvider("test", f"{server.url}/v1", "scripted") as provider,
    ):
        monkeypatch.setattr(selector_events._SelectorSocketTransport, "write", watched)  # type: ignore[attr-defined]
        session = Session(provider=provider, model="scripted", cwd=str(tmp_path))
        way = await watch.follow(session)
    assert way[:4] == ["Session.submit", "Robota.run", "Loop.run", "ModelCall.run"]
    assert len(way) <= 8, way


@pytest.mark.parametrize("count", [1, 2])
async def test_from_the_loop_to_the_body_of_a_tool(tmp_path: Path, count: int) -> None:
    watch = Watch()

    @tool
    async def look(n: int) -> str:
        """Look."""
        watch.reach()
        await watch.looked_at.wait()
        return "seen"

    calls = [call("look", str(n), n=n) for n in range(count)]
    session = Session(
        provider=ScriptedProvider(calls, "done"),
        model="m",
        tools=[look],
        cwd=str(tmp_path),
        store=SessionStore(tmp_path / "s"),
        options=FREE,
    )
    way = await watch.follow(session)
    inside = way[way.index("Loop.run") :]
    assert inside[:2] == ["Loop.run", "ToolRound.run"]
    assert len(inside) <= 6, inside
