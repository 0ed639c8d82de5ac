"""EnterPlanMode, ExitPlanMode, TodoWrite: the model plans, works when the user agrees, and keeps track.

What the mode means for other tools is the permission layer's business; these keep the state and call back.
The list of things to do outlasts summaries and can be saved with a session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.errors import describe_exception
from robota.core.messages import Json, JsonObject
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
    state.active, state.approved, state.plan = False, True, answer.plan or state.plan
    remark = f" They added: {answer.feedback}" if answer.feedback else ""
    title = "The plan, as they changed it" if answer.plan else "The plan"
    return ToolResult(content=f"{_APPROVED}{remark}\n\n{title}:\n{state.plan}", metadata={"approved": True})


async def _switch(switch_mode: SwitchMode | None, mode: str | None) -> None:
    if switch_mode is not None:
        await switch_mode(mode)


# --- things to do --------------------------------------------------------------------------------------

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]

MAX_TODOS = 200
TODO_PARAMETERS = arguments_schema(
    {
        "todos": {
            "type": "array",
            "maxItems": MAX_TODOS,
            "description": "The whole list, in the order in which things are to be done.",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string", "minLength": 1, "maxLength": 2000},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    "activeForm": {"type": "string"},
                },
                "required": ["content", "status"],
            },
        },
    },
    "todos",
)
_BOXES = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class Todo(Struct, frozen=True, omit_defaults=True, rename={"active_form": "activeForm"}):
    """One thing to do."""

    content: str
    status: TodoStatus
    active_form: str = ""
    """What is happening while it is in progress."""


class TodoList:
    """The things to do in one session."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[Todo] = ()) -> None:
        self.items: tuple[Todo, ...] = tuple(items)

    def count(self, status: TodoStatus) -> int:
        return sum(item.status == status for item in self.items)

    @property
    def text(self) -> str:
        """The list word for word, one line for each item."""
        return "\n".join(f"{_BOXES[item.status]} {' '.join(item.content.split())}" for item in self.items)

    @property
    def open_text(self) -> str:
        """What is not done yet, for a summary of the conversation."""
        return TodoList([item for item in self.items if item.status != "completed"]).text

    def to_json(self) -> list[Json]:
        return [msgspec.to_builtins(item) for item in self.items]

    @classmethod
    def from_json(cls, items: Sequence[Mapping[str, Json]]) -> TodoList:
        """The list of a saved session. Raises `msgspec.ValidationError` for anything else."""
        return cls(msgspec.convert(items, tuple[Todo, ...]))


def todo_tool(todos: TodoList | None = None) -> FunctionTool:
    """The tool; whoever needs the list besides (screen, session, summary) passes it in."""
    held = TodoList() if todos is None else todos

    async def write_todos(todos: list[JsonObject]) -> ToolResult:
        held.items = msgspec.convert(todos, tuple[Todo, ...])
        return ToolResult(content=_describe(held), metadata={"todos": held.to_json()})

    return FunctionTool(
        "TodoWrite", text_beside(__file__, 2), TODO_PARAMETERS, write_todos, tool_class="inspect"
    )


def _describe(todos: TodoList) -> str:
    if not todos.items:
        return "The todo list is empty now."
    done, active, waiting = (todos.count(status) for status in ("completed", "in_progress", "pending"))
    said = f"Todo list saved: {done} completed, {active} in progress, {waiting} pending."
    if active > 1:
        return f"{said} Better keep only one item in progress at a time."
    if active == 0 and waiting:
        return f"{said} Set the item you work on to in_progress."
    return said
