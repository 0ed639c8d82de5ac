"""What a session owns: entered and left in one task, in reverse order, whatever goes wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Self

import anyio
import pytest
from tests.sessions.live_session import Studio

from robota.core.errors import SessionBusyError
from robota.sessions import resources as module
from robota.sessions.resources import Resources

pytestmark = pytest.mark.anyio


class Thing:
    """Notes in which task it was entered and left; holds a task group, as a server's client does."""

    def __init__(self, name: str, log: list[str], *, fails: str = "") -> None:
        self.name = name
        self.log = log
        self.fails = fails
        self.tasks: list[Any] = []

    async def __aenter__(self) -> Self:
        self.tasks.append(asyncio.current_task())
        if self.fails == "enter":
            raise OSError("no such program")
        self.group = anyio.create_task_group()
        await self.group.__aenter__()
        self.group.start_soon(anyio.sleep_forever)
        self.log.append(f"+{self.name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.tasks.append(asyncio.current_task())
        self.group.cancel_scope.cancel()
        await self.group.__aexit__(None, None, None)
        self.log.append(f"-{self.name}")
        if self.fails == "exit":
            raise OSError("it broke")
        if self.fails == "hang":
            await asyncio.Event().wait()


async def test_everything_is_left_in_reverse_order_by_the_task_that_entered_it(tmp_path: Path) -> None:
    log: list[str] = []
    things = [Thing(name, log) for name in "abc"]
    studio = Studio(tmp_path, "hi")
    for thing in things:
        own = asyncio.create_task(studio.session.own(thing))  # from many tasks, as runs are
        assert await own is thing
    await studio.session.run("hello")
    await studio.session.shutdown()
    assert log == ["+a", "+b", "+c", "-c", "-b", "-a"]
    assert len({task for thing in things for task in thing.tasks}) == 1


async def test_what_cannot_be_entered_is_the_callers_problem(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "hi")
    with pytest.raises(OSError, match="no such program"):
        await studio.session.own(Thing("a", [], fails="enter"))
    log: list[str] = []
    await studio.session.own(Thing("b", log))
    await studio.session.shutdown()
    assert log == ["+b", "-b"]


async def test_what_cannot_be_left_is_a_notice_and_keeps_nobody(tmp_path: Path) -> None:
    log: list[str] = []
    studio = Studio(tmp_path, "hi")
    await studio.session.own(Thing("a", log))
    await studio.session.own(Thing("b", log, fails="exit"))
    await studio.session.run("hello")
    await studio.session.shutdown()
    assert log == ["+a", "+b", "-b", "-a"]
    assert studio.notices == ["Thing could not be closed: OSError: it broke"]
    assert studio.record_names[-2:] == ["notice", "session_shutdown"]


async def test_what_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSING_SECONDS", 0.01)
    log: list[str] = []
    told: list[str] = []
    owned = Resources(told.append)
    await owned.own(Thing("a", log))
    await owned.own(Thing("b", log, fails="hang"))
    await owned.aclose()
    assert log == ["+a", "+b", "-b", "-a"]
    assert told == ["Thing did not close within 0.01 seconds and was left behind."]


async def test_what_nobody_waits_for_any_more_is_left_at_once() -> None:
    entering, going_on, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Slow:
        async def __aenter__(self) -> None:
            entering.set()
            await going_on.wait()

        async def __aexit__(self, *_: object) -> None:
            left.set()

    owned = Resources(lambda _: None)
    wish = asyncio.create_task(owned.own(Slow()))
    await entering.wait()
    wish.cancel()
    await asyncio.wait([wish])
    going_on.set()
    await left.wait()
    await owned.aclose()


async def test_a_session_that_has_ended_takes_nothing_more(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "hi")
    await studio.session.shutdown()
    with pytest.raises(SessionBusyError):
        await studio.session.own(Thing("a", []))
