"""The state of a run follows from its records: at every prefix of a journal it is what the run itself had."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.sessions.live_session import Studio, run
from tests.support.forms import some_of

from robota.core.provider import ChatRequest
from robota.core.robota import DEFAULT_MAX_IDENTICAL_FAILURES
from robota.core.run import RunState
from robota.sessions.journal.conversation import ConversationFold
from robota.sessions.journal.port import MemoryJournal
from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import Delay, Fail, ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


class WatchedJournal(MemoryJournal):
    """Notes what the run says of itself when each record is written."""

    def __init__(self) -> None:
        super().__init__("s-1")
        self.studio: Studio | None = None
        self.live: list[bytes] = []

    def append(self, body: bytes, *, event: int, hold: bool = False) -> int:
        number = super().append(body, event=event, hold=hold)
        state = None if self.studio is None else self.studio.session.agent.run_state
        self.live.append(msgspec.json.encode(state))
        return number


@tool
async def work(times: int) -> str:
    """Work, and fail at four."""
    for _ in range(times):
        await asyncio.sleep(0)
    if times == 4:
        raise ValueError("four")
    return "done"


def make_studio(home: Path, rng: random.Random) -> tuple[Studio, WatchedJournal]:
    def reply(request: ChatRequest) -> list[Any]:
        pieces: list[Any] = [rng.choice(["word ", Delay(0), "more "]) for _ in range(rng.randint(0, 3))]
        if rng.random() < 0.6 and request.tools:
            for number in range(rng.randint(1, 3)):
                name = rng.choice(["work", "work", "unknown"])
                pieces.append(call(name, f"c{number}", times=rng.choice([0, 1, 4])))
        if rng.random() < 0.05:
            pieces.append(Fail(ConnectionError("cut")))
        return pieces

    journal = WatchedJournal()
    hooks = {"Stop": [run(f"test $(( $(date +%N | sed 's/^0*//') % 3 )) != {rng.randrange(3)} || exit 2")]}
    studio = Studio(
        home,
        provider=ScriptedProvider(reply, repeat=True),
        tools=[work],
        rules=PermissionRules(mode="bypassPermissions"),
        journal=journal,
        max_rounds=rng.choice([0, 3, 6]),
        context_window=rng.choice([2_000, 100_000]),
        hooks=hooks if rng.random() < 0.2 else None,
    )
    journal.studio = studio
    return studio, journal


@pytest.mark.parametrize("seed", some_of(range(30)))
async def test_at_every_prefix_the_folded_state_is_the_live_one(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    studio, journal = make_studio(tmp_path, rng)
    for _ in range(3):
        running = asyncio.ensure_future(studio.session.submit("go"))
        for _ in range(rng.choice([5, 20, 100_000])):
            if running.done():
                break
            await asyncio.sleep(0)
        studio.session.abort()
        await running

    fold = ConversationFold(identical_failures=DEFAULT_MAX_IDENTICAL_FAILURES)
    compared = 0
    for record, live in zip(journal.records, journal.live, strict=True):
        fold.take(record)
        if fold.run is not None:
            assert msgspec.json.encode(fold.run) == live, record
            compared += 1
    assert compared > 10


async def test_a_state_survives_being_written_down() -> None:
    state = RunState(execution_id="e", max_rounds=3, answer="hm", tools_executed=["add"])
    assert msgspec.json.decode(msgspec.json.encode(state), type=RunState) == state
