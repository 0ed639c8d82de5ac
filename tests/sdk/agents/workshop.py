"""A session on real files whose model may start subagents, with a scripted provider behind both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.sessions.live_session import Studio

from robota.core.events import SubagentEvent, ToolEnded
from robota.core.tool import Tool
from robota.sdk.agents.definition import BUILT_IN_AGENTS, AgentDefinition
from robota.sdk.agents.runner import Subagents
from robota.sdk.agents.tool import SubagentTool
from robota.testing import call
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.files import edit_tool, read_tool, write_tool
from robota.tools.builtins.plan import todo_tool


def define(name: str = "worker", **fields: Any) -> AgentDefinition:
    return AgentDefinition(
        **{"name": name, "description": f"Does {name}.", "system_prompt": "Work.", **fields}
    )


def start(prompt: str = "go", **arguments: Any) -> Any:
    return call("Agent", prompt=prompt, **arguments)


class Workshop(Studio):
    """Everything that is not said by a reply of the parent is said by a subagent: the script is one."""

    def __init__(
        self,
        home: Path,
        *replies: Any,
        agents: Sequence[AgentDefinition] = (),
        more_tools: Sequence[Tool] = (),
        subagents: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        defined = {**BUILT_IN_AGENTS, **{agent.name: agent for agent in agents}}
        self.subagents = Subagents(defined, **(subagents or {}))
        tools = (
            read_tool(), write_tool(), edit_tool(), bash_tool(sandbox="off"), todo_tool(),
            SubagentTool(self.subagents), *more_tools,
        )  # fmt: skip
        super().__init__(home, *replies, tools=tools, **options)
        self.subagents.attach(self.session)

    @property
    def result(self) -> ToolEnded:
        """Of the first call of the parent."""
        return self.told(ToolEnded)[0]

    def inner(self, kind: type) -> list[Any]:
        return [event.inner for event in self.told(SubagentEvent) if isinstance(event.inner, kind)]
