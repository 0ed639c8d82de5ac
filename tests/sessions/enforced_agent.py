"""A real agent whose tools run under a `PermissionEnforcer`, with people and hooks that remember."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.support.session_options import enforcer_ports

from robota.core.events import ToolEnded
from robota.core.hooks import HookOutcome, parse_hooks, run_hooks
from robota.core.messages import Json, JsonObject, ToolCall, ToolMessage
from robota.core.questions import PermissionQuestion
from robota.core.robota import AgentConfig, Robota
from robota.core.tool import Tool, ToolContext, ToolResult
from robota.sessions.permissions.permission_enforcer import PermissionEnforcer, PermissionRules
from robota.testing import ScriptedProvider
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.files import edit_tool, read_tool, write_tool


class Person:
    """Answers one question after the other, the last answer again and again, and remembers the questions."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[PermissionQuestion] = []

    async def __call__(self, request: PermissionQuestion) -> Any:
        self.asked.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class ConfiguredHooks:
    """Runs configured hooks as a session does, and remembers what they were told."""

    def __init__(self, config: Mapping[str, Json], cwd: Path) -> None:
        self.config = parse_hooks(config)
        self.cwd = str(cwd)
        self.fired: list[tuple[str, Mapping[str, Json]]] = []
        self.outcomes: list[HookOutcome] = []

    def has(self, event: str) -> bool:
        return bool(self.config.get(event))

    async def fire(
        self, event: str, hook_input: Mapping[str, Json], *, call_id: str = "", matches_rule: Any = None
    ) -> HookOutcome:
        self.fired.append((event, hook_input))
        told = {"session_id": "s", "cwd": self.cwd, **hook_input}
        outcome = await run_hooks(self.config, event, told, matches_rule=matches_rule)
        self.outcomes.append(outcome)
        return outcome


class Strict:
    """A tool that leaves it to others to check its arguments."""

    name = "strict"
    description = ""
    parameters: ClassVar[JsonObject] = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(content=f"got {arguments}")


def hook(command: str, matcher: str = "", **more: Json) -> JsonObject:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, "timeout": 30, **more}]}


class EnforcedAgent:
    """Plays replies that call tools; everything that happened can be looked at afterwards."""

    def __init__(
        self,
        cwd: Path,
        *,
        rules: PermissionRules | None = None,
        tools: Sequence[Tool] = (),
        **ports: Any,
    ) -> None:
        self.cwd = cwd
        self.records: list[JsonObject] = []
        self.notices: list[str] = []
        self.ended: list[ToolEnded] = []
        ports = {"record": self.records.append, "notice": self.notices.append, **ports}
        self.enforcer = PermissionEnforcer(
            cwd=str(cwd), **enforcer_ports(rules=rules or PermissionRules(), **ports)
        )
        self.tools = (read_tool(), write_tool(), edit_tool(), bash_tool(), *tools)
        self.agent: Robota | None = None

    def start(self, *replies: ToolCall | Sequence[ToolCall]) -> Robota:
        script = [[reply] if isinstance(reply, ToolCall) else list(reply) for reply in replies]
        config = AgentConfig(cwd=str(self.cwd), run_tool=self.enforcer.run_tool)
        self.agent = Robota(ScriptedProvider(*script, "done"), model="m", tools=self.tools, config=config)
        self.agent.events.on(ToolEnded, self.ended.append)
        return self.agent

    async def run(self, *replies: ToolCall | Sequence[ToolCall]) -> list[str]:
        """What the model got for each call."""
        agent = self.start(*replies)
        await agent.run("go")
        return [message.content for message in agent.messages if isinstance(message, ToolMessage)]
