from __future__ import annotations

from typing import Any

import msgspec
import pytest

from robota.core.questions import PlanAnswer, PlanQuestion, read_answer
from robota.core.tool import Tool, ToolContext, ToolResult, tool_class
from robota.tools.builtins.plan import PlanState, plan_tools

pytestmark = pytest.mark.anyio

PLAN = {"plan": "1. Rename it\n2. Run the tests"}


class Bench:
    """Both tools on one state, with somebody who answers."""

    def __init__(self, answer: Any = None, *, active: bool = True) -> None:
        self.state = PlanState(active=active)
        self.modes: list[str | None] = []
        self.asked: list[PlanQuestion] = []
        self.answer = answer
        self.enter_tool, self.exit_tool = plan_tools(self.state, self.switch)

    async def switch(self, mode: str | None) -> None:
        if mode == "broken":
            raise RuntimeError("no such mode")
        self.modes.append(mode)

    async def ask(self, request: PlanQuestion) -> Any:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return read_answer(request, self.answer)

    async def enter(self) -> ToolResult:
        return await self.enter_tool.run({}, ToolContext(ask=self.ask))

    async def leave(self, **more: Any) -> ToolResult:
        return await self.exit_tool.run({**PLAN, **more}, ToolContext(ask=self.ask))


def test_both_are_tools_that_inspect() -> None:
    enter, leave = plan_tools()
    assert isinstance(enter, Tool)
    assert isinstance(leave, Tool)
    assert [(tool.name, tool_class(tool)) for tool in (enter, leave)] == [
        ("EnterPlanMode", "inspect"),
        ("ExitPlanMode", "inspect"),
    ]
    assert enter.description.startswith("Begin to plan")
    assert leave.description.startswith("Present your plan")


async def test_entering_switches_the_mode_and_says_what_to_do() -> None:
    bench = Bench(active=False)
    result = await bench.enter()
    assert (result.ok, "change nothing" in result.text, "ExitPlanMode" in result.text) == (True, True, True)
    assert (bench.state.active, bench.modes) == (True, ["plan"])


async def test_entering_twice_switches_once() -> None:
    bench = Bench(active=False)
    await bench.enter()
    assert (await bench.enter()).ok
    assert bench.modes == ["plan"]


async def test_an_agreed_plan_ends_the_mode_and_comes_back_word_for_word() -> None:
    bench = Bench(True)
    result = await bench.leave(planFilePath="/plans/rename.md")
    assert bench.asked == [PlanQuestion(plan=PLAN["plan"], plan_file_path="/plans/rename.md")]
    assert "Carry it out now" in result.text
    assert PLAN["plan"] in result.text
    assert bench.state == PlanState(active=False, plan=PLAN["plan"], approved=True)
    assert bench.modes == [None]


async def test_the_user_chooses_the_mode_to_go_on_in_and_may_add_something() -> None:
    bench = Bench(PlanAnswer(approve=True, mode="acceptEdits", feedback="mind the docs"))
    assert "They added: mind the docs" in (await bench.leave()).text
    assert bench.modes == ["acceptEdits"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (False, "Ask what they would like instead"),
        (PlanAnswer(approve=False, feedback="use git mv"), "They said: use git mv"),
        ("use git mv", "They said: use git mv"),
    ],
)
async def test_without_agreement_the_mode_stays(answer: Any, said: str) -> None:
    bench = Bench(answer)
    result = await bench.leave()
    assert "plan mode stays on" in result.text
    assert said in result.text
    assert bench.state == PlanState(active=True, plan=PLAN["plan"], approved=False)
    assert bench.modes == []


async def test_nobody_attached_leaves_the_mode_on() -> None:
    bench = Bench()
    result = await bench.exit_tool.run(PLAN, ToolContext())
    assert (result.ok, result.metadata) == (True, {"unavailable": True})
    assert "Give the plan as your answer" in result.text
    assert bench.state.active


async def test_a_front_end_that_fails_agrees_to_nothing() -> None:
    bench = Bench(RuntimeError("no screen"))
    result = await bench.leave()
    assert not result.ok
    assert "no screen" in (result.error or "")
    assert bench.state.active


async def test_a_mode_that_cannot_be_switched_to_leaves_everything_as_it_was() -> None:
    bench = Bench(PlanAnswer(approve=True, mode="broken"))
    result = await bench.leave()
    assert (result.ok, bench.state.active, bench.state.approved) == (False, True, False)
    assert "no such mode" in (result.error or "")


async def test_leaving_a_mode_that_is_not_on_is_an_error() -> None:
    bench = Bench(True, active=False)
    result = await bench.leave()
    assert (result.ok, bench.asked) == (False, [])
    assert "Plan mode is not on" in (result.error or "")


async def test_a_plan_is_needed() -> None:
    _, leave = plan_tools(PlanState(active=True))
    assert "plan" in ((await leave.run({}, ToolContext())).error or "")
    assert "plan" in ((await leave.run({"plan": ""}, ToolContext())).error or "")


def test_the_state_survives_saving_and_loading() -> None:
    state = PlanState(active=True, plan="1. Think", approved=False)
    assert msgspec.json.decode(msgspec.json.encode(state), type=PlanState) == state
