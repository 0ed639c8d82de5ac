"""The life of tasks: their turn, their end, what is told of them, what is kept of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.sdk.background.office import Office
from tests.sessions.live_session import all_bytes

from robota.core.background import TaskSnapshot
from robota.core.errors import ProviderError
from robota.core.events import BackgroundTaskChanged
from robota.sdk.background.live_task import StoppedElsewhere, Work
from robota.sdk.background.request import LABEL_KEPT, TaskRequest
from robota.sdk.background.states import TaskError
from robota.sdk.background.task_log import PAGE_LINES, TRUNCATED
from robota.sdk.background.tasks import PROCESS_OUTPUT, BackgroundTasks
from robota.sessions.redaction import Redactor
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore

pytestmark = pytest.mark.anyio


def ask(prompt: str, **more: object) -> TaskRequest:
    return TaskRequest(prompt=prompt, **more)  # type: ignore[arg-type]


async def test_a_task_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    office = Office(tmp_path, "hello")
    task = await office.tasks.spawn(ask("look", label="Looking"))
    assert (task.state, task.label, task.depth) == ("queued", "Looking", 1)
    await office.until(task.task_id, "running")
    office.end("look", "found")
    ended = await office.tasks.wait(task.task_id)
    assert (ended.state, ended.result, ended.error) == ("completed", "found", None)
    assert None not in (ended.created_at, ended.started_at, ended.ended_at)
    assert office.changes == ["created", "started", "completed"]
    assert office.tasks.list() == (ended,)

    await office.session.run("hi")
    [heard] = office.told_the_model
    assert heard == f"The background agent {task.task_id} (Looking) has completed. It reports:\nfound"


async def test_at_most_four_work_at_a_time_and_the_others_wait_for_their_turn(tmp_path: Path) -> None:
    office = Office(tmp_path)
    tasks = [await office.tasks.spawn(ask(str(number))) for number in range(6)]
    await office.until(tasks[3].task_id, "running")
    assert office.begun == ["0", "1", "2", "3"]
    assert [office.tasks.get(task.task_id).state for task in tasks[4:]] == ["queued", "queued"]
    office.end("2")
    await office.until(tasks[4].task_id, "running")
    await office.tasks.cancel(tasks[5].task_id)
    assert office.begun == ["0", "1", "2", "3", "4"]
    assert office.tasks.get(tasks[5].task_id).state == "cancelled"
    await office.session.shutdown()


async def test_one_that_sleeps_takes_nobodys_place(tmp_path: Path) -> None:
    office = Office(tmp_path, given={"max_concurrent": 1})
    awake = asyncio.Event()

    async def wait(seconds: float) -> None:
        assert seconds == 60
        await awake.wait()

    office.session.options = replace(
        office.session.options, ports=replace(office.session.options.ports, sleep=wait)
    )

    async def nap(work: Work) -> str:
        await work.sleep(60)
        return "rested"

    sleeper = await office.tasks.spawn(ask("nap"), nap)
    await office.until(sleeper.task_id, "sleeping")
    assert office.tasks.get(sleeper.task_id).wake_at is not None
    other = await office.tasks.spawn(ask("work"))
    await office.until(other.task_id, "running")
    awake.set()  # it has to wait for its place now
    await asyncio.sleep(0)
    assert office.tasks.get(sleeper.task_id).state == "sleeping"
    office.end("work")
    assert (await office.tasks.wait(sleeper.task_id)).result == "rested"
    told = [e.change for e in office.told(BackgroundTaskChanged) if e.task.task_id == sleeper.task_id]
    assert told == ["created", "started", "updated", "waking", "completed"]


async def test_a_sleeping_task_can_be_cancelled_and_leaves_all_places_free(tmp_path: Path) -> None:
    office = Office(tmp_path, given={"max_concurrent": 1})

    async def nap(work: Work) -> str:
        await work.sleep(3600)
        return "rested"

    sleeper = await office.tasks.spawn(ask("nap"), nap)
    await office.until(sleeper.task_id, "sleeping")
    assert (await office.tasks.cancel(sleeper.task_id)).state == "cancelled"
    for name in ("a", "b"):
        office.end(name)
        task = await office.tasks.spawn(ask(name))
        assert (await office.tasks.wait(task.task_id)).state == "completed"


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (ProviderError("busy"), "provider"),
        (TaskError("process", "Exit code 3."), "process"),
        (RuntimeError("odd"), "runner"),
    ],
)
async def test_what_a_runner_raises_is_how_the_task_failed(
    tmp_path: Path, error: Exception, category: str
) -> None:
    office = Office(tmp_path, "hello")
    task = await office.tasks.spawn(ask("look"))
    office.fail("look", error)
    ended = await office.tasks.wait(task.task_id)
    assert ended.error is not None
    assert (ended.state, ended.error.category, ended.error.message) == ("failed", category, str(error))
    await office.session.run("hi")
    assert office.told_the_model == [f"The background agent {task.task_id} (look) has failed. {error}"]


async def test_cancelling_before_it_began_while_it_runs_and_after_its_end(tmp_path: Path) -> None:
    office = Office(tmp_path)
    first = await office.tasks.spawn(ask("a"))
    assert (await office.tasks.cancel(first.task_id)).state == "cancelled"  # it had no step yet
    second = await office.tasks.spawn(ask("b"))
    await office.until(second.task_id, "running")
    assert (await office.tasks.cancel(second.task_id)).state == "cancelled"
    office.end("c")
    third = await office.tasks.spawn(ask("c"))
    await office.tasks.wait(third.task_id)
    assert (await office.tasks.cancel(third.task_id)).state == "completed"
    assert office.begun == ["b", "c"]


async def test_only_what_has_ended_can_be_closed(tmp_path: Path) -> None:
    office = Office(tmp_path)
    task = await office.tasks.spawn(ask("look"))
    with pytest.raises(TaskError, match="is queued: cancel it first"):
        office.tasks.close(task.task_id)
    office.end("look")
    await office.tasks.wait(task.task_id)
    office.tasks.close(task.task_id)
    assert office.tasks.list() == ()
    assert office.changes[-1] == "closed"
    for act in (office.tasks.get, office.tasks.close, office.tasks.read_log):
        with pytest.raises(TaskError, match="There is no background task"):
            act(task.task_id)


async def test_what_cannot_be_begun_is_refused_with_a_reason(tmp_path: Path) -> None:
    office = Office(tmp_path)
    cases = [
        (ask("  "), "validation", "needs a prompt"),
        (TaskRequest(kind="process"), "validation", "needs a command"),
        (TaskRequest(kind="process", command="ls"), "validation", "Bash with run_in_background"),
        (TaskRequest(kind="scheduled", prompt="x", delay=float("nan")), "validation", "A delay is"),
        (TaskRequest(kind="scheduled", prompt="x", delay=-1), "validation", "A delay is"),
        (TaskRequest(kind="scheduled", prompt="x"), "validation", "of the kind scheduled"),
    ]
    for request, category, words in cases:
        with pytest.raises(TaskError, match=words) as refused:
            await office.tasks.spawn(request)
        assert refused.value.failure.category == category
    assert office.tasks.list() == ()


async def test_a_task_begins_no_others_and_a_crowd_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(tmp_path)
    task = await office.tasks.spawn(ask("look"))
    with pytest.raises(TaskError, match="do this one here") as deep:
        await office.tasks.spawn(ask("more", parent_task_id=task.task_id))
    assert deep.value.failure.category == "capacity"
    await office.until(task.task_id, "running")
    monkeypatch.setattr("robota.sdk.background.tasks.MAX_QUEUED", 1)
    for name in "abcd":
        with_room = await office.tasks.spawn(ask(name))
        if name != "d":
            await office.until(with_room.task_id, "running")
    with pytest.raises(TaskError, match="wait already") as crowd:
        await office.tasks.spawn(ask("e"))
    assert crowd.value.failure.category == "capacity"
    await office.session.shutdown()


async def test_somebody_who_waits_for_it_needs_no_message(tmp_path: Path) -> None:
    office = Office(tmp_path, "hello")
    office.end("look", "found")
    task = await office.tasks.spawn(ask("look", mode="foreground"))
    assert (await office.tasks.wait(task.task_id)).result == "found"

    async def stopped(work: Work) -> str:
        raise StoppedElsewhere

    other = await office.tasks.spawn(ask("x"), stopped)
    assert (await office.tasks.wait(other.task_id)).state == "cancelled"
    await office.session.run("hi")
    assert office.told_the_model == []


async def test_the_log_comes_in_pages_without_secrets_and_to_a_limit(tmp_path: Path) -> None:
    office = Office(tmp_path)
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA7bq\n" * 3 + "-----END RSA PRIVATE KEY-----\n"
    )

    async def print_much(work: Work) -> str:
        work.say("first ")
        work.say("line\n")
        work.say("API_KEY=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789\n")
        for line in key.splitlines(keepends=True):
            work.say(line)
        for number in range(300):
            work.say(f"{number}\n")
        work.say("the rest")
        await office.ending("go on")
        work.say("!\n" + "x" * PROCESS_OUTPUT)
        return ""

    task = await office.tasks.spawn(TaskRequest(kind="process", command="print"), print_much)
    await office.until(task.task_id, "running")
    first = office.tasks.read_log(task.task_id)
    assert (first.lines[0], len(first.lines), first.next_offset, first.more) == (
        "first line",
        PAGE_LINES,
        PAGE_LINES,
        True,
    )
    rest = office.tasks.read_log(task.task_id, first.next_offset)
    assert (rest.lines[-2:], rest.more) == (("299", "the rest"), False)
    office.end("go on")
    await office.tasks.wait(task.task_id)
    file = tmp_path / "sessions" / "s-1" / "tasks" / f"{task.task_id}.log"
    text = file.read_text()
    assert "sk-ant" not in text
    assert "MIIEow" not in text
    assert text.endswith(f"\n{TRUNCATED}\n")
    assert len(text) <= PROCESS_OUTPUT + len(TRUNCATED) + 2
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert office.tasks.read_log(task.task_id, 10_000).lines == ()


async def test_a_session_that_is_not_kept_has_logs_in_memory(tmp_path: Path) -> None:
    office = Office(tmp_path, keep=False)

    async def talk(work: Work) -> str:
        work.say("one\ntwo")
        return ""

    task = await office.tasks.spawn(ask("talk"), talk)
    await office.tasks.wait(task.task_id)
    assert office.tasks.read_log(task.task_id).lines == ("one", "two")


async def test_a_log_that_cannot_be_written_is_told_and_kept_in_memory(tmp_path: Path) -> None:
    office = Office(tmp_path)
    await office.session.open()
    (tmp_path / "sessions" / "s-1").write_text("in the way")

    async def talk(work: Work) -> str:
        work.say("one\ntwo\n")
        return ""

    task = await office.tasks.spawn(ask("talk"), talk)
    await office.tasks.wait(task.task_id)
    assert office.tasks.read_log(task.task_id).lines == ("one", "two")
    [notice] = office.notices
    assert "cannot be written" in notice


async def test_a_long_label_and_prompt_are_cut_in_the_record(tmp_path: Path) -> None:
    task = ask("p" * 5_000 + "\nmore").to_snapshot("t")
    assert (len(task.label), len(task.prompt)) == (LABEL_KEPT, 2_000)


async def test_tasks_end_with_their_session_and_the_next_one_knows(tmp_path: Path) -> None:
    office = Office(tmp_path, "hello")
    await office.session.own(office.tasks)
    done = await office.tasks.spawn(ask("done"))
    office.end("done", "all of it")
    await office.tasks.wait(done.task_id)
    running = await office.tasks.spawn(ask("endless"))
    await office.until(running.task_id, "running")
    await office.session.shutdown()
    assert office.tasks.get(running.task_id).state == "cancelled"
    with pytest.raises(TaskError, match="is ending"):
        office.tasks.adopt(ask("late"), office.work)

    store = SessionStore(tmp_path / "sessions")
    start = restore(store, "s-1")
    assert [task.state for task in start.background.tasks.values()] == ["completed", "cancelled"]
    again = type(office.session)(provider=office.provider, store=store, start=start)
    tasks = BackgroundTasks(again)
    assert tasks.list() == tuple(start.background.tasks.values())
    await again.run("hi")
    told = [m.content for m in again.messages if m.metadata.get("origin") == "task"]
    assert [words.partition(" (")[0] for words in told] == [
        f"The background agent {done.task_id}",
        f"The background agent {running.task_id}",
    ]
    await again.shutdown()


async def test_one_whose_process_is_gone_is_told_once_and_the_model_hears_of_it(tmp_path: Path) -> None:
    left = TaskSnapshot(task_id="task-1", kind="agent", agent_id="task-1", state="running", label="Looking")
    office = Office(tmp_path, "one", "two")
    office.session.background.take_task("started", left, "")
    office.tasks = BackgroundTasks(office.session)
    assert office.tasks.get("task-1").state == "failed"
    assert office.changes == []  # nothing may be told before the journal is open
    await office.session.run("hi")
    assert office.changes == ["failed"]
    [heard] = office.told_the_model
    assert heard.startswith("The background agent task-1 (Looking) has failed. The process that worked on it")
    await office.session.shutdown()
    store = SessionStore(tmp_path / "sessions")
    again = type(office.session)(provider=office.provider, store=store, start=restore(store, "s-1"))
    BackgroundTasks(again)
    await again.run("more")
    assert len([m for m in again.messages if m.metadata.get("origin") == "task"]) == 1
    await again.shutdown()


async def test_lines_of_the_log_are_redacted_as_the_text_that_they_make(tmp_path: Path) -> None:
    office = Office(tmp_path)
    printed = (
        "user  | password\n------+---------\njane  | wren7-kite\njoe   | fox82-moss\n"
        "Password:\n  dune4-fern\n"
        "passwords:\n  - elk93-pine\n  - owl17-reed\n"
        "POST https://jane:ivy55-lark@ci.acme.io/\ndone\n"
    )

    async def print_lines(work: Work) -> str:
        for line in printed.splitlines(keepends=True):
            work.say(line)
        work.say("password\n")
        return ""

    task = await office.tasks.spawn(TaskRequest(kind="process", command="print"), print_lines)
    await office.tasks.wait(task.task_id)

    shown = [line for line in office.tasks.read_log(task.task_id).lines if line]
    assert shown == [*office.session.log.secrets.redactor.text(printed).splitlines(), "password"]
    for secret in ("wren7", "fox82", "dune4", "elk93", "owl17", "ivy55"):
        assert secret.encode() not in all_bytes(tmp_path)


async def test_secrets_of_a_task_reach_neither_journal_nor_record(tmp_path: Path) -> None:
    secret = "correct-horse-battery-staple-42"
    office = Office(tmp_path, "hello", redactor=Redactor((secret,)))
    office.end(f"use {secret}", f"It is {secret}.")
    task = await office.tasks.spawn(ask(f"use {secret}"))
    await office.tasks.wait(task.task_id)
    await office.session.run("hi")
    await office.session.shutdown()
    assert secret in task.prompt
    assert secret.encode() not in all_bytes(tmp_path)


async def test_only_the_last_tasks_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robota.sdk.background.tasks.ENDED_KEPT", 2)
    office = Office(tmp_path)
    running = await office.tasks.spawn(ask("endless"))
    for name in "abcd":
        office.end(name)
        await office.tasks.wait((await office.tasks.spawn(ask(name))).task_id)
    last = await office.tasks.spawn(ask("e"))
    assert [task.prompt for task in office.tasks.list()] == ["endless", "c", "d", "e"]
    assert office.changes.count("closed") == 2
    for task in (running, last):
        await office.tasks.cancel(task.task_id)


async def test_a_record_that_was_tampered_with_leads_to_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "other.log").write_text("private\n")
    office = Office(tmp_path)
    await office.session.open()
    for name in ("../../other", str(tmp_path / "sessions" / "other")):
        task = TaskSnapshot(task_id=name, kind="agent", state="completed")
        office.session.background.take_task("completed", task, "")
        assert office.tasks.read_log(name).lines == ()
