"""One prompt waits behind the one that runs; cancel and abort empty the queue."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.sdk.contract.heard import Heard

from robota import InteractiveSession
from robota.core import PromptQueued, SessionBusyError
from robota.testing import ScriptedProvider, Stall

pytestmark = pytest.mark.anyio


class Busy:
    """A session whose first answer has begun and does not end by itself."""

    def __init__(self, project: Path, *after: str) -> None:
        self.begun = asyncio.Event()
        self.provider = ScriptedProvider(["Begun.", Stall()], *after)
        self.session = InteractiveSession(cwd=project, provider=self.provider)
        self.heard = Heard(self.session)
        self.session.on("text_delta", lambda text: self.begun.set())

    async def start(self) -> asyncio.Future[object]:
        first = asyncio.ensure_future(self.session.submit("first"))
        await self.begun.wait()
        return first


async def queued(session: InteractiveSession, text: str) -> asyncio.Future[object]:
    told = asyncio.Event()
    stop = session.events.on(PromptQueued, lambda event: told.set())
    waiting = asyncio.ensure_future(session.submit(text))
    await told.wait()
    stop()
    return waiting


async def test_a_second_prompt_waits_and_can_be_seen(project: Path) -> None:
    busy = Busy(project)
    async with busy.session as session:
        first = await busy.start()
        assert session.is_executing
        assert session.pending_prompt is None
        second = await queued(session, "second")
        assert session.pending_prompt == "second"
        session.abort()
        await asyncio.gather(first, second)
        assert session.pending_prompt is None


async def test_a_third_prompt_is_refused_and_the_second_still_waits(project: Path) -> None:
    busy = Busy(project)
    async with busy.session as session:
        first = await busy.start()
        second = await queued(session, "second")
        with pytest.raises(SessionBusyError):
            await session.submit("third")
        assert session.pending_prompt == "second"
        session.abort()
        await asyncio.gather(first, second)


async def test_abort_clears_the_queue_and_the_waiting_prompt_returns_unrun(project: Path) -> None:
    busy = Busy(project, "Never.")
    async with busy.session as session:
        first = await busy.start()
        second = await queued(session, "second")
        session.abort()
        await first
        result = await second
        assert len(busy.provider.requests) == 1
        assert "second" not in [message.content for message in session.messages]
        assert result.text == ""
        assert busy.heard.closings()[0] == "interrupted"


async def test_cancel_queue_leaves_the_current_run_alone(project: Path) -> None:
    busy = Busy(project, "Never.")
    async with busy.session as session:
        first = await busy.start()
        second = await queued(session, "second")
        session.cancel_queue()
        await second
        assert session.is_executing
        assert session.pending_prompt is None
        assert busy.heard.closings() == []
        session.abort()
        await first
        assert len(busy.provider.requests) == 1


async def test_a_waiting_prompt_runs_after_the_handlers_of_complete(project: Path) -> None:
    provider = ScriptedProvider("One.", "Two.")
    order: list[str] = []
    async with InteractiveSession(cwd=project, provider=provider) as session:
        session.on("complete", lambda result: order.append(f"complete {result.text}"))
        session.on("thinking", lambda on: order.append(f"thinking {on}"))
        first = asyncio.ensure_future(session.submit("first"))
        second = asyncio.ensure_future(session.submit("second"))
        await asyncio.gather(first, second)
    assert order == [
        "thinking True", "complete One.", "thinking False",
        "thinking True", "complete Two.", "thinking False",
    ]  # fmt: skip


async def test_a_cancelled_waiter_leaves_the_queue(project: Path) -> None:
    busy = Busy(project)
    async with busy.session as session:
        first = await busy.start()
        second = await queued(session, "second")
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert session.pending_prompt is None
        assert session.is_executing
        session.abort()
        await first


async def test_streaming_text_and_active_tools_tell_the_running_turn(project: Path) -> None:
    busy = Busy(project)
    async with busy.session as session:
        first = await busy.start()
        assert session.streaming_text == "Begun."
        assert list(session.active_tools) == []
        session.abort()
        await first
