"""Limits on what a session may spend, below every front end."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.live_session import Studio, listen_to

from robota.core.messages import TokenUsage
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.usage.budget import Budget, BudgetExceededError
from robota.testing import call

pytestmark = pytest.mark.anyio

ALLOWED = PermissionRules(mode="bypassPermissions")
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
