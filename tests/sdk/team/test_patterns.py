from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.office import USED, open_session

from robota.core.errors import ConfigurationError, ProviderError
from robota.core.events import ProviderRequest
from robota.core.robota import Robota
from robota.sdk import (
    Subagent,
    TeamLimits,
    TeamTurn,
    run_group_chat,
    run_hand_off,
    run_hierarchical,
    run_parallel,
    run_sequential,
)
from robota.testing import Fail, ScriptedProvider, Stall

pytestmark = pytest.mark.anyio


def agent(*replies: Any) -> Robota:
    return Robota(ScriptedProvider(*replies))


async def asking(one: Robota) -> None:
    """Wait until its model has been asked."""
    async with one.events.open(ProviderRequest) as asked:
        await anext(asked)


def prompts(one: Robota) -> list[str]:
    return [message.content for message in one.messages if message.role == "user"]


async def test_one_after_the_other_works_on_what_the_one_before_made() -> None:
    writer, editor = agent("A draft."), agent("Better.")
    result = await run_sequential([writer, editor], "Write.")
    assert (result.text, result.success) == ("Better.", True)
    assert [turn.member for turn in result.turns] == ["agent-1", "agent-2"]
    assert "A draft." in prompts(editor)[0]


async def test_agents_sessions_and_subagents_work_in_one_team(tmp_path: Path) -> None:
    async with open_session(tmp_path, "From the session.", "From the subagent.") as session:
        members = {"plain": agent("From the agent."), "session": session, "sub": Subagent(session, "Explore")}
        result = await run_sequential(members, "Look.")
    assert [turn.text for turn in result.turns] == [
        "From the agent.",
        "From the session.",
        "From the subagent.",
    ]
    assert result.success


async def test_all_work_at_once_and_one_puts_their_answers_together() -> None:
    meeting = asyncio.Barrier(2)

    class Waiting(Robota):
        async def run(self, prompt: Any, **options: Any) -> Any:
            await meeting.wait()  # passed only if both are under way
            return await super().run(prompt, **options)

    members = {name: Waiting(ScriptedProvider(f"{name} says.")) for name in ("a", "b")}
    assert (await run_parallel(members, "Think.")).text == "a:\na says.\n\nb:\nb says."
    members = {name: Waiting(ScriptedProvider(f"{name} says.")) for name in ("a", "b")}
    judge = agent("Both are right.")
    assert (await run_parallel(members, "Think.", combine=judge)).text == "Both are right."
    assert "a says." in prompts(judge)[0]


async def test_a_failure_ends_the_team_and_stops_the_others() -> None:
    stuck, broken = agent([Stall()]), agent([Fail(ProviderError("no"))])
    result = await run_parallel({"stuck": stuck, "broken": broken}, "Think.")
    assert (result.ending, str(result.error), result.success) == ("error", "no", False)
    assert not stuck.is_running
    result = await run_sequential([agent([Fail(ProviderError("no"))]), agent("never")], "x")
    assert (result.ending, len(result.turns)) == ("error", 1)


async def test_an_abort_of_one_is_the_end_for_all() -> None:
    first, second = agent([Stall()]), agent([Stall()])
    work = asyncio.create_task(run_parallel([first, second], "Think."))
    await asyncio.gather(asking(first), asking(second))
    first.abort()
    result = await work
    assert result.ending == "interrupted"
    assert not second.is_running


async def test_a_cancelled_caller_takes_the_team_along() -> None:
    one = agent([Stall()])
    work = asyncio.create_task(run_sequential([one], "Think."))
    await asking(one)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not one.is_running


async def test_whoever_is_named_goes_on() -> None:
    desk, expert = agent("HANDOFF expert: It is about billing."), agent("Refunded.")
    result = await run_hand_off({"desk": desk, "expert": expert}, "I was charged twice.")
    assert (result.text, [turn.member for turn in result.turns]) == ("Refunded.", ["desk", "expert"])
    assert "I was charged twice.\n\nIt is about billing." in prompts(expert)[0]
    assert "There are expert." in prompts(desk)[0]


async def test_handing_on_for_ever_ends_at_a_limit_and_a_stranger_is_no_member() -> None:
    members = {"a": agent(*["HANDOFF b: you"] * 9), "b": agent(*["HANDOFF a: no, you"] * 9)}
    result = await run_hand_off(members, "Do it.", max_hops=3)
    assert (result.ending, len(result.turns)) == ("limit", 4)
    result = await run_hand_off({"a": agent("HANDOFF stranger: x")}, "Do it.")
    assert result.text == "HANDOFF stranger: x"
    with pytest.raises(ConfigurationError, match="no member 'c'"):
        await run_hand_off({"a": agent("x")}, "Do it.", start="c")


async def test_in_a_group_each_hears_what_was_said_since_it_spoke() -> None:
    ada, grace = agent("I say A.", "I say B."), agent("I disagree.", "Fine.")
    result = await run_group_chat({"ada": ada, "grace": grace}, "Discuss.", rounds=2)
    assert [turn.text for turn in result.turns] == ["I say A.", "I disagree.", "I say B.", "Fine."]
    assert "Discuss." in prompts(grace)[0]
    assert "ada: I say A." in prompts(grace)[0]
    assert prompts(ada)[1].startswith("grace: I disagree.")
    assert "I say A." not in prompts(ada)[1]


async def test_somebody_may_choose_who_speaks() -> None:
    def choose(turns: Sequence[TeamTurn], names: Sequence[str]) -> str | None:
        return None if turns and "agreed" in turns[-1].text else names[-1]

    result = await run_group_chat({"a": agent("x"), "b": agent("hm", "agreed")}, "Discuss.", choose=choose)
    assert [turn.member for turn in result.turns] == ["b", "b"]
    with pytest.raises(ConfigurationError, match="no member 'x'"):
        await run_group_chat({"a": agent("x")}, "Discuss.", choose=lambda turns, names: "x")


async def test_a_leader_shares_the_work_out_and_sums_up() -> None:
    leader = agent("Here is the plan:\n- a: count\n- b: `weigh`\nc: nothing", "Three apples of 500 g.")
    workers = {"a": agent("Three."), "b": agent("500 g.")}
    result = await run_hierarchical(leader, workers, "Apples?")
    assert result.text == "Three apples of 500 g."
    assert sorted(turn.member for turn in result.turns) == ["a", "b", "leader", "leader"]
    assert prompts(workers["a"]) == ["count"]
    assert (await run_hierarchical(agent("I know: three."), workers, "Apples?")).text == "I know: three."


async def test_all_members_share_one_limit() -> None:
    result = await run_sequential([agent("a"), agent("b"), agent("c")], "x", limits=TeamLimits(max_turns=2))
    assert (result.ending, result.text, len(result.turns)) == ("limit", "b", 2)
    members = [agent(["a", USED]), agent(["b", USED]), agent("never")]
    result = await run_sequential(members, "x", limits=TeamLimits(max_tokens=200))
    assert (result.ending, result.tokens, len(result.turns)) == ("limit", 240, 2)


async def test_a_team_of_nobody_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one member"):
        await run_parallel([], "x")
