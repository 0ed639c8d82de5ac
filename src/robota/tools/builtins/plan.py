"""EnterPlanMode and ExitPlanMode: the model plans first, and goes to work when the user agrees.

What the mode means for other tools is the permission layer's business; these keep the state and call back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from msgspec import Struct

from robota.core.errors import describe_exception
from robota.core.messages import JsonObject
from robota.core.questions import PlanAnswer, PlanQuestion
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, string

SwitchMode: TypeAlias = Callable[[str | None], Awaitable[None]]
"""Called with `"plan"` at first, and in the end with the mode to go on in, `None` for the one before."""

ENTER_PARAMETERS = arguments_schema({})
EXIT_PARAMETERS = arguments_schema(
    {
        "plan": string("The whole plan, in Markdown.", minLength=1),
        "planFilePath": string("The file the plan was written to, if it was."),
    },
    "plan",
)
_PLANNING = (
    "Plan mode is on. Look at everything you need, but change nothing. Then call ExitPlanMode with the plan; "
    "the user will agree to it or say what to change."
)
_APPROVED = "The user agreed to the plan; plan mode is off. Carry it out now, and keep track with TodoWrite."
_REFUSED = "The user did not agree to the plan; plan mode stays on, so change nothing. "
_NOBODY = (
    "Nobody is attached to this session who could agree to the plan, so plan mode stays on. Give the plan as "
    "your answer, and end there."
)


class PlanState(Struct, kw_only=True):
    """Whether a session plans, and its last plan."""

    active: bool = False
    plan: str = ""
    """The plan as it was presented last, word for word."""
    approved: bool = False


def plan_tools(
    state: PlanState | None = None, switch_mode: SwitchMode | None = None
) -> tuple[FunctionTool, FunctionTool]:
    """Both tools on one state; without `switch_mode` the state is all that changes."""
    held = PlanState() if state is None else state

    async def enter(ctx: ToolContext) -> ToolResult:
        if not held.active:
            await _switch(switch_mode, "plan")
            held.active, held.approved = True, False
        return ToolResult(content=_PLANNING)

    async def leave(ctx: ToolContext, **arguments: Any) -> ToolResult:
        return await _present(held, switch_mode, ctx, arguments)

    texts = text_beside(__file__, 0), text_beside(__file__, 1)
    return (
        FunctionTool("EnterPlanMode", texts[0], ENTER_PARAMETERS, enter, tool_class="inspect"),
        FunctionTool("ExitPlanMode", texts[1], EXIT_PARAMETERS, leave, tool_class="inspect"),
    )


async def _present(
    state: PlanState, switch_mode: SwitchMode | None, ctx: ToolContext, arguments: JsonObject
) -> ToolResult:
    if not state.active:
        return ToolResult.failure("Plan mode is not on: continue with the work, or call EnterPlanMode first.")
    state.plan, state.approved = arguments["plan"], False
    question = PlanQuestion(plan=state.plan, plan_file_path=arguments.get("planFilePath", ""))
    try:
        answer = None if ctx.ask is None else await ctx.ask(question)
    except Exception as error:  # noqa: BLE001 - the front end is foreign code; without an answer nothing is agreed
        return ToolResult.failure(f"{_REFUSED}Asking failed: {describe_exception(error)}")
    if not isinstance(answer, PlanAnswer):
        return ToolResult(content=_NOBODY, metadata={"unavailable": True})
    if not answer.approve:
        wish = f"They said: {answer.feedback}" if answer.feedback else "Ask what they would like instead."
        return ToolResult(content=_REFUSED + wish, metadata={"approved": False})
    await _switch(switch_mode, answer.mode)
    state.active, state.approved = False, True
    remark = f" They added: {answer.feedback}" if answer.feedback else ""
    return ToolResult(content=f"{_APPROVED}{remark}\n\nThe plan:\n{state.plan}", metadata={"approved": True})


async def _switch(switch_mode: SwitchMode | None, mode: str | None) -> None:
    if switch_mode is not None:
        await switch_mode(mode)
