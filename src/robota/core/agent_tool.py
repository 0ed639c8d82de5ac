"""An agent that works for another one: as a tool that gets a task, and as a part of the other's run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import to_builtins

from robota.core.errors import ConfigurationError
from robota.core.event_names import is_only_shown
from robota.core.events import SubagentEvent, TurnEvent
from robota.core.messages import JsonObject
from robota.core.plugin import plugins_for_child
from robota.core.tool import ToolContext, ToolResult, check_tool_name

if TYPE_CHECKING:
    from robota.core.robota import Robota
    from robota.core.run import RunResult


TASK_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "description": "What to do, with everything there is to know: the agent sees nothing else.",
        }
    },
    "required": ["task"],
    "additionalProperties": False,
}


class AgentTool:
    """Calls of it run at the same time, each in an agent made like the given one.

    In a session each is a child session: at most the rights of its parent, out of its budget, counted in its
    usage, in a journal of its own.
    """

    parameters = TASK_SCHEMA

    def __init__(self, agent: Robota, name: str, description: str) -> None:
        check_tool_name(name)
        if not description:
            raise ConfigurationError(
                f"The agent {name!r} needs a description: the model chooses tools by it."
            )
        self._agent = agent
        self.name = name
        self.description = description

    def __repr__(self) -> str:
        return f"<AgentTool {self.name!r} of {self._agent!r}>"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        worker = copy_agent(self._agent)
        task = arguments["task"]
        if context.delegate is None:
            async with worker:
                return self._read(await worker.run(task))
        return self._read(await context.delegate(worker, f"{self.name}-{context.call_id}", task))

    def _read(self, result: RunResult) -> ToolResult:
        usage: JsonObject = {"usage": to_builtins(result.usage), "rounds": result.rounds}
        if result.success:
            return ToolResult(content=result.text, metadata=usage)
        reason = "it was stopped" if result.error is None else str(result.error)
        return ToolResult(ok=False, error=f"{self.name} failed: {reason}", metadata=usage)


def copy_agent(agent: Robota) -> Robota:
    """Another agent made like this one, without its conversation."""
    copy = type(agent)(
        agent.provider,
        tools=agent.tools,
        system_message=agent.system_message,
        plugins=[plugin.for_child(agent.config.name) or plugin for plugin in agent.plugins],
        max_rounds=agent.max_rounds,
        limits=agent.limits,
        config=agent.config,
    )
    copy.using = agent.using
    return copy


async def run_worker(agent: Robota, worker: Robota, agent_id: str, task: str) -> RunResult:
    """Let the worker do its task as a part of the agent's run, and close it."""
    events, state = agent.events, agent.run_state
    execution = "" if state is None else state.execution_id

    def pass_on(event: TurnEvent) -> None:
        seq = events.seq if is_only_shown(event) else events.next_seq()
        inner: object = event
        events.emit(SubagentEvent(agent_id=agent_id, inner=inner, execution_id=execution, seq=seq))  # type: ignore[arg-type]

    own, stop = worker.plugins, worker.events.on(TurnEvent, pass_on)
    worker.plugins = (*own, *plugins_for_child(agent.plugins, agent_id))
    try:
        async with worker:
            return await worker.run(task)
    finally:
        stop()
        worker.plugins = own
