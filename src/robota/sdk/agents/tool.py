"""The `Agent` tool: the model hands a task to a subagent and gets its report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from msgspec import convert

from robota.core.errors import RobotaError
from robota.core.messages import Json, JsonObject
from robota.core.permissions.modes import PermissionDecision, PermissionMode
from robota.core.tool import ToolContext, ToolResult
from robota.sdk.agents.definition import DEFAULT_AGENT, AgentDefinition
from robota.sdk.agents.runner import AgentOutcome, AgentTask, Subagents
from robota.tools.json_schema import arguments_schema, boolean, string

LISTED = 500
"""Characters of an agent's description that the model is shown."""
LISTING = 16_000
"""Characters of all of them together; further agents are named only."""
ABOUT = """\
Hand a task to a subagent, which works on it by itself in a conversation of its own and reports back once.
Use it for work of several steps that would fill this conversation with things that only its result is
needed of, such as broad searches, and call it several times at once for tasks that do not depend on each
other. Do not use it to read a file whose path is known or for a single search.

The subagent knows nothing of this conversation: put everything it needs into the prompt, and say what it
should report and whether it is to change files or only to look. Its report is for you; tell the user what
matters of it."""


BESIDE = "Whether it works beside the conversation while you go on; you are told when it has ended."


class SubagentTool:
    name = "Agent"
    tool_class = "execute"

    def __init__(
        self, subagents: Subagents, start: Callable[[AgentTask], Awaitable[str]] | None = None
    ) -> None:
        """`start` begins a task in the background and gives its id; without it there are none."""
        self._subagents = subagents
        self._start = start
        self.parameters = arguments_schema(
            {
                **({} if start is None else {"run_in_background": boolean(BESIDE)}),
                "prompt": string("The task, with everything there is to know about it."),
                "description": string("The task in three to five words, for the user."),
                "subagent_type": string(f"Which agent works on it. Default: {DEFAULT_AGENT}."),
                "model": string("Another model than the agent's own: an id, or sonnet, haiku or opus."),
                "isolation": string(
                    "`worktree`: work in a git working tree of its own.", enum=["none", "worktree"]
                ),
            },
            "prompt",
        )

    @property
    def description(self) -> str:
        return f"{ABOUT}\n\nAgents:\n{list_agents(self._subagents.agents.values())}"

    def weigh(self, arguments: JsonObject, mode: PermissionMode) -> tuple[PermissionDecision, str] | None:
        """What is decided where no rule decides; `None` leaves it to the mode."""
        subagents, task = self._subagents, read_task(arguments)
        agent = subagents.agents.get(task.agent)
        if agent is None:
            return "auto", "There is no such agent, and nothing is started."
        if mode == "bypassPermissions" or (mode == "plan" and not agent.is_read_only):
            return None
        if subagents.options.policy == "auto":
            return "auto", "The settings let subagents start without a question."
        return "approve", subagents.describe_cost(task)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        task = read_task(arguments)
        if self._subagents.options.policy == "never":
            return ToolResult.failure("The settings let no subagents start: do the work here.", success=False)
        try:
            agent = self._subagents.find(task.agent)
            if self._start is not None and arguments.get("run_in_background", agent.background):
                return as_started(await self._start(task))
            return as_result(await self._subagents.run(task))
        except RobotaError as error:
            return ToolResult.failure(str(error), error.code, success=False)


def read_task(arguments: JsonObject) -> AgentTask:
    given = {name: value for name, value in arguments.items() if value}
    if "subagent_type" in given:
        given["agent"] = given.pop("subagent_type")
    return convert(given, AgentTask)


def as_started(task_id: str) -> ToolResult:
    words = f"Started in the background as {task_id}. You are told when it has ended; do not wait for it."
    return ToolResult(content=words, metadata={"success": True, "taskId": task_id, "agentId": task_id})


def as_result(outcome: AgentOutcome) -> ToolResult:
    metadata: dict[str, Json] = {"success": outcome.success, "agentId": outcome.agent_id, **outcome.metadata}
    kept = metadata.get("worktreeStatus") not in (None, "removed")
    where = f"\n\n[{metadata['worktreeNextAction']}]" if kept else ""
    if outcome.success:
        content = (outcome.output or "The subagent ended without a report.") + where
        return ToolResult(content=content, metadata={**metadata, "output": outcome.output})
    so_far = f" It had said: {outcome.output}" if outcome.output else ""
    error = f"Sub-agent error: {outcome.error}{so_far}{where}"
    return ToolResult(ok=False, error=error, metadata=metadata)


def list_agents(agents: Iterable[AgentDefinition]) -> str:
    """The agents as the model is shown them."""
    lines, names, room = list[str](), list[str](), LISTING
    for agent in agents:
        line = f"- {agent.name}: {agent.description[:LISTED]} (Tools: {_describe_tools(agent)})"
        if len(line) <= room:
            lines.append(line)
            room -= len(line)
        else:
            names.append(agent.name)
    if names:
        lines.append(f"- Others, by name only: {', '.join(names)}")
    return "\n".join(lines)


def _describe_tools(agent: AgentDefinition) -> str:
    offered = "all" if agent.tools is None or "*" in agent.tools else ", ".join(agent.tools)
    return f"{offered} but {', '.join(agent.disallowed_tools)}" if agent.disallowed_tools else offered
