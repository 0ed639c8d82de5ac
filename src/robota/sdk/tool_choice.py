"""Which tools a session offers: those that were asked for, without those that nobody may call."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError, UnknownNameError
from robota.core.given import suggest
from robota.core.tool import Tool

if TYPE_CHECKING:
    from robota.sdk.agents.definition import AgentDefinition


def find_main_agent(agents: Mapping[str, AgentDefinition], name: str | None) -> AgentDefinition | None:
    """The agent that the session itself works as."""
    if name is None:
        return None
    if name not in agents:
        raise ConfigurationError(f"There is no agent {name!r}; {suggest(name, agents)}")
    return agents[name]


class ToolChoice:
    """What was asked for: `names` of built-in tools, `deny` rules, the agent that the session works as."""

    __slots__ = ("_agent", "_denied", "_names")

    def __init__(
        self, names: Collection[str] | None, deny: Iterable[str], agent: AgentDefinition | None
    ) -> None:
        self._names = names
        self._denied = [rule for rule in deny if "(" not in rule]
        self._agent = agent

    def pick(self, built_in: list[Tool], others: Iterable[Tool] = ()) -> list[Tool]:
        """Those that are offered."""
        tools = [*self._pick_named(built_in), *others]
        if self._agent is not None:
            from robota.sdk.agents.subagent import select_tools  # noqa: PLC0415 - few sessions are an agent

            tools = select_tools(self._agent, tools)
        return [tool for tool in tools if not self._denies(tool.name)] if self._denied else tools

    def _pick_named(self, tools: list[Tool]) -> list[Tool]:
        if self._names is None:
            return tools
        from robota.core.permissions.rules import find_unknown_tool  # noqa: PLC0415 - few name their tools
        from robota.sdk.agents.definition import OTHER_NAMES  # noqa: PLC0415

        known = [tool.name for tool in tools]
        for name in self._names:
            if name not in known and find_unknown_tool(name, ()) is not None:
                raise UnknownNameError(f"There is no built-in tool {name!r}; {suggest(name, known)}")
        wanted = {OTHER_NAMES.get(name, name) for name in self._names}
        return [tool for tool in tools if tool.name in wanted]

    def accepts(self, name: str) -> bool:
        """Whether a tool of a server is offered."""
        if self._agent is not None:
            from robota.sdk.agents.subagent import has_server_tool  # noqa: PLC0415 - as above

            if not has_server_tool(self._agent, name):
                return False
        return not self._denies(name)

    def _denies(self, name: str) -> bool:
        """Whether a rule denies every call of a tool that each session knows, so that it may be missing."""
        if not self._denied:
            return False
        from robota.core.permissions.rules import Rule, find_unknown_tool  # noqa: PLC0415 - few have some

        names = (name, "Task") if name == "Agent" else (name,)
        denied = any(Rule(rule, rule.strip(), None).names(each) for rule in self._denied for each in names)
        return denied and find_unknown_tool(name, ()) is None
