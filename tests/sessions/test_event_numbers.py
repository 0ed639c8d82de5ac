"""Events have the same numbers live and in the journal, across resumes and crashes, whoever asks and when."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.sessions.live_session import Studio

from robota.core.events import (
    ModelChanged,
    Noticed,
    RunCompleted,
    RunStarted,
    TextDelta,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEvent,
)
from robota.core.messages import HistoryEntry
from robota.core.provider import ChatRequest, ReasoningChunk, ToolInputChunk
from robota.core.tool import ToolContext
from robota.core.tool_call import NOT_STARTED
from robota.core.tool_round import PROGRESS_KEPT
from robota.sessions.follow import EventReader, Follower
from robota.sessions.journal.file.reader import read_journal
from robota.sessions.journal.records import Record
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.testing import Delay, Fail, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

FREE = PermissionRules(mode="bypassPermissions")
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


def plain(event: TurnEvent) -> TurnEvent:
    """As a journal gives it back: without the provider's own bytes."""
    return msgspec.structs.replace(event, raw=None) if isinstance(event, TextDelta) else event


def numbered(events: list[Any]) -> list[TurnEvent]:
    """Without the events that repeat the number before them."""
    found: list[TurnEvent] = []
    for event in events:
        if isinstance(event, TurnEvent) and (not found or event.seq > found[-1].seq):
            found.append(plain(event))
    return found


def read_back(path: Path) -> list[TurnEvent]:
    reader, found, last = EventReader(), list[TurnEvent](), 0
    for item in read_journal(str(path)):
        assert isinstance(item, Record)
        assert item.ev >= last
        last = item.ev
        found += reader.take(item)
    return found


@tool
async def work(times: int, ctx: ToolContext) -> str:
    """Work for some turns of the loop, and say so."""
    for turn in range(times):
        await asyncio.sleep(0)
        ctx.progress(f"turn {turn}\n")
    if times == 4:
        raise ValueError("four")
    return "done " * times


class RandomSession:
    """A session that is used, stopped, resumed and killed at random; `told` is everything that it told."""

    def __init__(self, home: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.told: list[TurnEvent] = []
        self.studio = self.begin(home)

    def begin(self, home: Path, **more: Any) -> Studio:
        studio = Studio(
            home,
            provider=ScriptedProvider(self.reply, repeat=True),
            tools=[work],
            rules=FREE,
            context_window=self.rng.choice([3_000, 100_000]),
            max_parallel_tools=self.rng.choice([None, 1, 2]),
            **more,
        )
        studio.session.events.subscribe(self.told.append)
        return studio

    def reply(self, request: ChatRequest) -> list[Any]:
        rng = self.rng
        pieces: list[Any] = [
            rng.choice(["word ", Delay(0), "x" * rng.randint(1, 300), ReasoningChunk("hm"), SECRET])
            for _ in range(rng.randint(0, 6))
        ]
        if rng.random() < 0.5 and request.tools:
            for number in range(rng.randint(1, 3)):
                times = rng.randint(0, 4)
                pieces.append(ToolInputChunk(number, f'{{"times":{times}}}', f"c{number}", "work"))
                pieces.append(call(rng.choice(["work", "work", "none"]), f"c{number}", times=times))
        if rng.random() < 0.1:
            pieces.append(Fail(ConnectionError("cut")))
        return pieces

    async def prompt(self) -> None:
        session, rng = self.studio.session, self.rng
        running = asyncio.ensure_future(session.submit(f"go {rng.random()}"))
        for _ in range(rng.choice([0, 3, 10, 30, 1_000])):
            if running.done():
                break
            await asyncio.sleep(0)
            if rng.random() < 0.02:
                session.model = rng.choice(["one", "two"])
        session.abort()
        await running

    async def resume(self) -> None:
        await self.studio.session.shutdown()
        self.studio = self.begin(self.studio.home, conversation=self.studio.restored().conversation)


@pytest.mark.parametrize("seed", range(100))
async def test_what_was_told_is_read_back_under_the_same_numbers(tmp_path: Path, seed: int) -> None:
    life = RandomSession(tmp_path, seed)
    for _ in range(4):
        await life.prompt()
        if life.rng.random() < 0.3:
            await life.resume()
    await life.studio.session.shutdown()

    told, found = numbered(life.told), read_back(life.studio.path)

    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    assert [event.seq for event in told] == [event.seq for event in found]
    assert [type(event) for event in told] == [type(event) for event in found]
    secret = {event.execution_id for event in told if SECRET in str(event)}
    for ours, theirs in zip(told, found, strict=True):
        assert ours == theirs or ours.execution_id in secret
    assert SECRET not in str(found)


async def collect(events: AsyncGenerator[TurnEvent, None], found: list[TurnEvent]) -> None:
    async for event in events:
        found.append(event)
        if isinstance(event, Noticed) and event.message == "the end":
            return


@pytest.mark.parametrize("seed", range(100))
async def test_whoever_joins_at_any_moment_gets_each_number_once(tmp_path: Path, seed: int) -> None:
    life = RandomSession(tmp_path, seed)
    rng = random.Random(seed)
    joined: list[tuple[int, list[TurnEvent]]] = []

    async with asyncio.TaskGroup() as tasks:

        def join(_: object) -> None:
            if rng.random() < 0.05 and len(joined) < 8:
                now = life.studio.session.events.seq
                after, found = rng.choice([0, 1, now, now // 2]), list[TurnEvent]()
                joined.append((after, found))
                tasks.create_task(collect(life.studio.session.follow(after), found))

        leave = life.studio.session.events.subscribe(join)
        for _ in range(4):
            await life.prompt()
        leave()
        life.studio.session.log.notice("the end")
    await life.studio.session.shutdown()

    last = numbered(life.told)[-1].seq
    for after, found in joined:
        assert [event.seq for event in numbered(found)] == list(range(after + 1, last + 1))


async def test_numbers_go_on_after_a_resume(tmp_path: Path) -> None:
    first = Studio(tmp_path, "one")
    await first.session.run("first")
    await first.session.shutdown()
    last = first.session.events.seq

    second = first.resume("two")
    await second.session.run("second")

    assert second.told(RunStarted)[0].seq == last + 1


async def test_a_number_that_the_disk_lost_never_comes_back(tmp_path: Path) -> None:
    first = Studio(tmp_path, "one", "two")
    await first.session.run("first")
    await first.session.run("second")
    lines = first.path.read_bytes().splitlines(keepends=True)
    await first.session.shutdown()
    first.path.write_bytes(b"".join(lines[:-3]))  # as a kill leaves it

    second = first.resume("three")
    await second.session.run("third")
    await second.session.shutdown()
    third = second.resume("four")
    await third.session.run("fourth")

    assert second.told(RunStarted)[0].seq == 1_000_001
    assert third.told(RunStarted)[0].seq == second.session.events.seq + 1
    numbers = [event.seq for event in read_back(first.path)]
    assert numbers == sorted(set(numbers))


async def test_a_follower_goes_on_where_it_was_after_a_crash(tmp_path: Path) -> None:
    first = Studio(tmp_path, "one", ["t", "w", "o", Stall()])
    await first.session.run("first")
    seen = [event async for event in until_done(first.session.follow(), RunCompleted)]
    cursor = seen[-1].seq
    first.path.with_suffix(".lock").unlink()
    copy = first.path.read_bytes()
    await first.session.shutdown()
    first.path.write_bytes(copy)

    second = first.resume("two")
    running = asyncio.ensure_future(second.session.run("second"))
    later = [event async for event in until_done(second.session.follow(cursor), RunCompleted)]
    await running

    assert [event.seq for event in numbered(seen)] == list(range(1, cursor + 1))
    assert later[0].seq > cursor
    assert [event.seq for event in later] == sorted({event.seq for event in later})
    assert "".join(event.text for event in later if isinstance(event, TextDelta)) == "two"


async def until_done(
    events: AsyncGenerator[TurnEvent, None], kind: type[TurnEvent]
) -> AsyncGenerator[TurnEvent, None]:
    async for event in events:
        yield event
        if isinstance(event, kind):
            return


async def test_a_slow_reader_gets_what_it_missed_from_the_journal(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [*(f"{number} " for number in range(5_000))])
    events = studio.session.follow()
    reader = asyncio.ensure_future(anext(events))
    await studio.session.run("go")
    found = [await reader]
    async for event in events:
        found.append(event)
        if isinstance(event, RunCompleted):
            break

    assert [event.seq for event in numbered(found)] == list(range(1, studio.session.events.seq + 1))
    assert "".join(event.text for event in found if isinstance(event, TextDelta)).split()[-1] == "4999"


async def test_who_joins_before_the_first_prompt_and_reads_later_gets_each_number_once(
    tmp_path: Path,
) -> None:
    studio = Studio(tmp_path, "one", "two")
    follower = Follower(studio.session.log, studio.session.events)
    await studio.session.run("first")
    found = await follower.read()
    await studio.session.run("second")
    while not follower.caught_up:
        found += await follower.read()
    follower.close()

    assert [event.seq for event in found] == list(range(1, studio.session.events.seq + 1))


async def test_progress_is_numbered_up_to_a_limit_and_only_shown_behind_it(tmp_path: Path) -> None:
    @tool
    async def chatter(ctx: ToolContext) -> str:
        """Say a lot."""
        for _ in range(100):
            ctx.progress("x" * 1_000)
        return "done"

    studio = Studio(tmp_path, [call("chatter")], "fine", tools=[chatter], rules=FREE)
    await studio.session.run("go")

    shown = studio.told(ToolProgressed)
    kept = [event for event in read_back(studio.path) if isinstance(event, ToolProgressed)]
    assert len(shown) == 100
    assert len(kept) == PROGRESS_KEPT // 1_000
    assert kept == shown[: len(kept)]
    assert {event.seq for event in shown[len(kept) :]} == {kept[-1].seq}


async def test_a_remark_about_calls_that_were_never_begun_takes_no_number(tmp_path: Path) -> None:
    @tool
    async def stop(at: int) -> str:
        """Abort the run."""
        studio.session.abort()
        await asyncio.Event().wait()
        return ""

    calls = [call("stop", f"c{at}", at=at) for at in range(14)]
    studio = Studio(tmp_path, calls, tools=[stop], rules=FREE)

    def remark(event: ToolStarted) -> None:
        entry = HistoryEntry(category="event", type="tool-start", data={"id": event.call_id})
        studio.session.add_history_entry(entry)

    studio.session.events.on(ToolStarted, remark)
    assert (await studio.session.submit("go")).interrupted
    await studio.session.shutdown()

    assert any(event.error_code == NOT_STARTED for event in studio.told(ToolEnded))
    assert read_back(studio.path) == numbered(studio.events)
    assert (await replay_session(studio.path)).divergence is None


async def test_a_change_of_the_model_and_the_closing_state_of_the_context_are_in_the_journal(
    tmp_path: Path,
) -> None:
    studio = Studio(tmp_path, "one", "two")
    await studio.session.run("first")
    studio.session.set_model("another")
    await studio.session.run("second")

    names = [event.name for event in read_back(studio.path)]
    assert names.count("model_change") == 1
    assert names.count("context_update") == 5
    assert numbered(studio.events) == read_back(studio.path)
    assert [event.model for event in studio.told(ModelChanged)] == ["another"]


async def test_following_ends_nothing_when_it_is_left(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    await studio.session.run("first")
    async for event in studio.session.follow():
        assert event.seq == 1
        break

    assert await studio.session.run("second") == "two"


@pytest.mark.parametrize("seed", range(30))
async def test_after_a_kill_no_number_comes_twice_whatever_was_lost(tmp_path: Path, seed: int) -> None:
    life = RandomSession(tmp_path, seed)
    for _ in range(3):
        await life.prompt()
    whole = life.studio.path.read_bytes()
    told = numbered(life.told)
    await life.studio.session.shutdown()
    life.studio.path.write_bytes(
        whole[: life.rng.randrange(whole.index(b"\n"), len(whole))]
    )  # as a kill does
    cursor = life.rng.choice([0, told[-1].seq, life.rng.choice(told).seq])

    life.told.clear()
    life.studio = life.begin(tmp_path, conversation=life.studio.restored().conversation)
    await life.prompt()
    found: list[TurnEvent] = []
    life.studio.session.log.notice("the end")
    await collect(life.studio.session.follow(cursor), found)

    again = [event.seq for event in numbered(life.told)]
    numbers = [event.seq for event in found]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > cursor
    assert numbers[-len(again) :] == again
    assert not {event.seq for event in told} & set(again)
