"""What a session tells, writes down and knows again of the work beside its conversation."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio, fired, heard
from tests.sessions.test_replay_anything import Chance, do_something, make_session
from tests.support.forms import some_of

from robota.core.background import GroupSnapshot, TaskFailure, TaskSnapshot
from robota.core.events import (
    BackgroundGroupChanged,
    BackgroundTaskChanged,
    RunCompleted,
    RunStarted,
    SubagentEvent,
    TextDelta,
    ToolEnded,
    ToolStarted,
    TurnEvent,
)
from robota.core.tool import ToolContext
from robota.sessions.background import EVENTS_KEPT
from robota.sessions.follow import EventReader
from robota.sessions.journal.file.reader import read_journal
from robota.sessions.journal.records import Record
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.session import Session
from robota.sessions.start import restore
from robota.sessions.store.session_record import SessionRecord
from robota.sessions.store.session_store import SessionStore
from robota.testing import call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

RUNNING = TaskSnapshot(task_id="t-1", kind="process", state="running", label="npm test", command="npm test")
FAILED = TaskSnapshot(
    task_id="t-1",
    kind="process",
    state="failed",
    label="npm test",
    error=TaskFailure(category="process", message="Exit code 1."),
)
GROUP = GroupSnapshot(group_id="g-1", task_ids=("t-1",), label="checks")


def tell(session: Session, change: Any, task: TaskSnapshot) -> None:
    session.background.take_task(change, task, "2026-01-02T03:04:05Z")
    told = partial(session.log.tell, BackgroundTaskChanged, change=change, task=task)
    session.log.when_open(told)


async def test_what_happens_to_a_task_is_numbered_journaled_and_known_again(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    tell(studio.session, "created", RUNNING)  # before anything is on record
    assert studio.told(BackgroundTaskChanged) == []
    await studio.session.run("hi")
    tell(studio.session, "failed", FAILED)
    studio.session.log.tell(BackgroundGroupChanged, change="created", group=GROUP)
    await studio.session.run("more")
    await studio.session.shutdown()

    start = studio.restored()
    assert (start.background.tasks, start.background.groups) == ({"t-1": FAILED}, {"g-1": GROUP})
    kinds = (BackgroundTaskChanged, BackgroundGroupChanged)
    lived = [event for event in studio.events if isinstance(event, kinds)]
    again = [event for event in written_events(studio) if isinstance(event, kinds)]
    assert again == lived
    assert [event.change for event in again] == ["created", "failed", "created"]


def written_events(studio: Studio) -> list[TurnEvent]:
    reader = EventReader()
    items = read_journal(str(studio.path), session_id="s-1")
    return [event for item in items if isinstance(item, Record) for event in reader.take(item)]


async def test_a_session_with_work_beside_it_is_replayed_as_it_was(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "from the child", "two")
    await studio.session.run("hi")
    tell(studio.session, "started", RUNNING)
    async with studio.session.child("helper") as child:
        await child.run("look")
    studio.session.events.on(RunStarted, lambda _: tell(studio.session, "failed", FAILED))
    await studio.session.run("more")
    await studio.session.shutdown()

    told: list[TurnEvent] = []
    report = await replay_session(studio.path, on_event=told.append)
    assert report.divergence is None
    wanted = (BackgroundTaskChanged, SubagentEvent)
    again = [event for event in told if isinstance(event, wanted)]
    lived = [event for event in studio.events if isinstance(event, wanted)]
    assert [event for event in lived if event in again] == again
    assert [event.change for event in again if isinstance(event, BackgroundTaskChanged)] == [
        "started",
        "failed",
    ]


async def test_words_of_a_child_or_a_task_are_shown_and_not_written(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "hi", ["many ", "small ", "words"])
    await studio.session.run("first")
    child = studio.session.child("helper")
    child.events.on(TextDelta, lambda _: studio.session.log.notice("meanwhile"))  # its number is not theirs
    await child.run("go")
    told = BackgroundTaskChanged(change="text_delta", task=RUNNING, text="ok", seq=studio.session.events.seq)
    studio.session.events.emit(told)
    await studio.session.shutdown()

    shown = [each for each in studio.told(SubagentEvent) if isinstance(each.inner, TextDelta)]
    written = [each["inner"]["event"] for each in studio.records if each["event"] == "subagent"]
    assert len(shown) == 3
    assert "text_delta" not in written
    assert "background_task_event" not in studio.record_names
    assert told in studio.events
    numbers = [event.seq for event in written_events(studio)]
    assert numbers == sorted(set(numbers))


async def test_progress_that_is_only_shown_takes_no_number_of_events_in_between(tmp_path: Path) -> None:
    @tool
    async def chatty(ctx: ToolContext) -> str:
        """Talk."""
        for number in range(50):
            ctx.progress("x" * 1_000)
            await asyncio.sleep(0)
            studio.session.log.notice(f"{number}")
        return "ok"

    rules = PermissionRules(mode="bypassPermissions")
    studio = Studio(tmp_path, [call("chatty")], "done", tools=(chatty,), rules=rules)
    await studio.session.run("go")
    await studio.session.shutdown()
    numbers = [event.seq for event in written_events(studio)]
    assert numbers == list(range(1, studio.session.events.seq + 1))


async def test_the_record_has_the_tasks_and_is_rebuilt_from_the_journal(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one")
    await studio.session.run("hi")
    tell(studio.session, "started", RUNNING)
    tell(studio.session, "failed", FAILED)
    studio.session.background.take_group("created", GROUP, "")
    studio.session.log.tell(BackgroundGroupChanged, change="created", group=GROUP)
    await studio.session.shutdown()
    store = SessionStore(studio.kept)

    for rebuilt in (False, True):
        if rebuilt:
            studio.path.with_suffix(".json").unlink()
        record = store.load("s-1")
        assert record is not None
        [task] = record.background_tasks or ()
        assert (task["taskId"], task["state"], task["error"]["category"]) == ("t-1", "failed", "process")
        assert [each["type"] for each in record.background_task_events or ()] == [
            "background_task_started",
            "background_task_failed",
        ]
        assert [each["groupId"] for each in record.background_job_groups or ()] == ["g-1"]

    studio.path.unlink()  # the record alone knows them as well
    store.save(record)
    assert restore(store, "s-1").background.tasks == {"t-1": FAILED}


async def test_a_record_of_somebody_else_is_kept_and_not_taken_for_ours(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    store.save(SessionRecord(id="s-1", cwd="/x", messages=[], background_tasks=[{"id": 7}, "x"]))
    assert restore(store, "s-1").background.tasks == {}
    assert store.load("s-1").background_tasks == [{"id": 7}, "x"]  # type: ignore[union-attr]


async def test_only_the_latest_events_are_in_the_record(tmp_path: Path) -> None:
    studio = Studio(tmp_path)
    for _ in range(EVENTS_KEPT + 5):
        studio.session.background.take_task("updated", RUNNING, "")
    assert len(studio.session.background.task_events) == EVENTS_KEPT


async def test_a_closed_task_is_forgotten_and_a_fork_has_none(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one")
    await studio.session.run("hi")
    tell(studio.session, "failed", FAILED)
    await studio.session.shutdown()
    store = SessionStore(studio.kept)
    fork = Session(provider=studio.provider, store=store, start=restore(store, "s-1", fork=True))
    assert fork.background.tasks == {}
    again = Session(provider=studio.provider, store=store, start=restore(store, "s-1"))
    assert again.background.tasks == {"t-1": FAILED}
    await again.open()
    tell(again, "closed", FAILED)
    await again.shutdown()
    assert restore(store, "s-1").background.tasks == {}


async def test_hooks_about_the_end_of_a_run_hear_what_goes_on_beside_it(tmp_path: Path) -> None:
    hooks = {event: [heard(tmp_path)] for event in ("UserPromptSubmit", "Stop", "SubagentStop")}
    studio = Studio(tmp_path, "one", "child", hooks=hooks)
    later = TaskSnapshot(task_id="t-2", kind="scheduled", state="sleeping", label="tea", prompt="Make tea.")
    for task in (RUNNING, later):
        tell(studio.session, "started", task)
    await studio.session.run("hi")
    async with studio.session.child("helper") as child:
        await child.run("go")
    tasks = [
        {"id": "t-1", "type": "process", "status": "running", "description": "npm test"},
        {"id": "t-2", "type": "scheduled", "status": "sleeping", "description": "tea"},
    ]
    told = {each["hook_event_name"]: each for each in fired(tmp_path)}
    assert "background_tasks" not in told["UserPromptSubmit"]
    for event in ("Stop", "SubagentStop"):
        assert told[event]["background_tasks"] == tasks
        assert told[event]["session_crons"] == [{"id": "t-2", "prompt": "Make tea.", "wake_at": None}]


@pytest.mark.parametrize("seed", some_of(range(30)))
async def test_a_random_session_with_work_beside_it_replays(tmp_path: Path, seed: int) -> None:
    chance = Chance(seed)
    recorded = make_session(tmp_path, chance)
    session, told = recorded.session, list[BackgroundTaskChanged]()

    def act() -> None:  # in a turn of the loop of its own, as the tasks of the loop do
        if session.log.closed:
            return
        tell(session, chance.random.choice(["started", "updated", "failed"]), RUNNING)
        if chance(0.1):
            session.inbox.put("A task has ended.", origin="task")

    def work(event: TurnEvent) -> None:
        if chance(0.2):
            asyncio.get_running_loop().call_soon(act)

    for kind in (RunStarted, TextDelta, ToolStarted, ToolEnded, RunCompleted):
        session.events.on(kind, work)
    session.events.on(BackgroundTaskChanged, told.append)
    for _ in range(6):
        await do_something(recorded, chance)
    await session.shutdown()

    heard: list[TurnEvent] = []
    report = await replay_session(recorded.path, on_event=heard.append)
    assert report.divergence is None, str(report.divergence)
    assert report.messages == tuple(session.messages)
    again = [event for event in heard if isinstance(event, BackgroundTaskChanged)]
    assert [(event.change, event.task) for event in again] == [(event.change, event.task) for event in told]
