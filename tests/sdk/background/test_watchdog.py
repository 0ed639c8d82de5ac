"""A task that hangs, babbles or goes in circles is ended, with the reason."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.background.office import Office

from robota.core.background import TaskFailure
from robota.sdk.background.live_task import Work
from robota.sdk.background.request import TaskRequest
from robota.sdk.background.watchdog import Watchdog, WatchdogLimits

pytestmark = pytest.mark.anyio

DEFAULT = WatchdogLimits()


def test_the_limits_are_those_that_are_documented() -> None:
    assert (DEFAULT.idle, DEFAULT.max_runtime) == (240, 0)
    assert (DEFAULT.output_bytes, DEFAULT.deltas) == (256_000, 20_000)
    assert (DEFAULT.repetition_window, DEFAULT.repetition_threshold) == (800, 8)


async def watch(tmp_path: Path, limits: WatchdogLimits, run: Any) -> TaskFailure:
    office = Office(tmp_path, given={"limits": limits})
    task = await office.tasks.spawn(TaskRequest(prompt="go"), run)
    ended = await office.tasks.wait(task.task_id)
    assert (ended.state, office.changes[-1]) == ("failed", "failed")
    assert ended.error is not None
    assert ended.error.recoverable
    return ended.error


async def hang(work: Work) -> str:
    await asyncio.Event().wait()
    return ""


async def test_one_that_gives_no_sign_of_life(tmp_path: Path) -> None:
    error = await watch(tmp_path, WatchdogLimits(idle=0.05), hang)
    assert (error.category, error.reason) == ("timeout", "idle")


async def test_one_that_takes_too_long_however_much_it_says(tmp_path: Path) -> None:
    async def talk(work: Work) -> str:
        number = 0
        while True:
            work.say(f"{(number := number + 1)} ")
            await asyncio.sleep(0.01)

    error = await watch(tmp_path, WatchdogLimits(idle=5, max_runtime=0.1), talk)
    assert (error.category, error.reason) == ("timeout", "max_runtime")


async def test_one_that_says_too_much(tmp_path: Path) -> None:
    async def shout(work: Work) -> str:
        for number in range(100):
            work.say("".join(chr(97 + (number * at) % 26) for at in range(50)))
            await asyncio.sleep(0)
        return ""

    for limits in (WatchdogLimits(output_bytes=1_000), WatchdogLimits(deltas=50)):
        home = tmp_path / str(limits.deltas)
        home.mkdir()
        error = await watch(home, limits, shout)
        assert (error.category, error.reason) == ("runner", "output_limit")


async def test_one_that_goes_in_circles(tmp_path: Path) -> None:
    async def circle(work: Work) -> str:
        for _ in range(400):
            work.say("I will now read the file. ")
            await asyncio.sleep(0)
        return ""

    error = await watch(tmp_path, DEFAULT, circle)
    assert (error.category, error.reason) == ("runner", "repetition")


@pytest.fixture
def barked() -> list[TaskFailure]:
    return []


async def test_lists_tables_and_indentation_are_no_circles(barked: list[TaskFailure]) -> None:
    dog = Watchdog(DEFAULT, barked.append)
    for number in range(300):
        dog.read(f"| {number:>4} | {'-' * 20} | {'x' * 8} |\n        ")
    assert barked == []


@pytest.mark.parametrize("unit", ["a", "ab", "word ", "x" * 99 + "\n"])
async def test_a_window_of_one_unit_is_a_circle(unit: str, barked: list[TaskFailure]) -> None:
    dog = Watchdog(DEFAULT, barked.append)
    dog.read("Something else before. ")
    for _ in range(1_000 // len(unit) + 2):
        dog.read(unit)
    assert [each.reason for each in barked][:1] == ["repetition"]


async def test_a_call_under_way_and_an_open_question_are_signs_of_life(barked: list[TaskFailure]) -> None:
    now = asyncio.get_running_loop().time
    dog = Watchdog(WatchdogLimits(idle=60), barked.append)
    dog.begin()
    dog.hold()
    dog._last = now() - 100
    dog._look()  # what its timer does
    assert barked == []
    dog.release()
    dog._look()
    assert barked == []  # the end of the call was one as well
    dog._last = now() - 100
    dog._look()
    assert [each.reason for each in barked] == ["idle"]
