"""Tasks that are begun together, and when they count as done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.background.office import Office

from robota.core.background import GroupSnapshot, TaskSnapshot
from robota.sdk.background.groups import SUMMARY_KEPT, summarize
from robota.sdk.background.request import TaskRequest
from robota.sdk.background.states import TaskError
from robota.sdk.background.tasks import BackgroundTasks

pytestmark = pytest.mark.anyio


async def begin(office: Office, policy: Any, *names: str) -> GroupSnapshot:
    requests = [TaskRequest(prompt=name, label=name) for name in names]
    return await office.tasks.groups.spawn(requests, policy=policy, label="checks")


async def test_a_group_is_done_when_all_have_ended(tmp_path: Path) -> None:
    office = Office(tmp_path)
    group = await begin(office, "wait_all", "a", "b")
    assert {office.tasks.get(task_id).group_id for task_id in group.task_ids} == {group.group_id}
    waiting = asyncio.ensure_future(office.tasks.groups.wait(group.group_id))
    office.end("a", "fine\nand more")
    await office.tasks.wait(group.task_ids[0])
    assert not waiting.done()
    office.fail("b", TaskError("process", "Exit code 3."))
    done = await waiting
    first, second = group.task_ids
    assert done.completed
    assert done.summary == f"a ({first}): completed, fine\nb ({second}): failed, Exit code 3."
    assert office.group_changes == ["created", "updated", "updated", "completed"]


async def test_a_group_is_done_when_one_has_ended_and_the_others_go_on(tmp_path: Path) -> None:
    office = Office(tmp_path)
    group = await begin(office, "wait_any", "a", "b")
    office.end("b", "first")
    done = await office.tasks.groups.wait(group.group_id)
    assert done.completed
    assert office.tasks.get(group.task_ids[0]).state in ("queued", "running")
    office.end("a")
    await office.tasks.wait(group.task_ids[0])
    assert office.group_changes.count("completed") == 1


async def test_nobody_waits_for_a_detached_group(tmp_path: Path) -> None:
    office = Office(tmp_path)
    group = await begin(office, "detached", "a")
    assert not (await office.tasks.groups.wait(group.group_id)).completed
    office.end("a")
    await office.tasks.wait(group.task_ids[0])
    assert office.tasks.groups.get(group.group_id).completed


async def test_a_group_is_done_when_somebody_says_so(tmp_path: Path) -> None:
    office = Office(tmp_path)
    group = await begin(office, "manual", "a")
    office.end("a")
    await office.tasks.wait(group.task_ids[0])
    waiting = asyncio.ensure_future(office.tasks.groups.wait(group.group_id))
    await asyncio.sleep(0)
    assert not waiting.done()
    office.tasks.groups.complete(group.group_id)
    assert (await waiting).completed
    with pytest.raises(TaskError, match="complete already"):
        office.tasks.groups.complete(group.group_id)


async def test_a_group_that_cannot_be_is_refused_before_anything_begins(tmp_path: Path) -> None:
    office = Office(tmp_path)
    for policy, names in (("wait_all", ()), ("some", ("a",)), ("wait_all", ("a", " "))):
        with pytest.raises(TaskError):
            await begin(office, policy, *names)
    with pytest.raises(TaskError, match="There is no group"):
        office.tasks.groups.get("group-x")
    assert (office.tasks.list(), office.tasks.groups.list()) == ((), ())


def test_a_summary_has_at_most_a_thousand_characters() -> None:
    assert summarize([]) == ""
    assert len(summarize(["x" * 3_000, "y" * 3_000])) <= SUMMARY_KEPT
    assert len(summarize(["line"] * 5_000)) <= SUMMARY_KEPT
    assert summarize(["a", "b"]) == "a\nb"


async def test_a_group_of_a_process_that_is_gone_is_done(tmp_path: Path) -> None:
    office = Office(tmp_path, "hello")
    known = office.session.background
    known.take_task("started", TaskSnapshot(task_id="t", kind="agent", state="running", label="a"), "")
    known.take_group("created", GroupSnapshot(group_id="g", task_ids=("t",)), "")
    tasks = BackgroundTasks(office.session)
    assert tasks.groups.get("g").completed
    assert tasks.groups.get("g").summary.startswith("a (t): failed, The process")
    assert (await tasks.groups.wait("g")).completed
    await office.session.run("hi")
    assert office.group_changes == ["completed"]
