"""A run that the end of a process cut, and that another process takes to its end."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.cut_process import make_tools
from tests.sessions.live_session import Studio
from tests.support.forms import some_of
from tests.support.history import assert_valid_for_a_request
from tests.support.session_options import resume_session, session_options

from robota.core.errors import ConfigurationError
from robota.core.events import RunCompleted, RunStarted, ToolEnded, ToolStarted, TurnEvent
from robota.core.messages import ToolMessage, UserMessage
from robota.core.questions import Question
from robota.core.tool import Tool
from robota.sessions.journal.port import JournalProblem
from robota.sessions.log import SPARE_NUMBERS
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.session import Session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call
from robota.tools.builtins.ask_user import ask_user_tool
from robota.tools.function_tool import FunctionTool

pytestmark = pytest.mark.anyio

FREE = PermissionRules(mode="bypassPermissions")
EMPTY: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}


class World:
    """Counts what tools do to it."""

    def __init__(self) -> None:
        self.looks: Counter[int] = Counter()
        self.changes: Counter[int] = Counter()

    @property
    def tools(self) -> tuple[Tool, ...]:
        async def look(n: int) -> str:
            self.looks[n] += 1
            return f"saw {n}"

        async def change(n: int) -> str:
            self.changes[n] += 1
            return f"changed {n}"

        return (
            FunctionTool("Look", "", EMPTY, look, tool_class="inspect"),
            FunctionTool("Change", "", EMPTY, change, tool_class="modify"),
        )


def looked(n: int) -> Any:
    return call("Look", f"look-{n}", n=n)


def changed(n: int) -> Any:
    return call("Change", f"change-{n}", n=n)


def cut_at(studio: Studio, count: int) -> SessionStore:
    """The store as it would be if the process had ended after so many records."""
    lines = studio.path.read_bytes().splitlines(keepends=True)
    studio.path.write_bytes(b"".join(lines[:count]))
    studio.path.with_suffix(".json").unlink(missing_ok=True)
    return SessionStore(studio.kept)


def place_of(studio: Studio, event: str, which: int = 0) -> int:
    return [at for at, name in enumerate(studio.record_names) if name == event][which]


def go_on(store: SessionStore, world: World, *replies: Any, **more: Any) -> Session:
    options = session_options(rules=FREE, context_window=100_000)
    return resume_session(
        store, "s-1", provider=ScriptedProvider(*replies), tools=world.tools, options=options, **more
    )


def results(session: Session) -> dict[str, str]:
    return {each.tool_call_id: each.content for each in session.messages if isinstance(each, ToolMessage)}


async def record(tmp_path: Path, world: World, *replies: Any, **options: Any) -> Studio:
    studio = Studio(tmp_path, *replies, tools=world.tools, rules=FREE, **options)
    await studio.session.submit("work", id="p-1")
    await studio.session.shutdown()
    return studio


async def test_recorded_results_stay_looks_are_repeated_and_changes_are_not(tmp_path: Path) -> None:
    world = World()
    studio = await record(tmp_path, world, [changed(1), looked(2), changed(3)], "done")
    ended = [at for at, each in enumerate(studio.records) if each["event"] == "tool_result"]
    first = studio.records[ended[0]].get("index", 0)
    store = cut_at(studio, ended[0] + 1)  # one of them had ended

    session = go_on(store, world, "finished")
    result = await session.continue_run()

    assert (result.text, result.rounds, result.interrupted) == ("finished", 2, False)
    told = results(session)
    for index, (name, text) in enumerate(
        [("change-1", "changed 1"), ("look-2", "saw 2"), ("change-3", "changed 3")]
    ):
        if index == first or name == "look-2":
            assert told[name] == text
        else:
            assert told[name].startswith("Error: interrupted; effects unknown.")
    assert world.changes == {1: 1, 3: 1}
    assert world.looks[2] == (1 if first == 1 else 2)
    assert_valid_for_a_request(session.messages)
    await session.shutdown()
    report = await replay_session(studio.path)
    assert report.divergence is None, str(report.divergence)


async def test_an_answer_that_was_cut_is_kept_and_gone_on_with(tmp_path: Path) -> None:
    world = World()
    studio = await record(tmp_path, world, [looked(1)], "A long answer of many words.")
    names = studio.record_names
    answer = [at for at, each in enumerate(studio.records) if each["event"] == "message"][-1]
    assert names[answer] == "message"
    store = cut_at(studio, place_of(studio, "provider_request", 1) + 1)
    session = go_on(store, world, "The rest.")
    result = await session.continue_run()
    assert (result.text, result.execution_id) == ("The rest.", studio.told(RunStarted)[0].execution_id)
    assert world.looks == {1: 1}
    await session.shutdown()


async def test_a_prompt_that_was_only_accepted_is_asked_now(tmp_path: Path) -> None:
    world = World()
    studio = await record(tmp_path, world, "never read")
    store = cut_at(studio, place_of(studio, "run_start") + 1)
    session = go_on(store, world, "read")
    assert (await session.continue_run()).text == "read"
    assert [each.content for each in session.messages if isinstance(each, UserMessage)] == ["work"]
    await session.shutdown()


async def test_the_same_prompt_submitted_again_goes_on_with_its_run(tmp_path: Path) -> None:
    world = World()
    studio = await record(tmp_path, world, [changed(1)], "done")
    store = cut_at(studio, place_of(studio, "tool_message") + 1)
    session = go_on(store, world, "done after all")
    result = await session.submit("work", id="p-1")
    assert (result.text, world.changes) == ("done after all", {1: 1})
    assert await session.submit("work", id="p-1") is result
    await session.shutdown()
    again = go_on(SessionStore(studio.kept), world)
    assert (await again.submit("work", id="p-1")).text == "done after all"
    await again.shutdown()


async def test_a_run_that_only_lacked_its_end_gets_it(tmp_path: Path) -> None:
    world = World()
    studio = await record(tmp_path, world, "done")
    store = cut_at(studio, place_of(studio, "run_end"))
    session = go_on(store, world)
    events: list[TurnEvent] = []
    session.events.on(TurnEvent, events.append)
    assert (await session.continue_run()).text == "done"
    assert [type(event) for event in events if isinstance(event, RunStarted | RunCompleted)] == [RunCompleted]
    await session.shutdown()


async def test_an_answer_that_came_before_the_crash_is_not_asked_for_again(tmp_path: Path) -> None:
    asked: list[str] = []

    async def person(question: Question) -> object:
        asked.append(question.id)
        return "blue"

    question = call("AskUserQuestion", questions=[{"question": "Which colour?"}, {"question": "Which size?"}])
    studio = Studio(tmp_path, [question], "done", tools=[ask_user_tool()], ask=person)
    await studio.session.submit("work")
    await studio.session.shutdown()
    assert len(asked) == 2
    store = cut_at(studio, place_of(studio, "question_closed") + 1)

    options = session_options(rules=FREE, ask=person)
    session = resume_session(
        store, "s-1", provider=ScriptedProvider("done"), tools=[ask_user_tool()], options=options
    )
    await session.continue_run()
    assert asked == [asked[0], asked[1], asked[1]]
    assert '"Which colour?":"blue","Which size?":"blue"' in next(iter(results(session).values()))
    await session.shutdown()


async def test_without_a_run_that_was_cut_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    world = World()
    studio = await record(tmp_path, world, "done")
    session = go_on(SessionStore(studio.kept), world, "again")
    with pytest.raises(ConfigurationError, match="has no run to continue"):
        await session.continue_run()
    await session.shutdown()


async def test_whoever_prompts_instead_gives_the_run_up(tmp_path: Path) -> None:
    world = World()
    studio = await record(tmp_path, world, [changed(1)], "done")
    store = cut_at(studio, place_of(studio, "tool_start") + 1)
    session = go_on(store, world, "new")
    assert await session.run("something else") == "new"
    assert results(session)["change-1"].startswith("Error: interrupted; effects unknown.")
    with pytest.raises(ConfigurationError):
        await session.continue_run()
    await session.shutdown()
    restored = Studio(tmp_path, tools=world.tools).restored()
    assert restored.cut is None


def make_replies(chance: random.Random) -> list[Any]:
    replies: list[Any] = []
    for at in range(chance.randint(1, 3)):
        kinds = [chance.choice([looked, changed]) for _ in range(chance.randint(1, 4))]
        replies.append([kind(at * 10 + place) for place, kind in enumerate(kinds)])
    return [*replies, "The end."]


async def read_events(session: Session) -> AsyncIterator[TurnEvent]:
    async for event in session.follow():
        yield event
        if event.seq == session.events.seq:
            return


@pytest.mark.parametrize("seed", some_of(range(40)))
async def test_a_run_may_be_cut_anywhere_and_ends_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    replies = make_replies(chance)
    world = World()
    studio = await record(tmp_path, world, *replies)
    whole = studio.path.read_bytes()
    begins, ends = place_of(studio, "run_start"), place_of(studio, "run_end")
    for cut in sorted(chance.sample(range(begins + 1, ends + 1), min(5, ends - begins))):
        studio.path.write_bytes(whole)
        store = cut_at(studio, cut)
        before = Counter(world.changes)
        start = Studio(tmp_path, tools=world.tools).restored()
        assert start.run is not None
        left = replies[start.run.rounds :] if not start.messages or start.run.rounds else replies
        session = go_on(store, world, *left, "The end.")
        result = await session.continue_run()

        assert result.success
        assert world.changes - before <= Counter(dict.fromkeys(world.changes, 1))
        assert_valid_for_a_request(session.messages)
        events = [event async for event in read_events(session)]
        await session.shutdown()
        assert [event.seq for event in events] == sorted({event.seq for event in events})
        kinds = Counter(type(event) for event in events)
        assert (kinds[RunStarted], kinds[RunCompleted]) == (1, 1)
        started = Counter(event.call_id for event in events if isinstance(event, ToolStarted))
        ended = Counter(event.call_id for event in events if isinstance(event, ToolEnded))
        assert started == ended
        assert set(ended.values()) <= {1}
        final = Studio(tmp_path, tools=world.tools).restored()
        assert (final.cut, final.messages) == (None, session.messages)
        assert final.results["p-1"].text == result.text
        journal = store.open_journal("s-1")
        assert journal is not None
        assert not [item for item in journal.read() if isinstance(item, JournalProblem)]
        report = await replay_session(studio.path)
        assert report.divergence is None, f"{cut}: {report.divergence}"


async def test_a_run_of_a_killed_process_goes_on_in_this_one(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.sessions.cut_process", str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"looking\n"
    process.kill()
    await process.wait()

    store = SessionStore(tmp_path / "sessions")
    session = resume_session(
        store,
        "s-1",
        provider=ScriptedProvider("done"),
        tools=make_tools(tmp_path, hang=False),
        options=session_options(rules=FREE),
    )
    seen: list[TurnEvent] = []

    async def watch() -> None:
        async for event in session.follow():
            seen.append(event)
            if isinstance(event, RunCompleted):
                return

    watching = asyncio.create_task(watch())
    result = await session.submit("work", id="p-1")
    await watching
    await session.shutdown()

    assert (result.text, (tmp_path / "changes").read_text()) == ("done", "changed\n")
    assert [each.content for each in session.messages if each.role == "user"] == ["work", "And hurry."]
    assert [each.content for each in session.messages if each.role == "tool"] == ["changed", "seen"]
    numbers = [event.seq for event in seen]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] > SPARE_NUMBERS  # behind the end that was not orderly
    assert sum(isinstance(event, RunStarted) for event in seen) == 1
    report = await replay_session(tmp_path / "sessions" / "s-1.jsonl")
    assert report.divergence is None, str(report.divergence)
