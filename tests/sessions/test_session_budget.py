"""Limits on what a session may spend, below every front end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio, listen_to
from tests.support.session_options import session_options

from robota import tool
from robota.core.events import Noticed
from robota.core.messages import TokenUsage, ToolMessage
from robota.core.provider import ChatRequest, Chunk, ModelSettings
from robota.sessions.options import SessionOptions
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore
from robota.sessions.usage.budget import Budget, BudgetExceededError
from robota.sessions.usage.ledger import UsageLedger
from robota.testing import Delay, ScriptedProvider, call

pytestmark = pytest.mark.anyio

ALLOWED = PermissionRules(mode="bypassPermissions")


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


SPENT = TokenUsage(input_tokens=600, output_tokens=300)


async def test_a_request_that_does_not_fit_is_never_sent(tmp_path: Path) -> None:
    hooks = listen_to(tmp_path, "StopFailure")
    studio = Studio(
        tmp_path,
        [call("add", a=1, b=2)],
        "3",
        "never",
        rules=ALLOWED,
        hooks=hooks,
        budget=Budget(max_requests=2),
    )
    assert await studio.session.run("1+2?") == "3"

    with pytest.raises(BudgetExceededError, match="max_requests"):
        await studio.session.run("and now?")

    assert len(studio.provider.requests) == 2
    assert "budget" in studio.fired[0]["reason"].lower() or "max_requests" in studio.fired[0]["reason"]
    studio.assert_journal_is_good()


async def test_tokens_are_counted_by_what_the_service_says(tmp_path: Path) -> None:
    studio = Studio(tmp_path, ["one", SPENT], "two", budget=Budget(max_tokens=920))
    assert await studio.session.run("hi") == "one"

    with pytest.raises(BudgetExceededError):
        await studio.session.run("again")
    assert len(studio.provider.requests) == 1


async def test_a_compaction_counts_too(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "what was said", "never", budget=Budget(max_requests=2))
    await studio.session.run("hi")
    await studio.session.compact()

    with pytest.raises(BudgetExceededError):
        await studio.session.run("again")


async def test_a_larger_budget_lets_the_session_go_on(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two", budget=Budget(max_requests=1))
    await studio.session.run("hi")
    with pytest.raises(BudgetExceededError):
        await studio.session.run("again")

    studio.session.limit(Budget(max_requests=5))

    assert await studio.session.run("again") == "two"


async def test_usage_is_kept_without_a_budget_as_well(tmp_path: Path) -> None:
    studio = Studio(tmp_path, ["one", SPENT], ["two", SPENT])
    await studio.session.run("hi")
    await studio.session.run("again")

    total = studio.session.usage.total
    assert (total.input_tokens, total.output_tokens, total.requests) == (1_200, 600, 2)


# --- earlier processes and other sessions ------------------------------------------------------------------


def resumed(home: Path, *replies: Any, ledger: UsageLedger | None = None, **limits: Any) -> Session:
    store = SessionStore(home)
    options = session_options(
        rules=ALLOWED, context_window=100_000, budget=Budget(**limits) if limits else None, ledger=ledger
    )
    start = restore(store, "s-1") if Path(store.journal_path("s-1")).exists() else None
    return Session(
        provider=ScriptedProvider(*replies),
        model="scripted",
        store=store,
        session_id=None if start else "s-1",
        tools=[add],
        start=start,
        options=options,
    )


async def test_after_a_resume_earlier_spending_counts(tmp_path: Path) -> None:
    first = resumed(tmp_path, ["one", SPENT], "what was said")
    await first.run("hi")
    await first.compact()
    await first.shutdown()

    second = resumed(tmp_path, "never", max_tokens=920)
    with pytest.raises(BudgetExceededError, match="max_tokens"):
        await second.run("again")
    await second.shutdown()
    third = resumed(tmp_path, "three", "never", max_requests=3)
    assert third.usage.total.requests == 2
    assert await third.run("again") == "three"
    with pytest.raises(BudgetExceededError, match="max_requests"):
        await third.run("and again")
    assert third.usage.total.requests == 3
    purposes = {each.purpose: each.requests for each in third.usage.snapshot().purposes}
    assert purposes == {"answer": 2, "compaction": 1}


async def test_after_a_resume_earlier_tool_calls_and_seconds_count(tmp_path: Path) -> None:
    first = resumed(tmp_path, [call("add", a=1, b=2)], [Delay(0.05), "slow"])
    await first.run("add")
    first.limit(Budget(max_tool_calls=1))
    assert first.admission.admit_call("c2") is not None
    await first.shutdown()

    second = resumed(tmp_path, [call("add", a=1, b=2)], "two", max_tool_calls=1)
    await second.run("add")
    [*_, result] = [message.content for message in second.messages if isinstance(message, ToolMessage)]
    assert "max_tool_calls" in result
    await second.shutdown()

    third = resumed(tmp_path, "never", max_seconds=0.01)
    assert third.usage.seconds >= 0.05
    with pytest.raises(BudgetExceededError, match="max_seconds"):
        await third.run("again")
    await third.shutdown()


async def test_what_no_service_counted_is_estimated_after_a_resume_too(tmp_path: Path) -> None:
    first = resumed(tmp_path, "w" * 4_000, max_tokens=100_000)
    await first.run("p" * 4_000)
    await first.shutdown()

    second = resumed(tmp_path)

    before, after = first.usage.total, second.usage.total
    assert after.output_tokens == before.output_tokens == 1_000
    assert abs(after.input_tokens - before.input_tokens) < 100


async def test_a_ledger_that_was_there_counts_nothing_twice(tmp_path: Path) -> None:
    ledger = UsageLedger()
    first = resumed(tmp_path, ["one", SPENT], ledger=ledger)
    await first.run("hi")
    await first.shutdown()

    second = resumed(tmp_path, ["two", SPENT], ledger=ledger)
    await second.run("again")

    assert ledger.total.requests == 2


async def test_what_others_spent_since_the_session_was_restored_counts(tmp_path: Path) -> None:
    first = resumed(tmp_path, ["one", SPENT])
    await first.run("hi")
    await first.shutdown()
    second, third = resumed(tmp_path, ["two", SPENT]), resumed(tmp_path, "never", max_requests=2)
    await second.run("again")
    await second.shutdown()

    with pytest.raises(BudgetExceededError, match="max_requests"):
        await third.run("and again")


async def test_a_fork_begins_with_nothing_spent(tmp_path: Path) -> None:
    first = resumed(tmp_path, ["one", SPENT])
    await first.run("hi")
    await first.shutdown()
    store = SessionStore(tmp_path)

    fork = Session(provider=ScriptedProvider("two"), store=store, start=restore(store, "s-1", fork=True))

    assert fork.usage.total.requests == 0


async def test_sessions_that_share_a_ledger_share_the_gate() -> None:
    """Each would fit alone: the second has to wait for the first, and then does not fit any more."""
    ledger, budget = UsageLedger(), Budget(max_tokens=1_000)
    gate = asyncio.Event()

    class Slow(ScriptedProvider):
        async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
            await gate.wait()
            async for chunk in super().stream(request):
                yield chunk

    def make(provider: ScriptedProvider, **options: Any) -> Session:
        settings = ModelSettings(max_tokens=998)
        return Session(
            provider=provider,
            model="scripted",
            options=SessionOptions(ledger=ledger, settings=settings, context_window=100_000, **options),
        )

    first, second, third = (
        Slow(["one", TokenUsage(600, 399)]),
        ScriptedProvider("never"),
        ScriptedProvider("never"),
    )
    running = asyncio.create_task(make(first, budget=budget).run("hi"))
    limited, unlimited = make(second, budget=budget), make(third)
    waits = asyncio.Event()
    limited.events.on(Noticed, lambda event: waits.set() if "waits until others" in event.message else None)
    waiting = [asyncio.create_task(session.run("hi")) for session in (limited, unlimited)]
    await waits.wait()
    assert second.requests == third.requests == []
    gate.set()

    assert await running == "one"
    for task in waiting:
        with pytest.raises(BudgetExceededError):
            await task
    assert ledger.total.requests == 1


async def test_tool_calls_beyond_the_budget_are_refused_and_the_model_goes_on(tmp_path: Path) -> None:
    studio = Studio(
        tmp_path,
        [call("add", a=1, b=2), call("add", a=3, b=4), call("add", a=5, b=6)],
        "enough",
        rules=ALLOWED,
        budget=Budget(max_tool_calls=2),
    )

    assert await studio.session.run("add") == "enough"

    results = [message.content for message in studio.session.messages if isinstance(message, ToolMessage)]
    assert [("budget" in result) for result in results] == [False, False, True]
    studio.assert_journal_is_good()


async def test_a_child_shares_the_tool_calls_of_its_parent(tmp_path: Path) -> None:
    studio = Studio(
        tmp_path,
        [call("add", a=1, b=2)],
        "one",
        [call("add", a=1, b=2)],
        "two",
        rules=ALLOWED,
        budget=Budget(max_tool_calls=1),
    )
    await studio.session.run("add")
    child = studio.session.child("helper")

    await child.run("add too")

    [result] = [message.content for message in child.messages if isinstance(message, ToolMessage)]
    assert "max_tool_calls" in result
    await studio.session.shutdown()


async def test_time_is_a_limit_too(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [Delay(0.05), "slow"], "never", budget=Budget(max_seconds=0.01))
    assert await studio.session.run("hi") == "slow"

    with pytest.raises(BudgetExceededError, match="max_seconds") as caught:
        await studio.session.run("again")

    assert caught.value.limit == "time"
    assert caught.value.used > caught.value.maximum == 0.01
