"""EnterPlanMode and ExitPlanMode: the model plans first, and goes to work when the user agrees.

What the mode means for other tools is the permission layer's business; these keep the state and call back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.errors import describe_exception
from robota.core.messages import Json, JsonObject
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

    def to_json(self) -> JsonObject:
        return msgspec.structs.asdict(self)

    @classmethod
    def from_json(cls, saved: Mapping[str, Json]) -> PlanState:
        """The state of a saved session. Raises `msgspec.ValidationError` for anything else."""
        return msgspec.convert(saved, cls)


class PlanApproval(Struct, frozen=True, kw_only=True):
    """What `ToolContext.ask` gets; it returns a `PlanAnswer`, or simply True, False or `None`."""

    plan: str
    plan_file_path: str = ""


class PlanAnswer(Struct, frozen=True, kw_only=True):
    approve: bool
    feedback: str = ""
    """For the model: what to change, or what to mind."""
    mode: str | None = None
    """The permission mode to go on in; `None` for the one before."""


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
        return ToolResult.failure("Plan mode is not on: go on with the work, or call EnterPlanMode first.")
    state.plan, state.approved = arguments["plan"], False
    if ctx.ask is None:
        return ToolResult(content=_NOBODY, metadata={"unavailable": True})
    request = PlanApproval(plan=state.plan, plan_file_path=arguments.get("planFilePath", ""))
    try:
        answer = _read_answer(await ctx.ask(request))
    except Exception as error:  # noqa: BLE001 - the front end is foreign code; without an answer nothing is agreed
        return ToolResult.failure(f"{_REFUSED}Asking failed: {describe_exception(error)}")
    if not answer.approve:
        wish = f"They said: {answer.feedback}" if answer.feedback else "Ask what they would like instead."
        return ToolResult(content=_REFUSED + wish, metadata={"approved": False})
    await _switch(switch_mode, answer.mode)
    state.active, state.approved = False, True
    remark = f" They added: {answer.feedback}" if answer.feedback else ""
    return ToolResult(content=f"{_APPROVED}{remark}\n\nThe plan:\n{state.plan}", metadata={"approved": True})


def _read_answer(answer: object) -> PlanAnswer:
    if isinstance(answer, PlanAnswer):
        return answer
    if isinstance(answer, str):  # words instead of a yes
        return PlanAnswer(approve=False, feedback=answer)
    return PlanAnswer(approve=answer is True)


async def _switch(switch_mode: SwitchMode | None, mode: str | None) -> None:
    if switch_mode is not None:
        await switch_mode(mode)
