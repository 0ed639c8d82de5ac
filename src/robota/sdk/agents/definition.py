"""What an agent is that others may give tasks to, and the three that are always there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field

from robota.core.errors import ConfigurationError
from robota.core.given import require_texts
from robota.core.hooks.definition import HooksConfig
from robota.core.messages import Json
from robota.core.permissions.modes import PermissionMode
from robota.core.permissions.rules import check_rules
from robota.core.permissions.subjects import WRITING_TOOLS

Isolation: TypeAlias = Literal["none", "worktree"]
AgentScope: TypeAlias = Literal["built-in", "project", "user", "plugin"]
Memory: TypeAlias = Literal["", "user", "project", "local"]

DEFAULT_AGENT = "general-purpose"
OTHER_NAMES = {
    "MultiEdit": "Edit",
    "LS": "Glob",
    "NotebookRead": "Read",
    "KillShell": "KillBash",
    "TaskOutput": "BashOutput",
    "TaskStop": "KillBash",
    "Task": "Agent",
}
"""Tools that files written for other programs name, and the one here that does the same."""


class AgentDefinition(Struct, frozen=True, kw_only=True):
    """One agent. What it does not say, it has from the session that calls it."""

    name: str
    description: str
    """By which a model chooses it."""
    system_prompt: str
    model: str = ""
    """An id, or one of the shortcuts `sonnet`, `haiku` and `opus`."""
    max_turns: int = 0
    """Model calls per task; 0 for no limit of its own."""
    tools: tuple[str, ...] | None = None
    """The only tools it has; `None` for all."""
    disallowed_tools: tuple[str, ...] = ()
    """Tools it does not have; with a pattern, such as `Bash(rm *)`, calls that are refused."""
    asked_tools: tuple[str, ...] = ()
    """Tools whose every call is asked about, such as those of which its file denies what nobody can read."""
    permission_mode: PermissionMode | None = None
    """Counts besides that of the session: the stricter one decides."""
    skills: tuple[str, ...] = ()
    """Whose text is part of its instructions."""
    background: bool = False
    isolation: Isolation = "none"
    effort: str = ""
    memory: Memory = ""
    """Where it keeps notes from one task to the next."""
    hooks: HooksConfig = field(default_factory=dict)
    """Which run as long as it works."""
    servers: tuple[str, ...] = ()
    """MCP servers of the session whose tools it has, also those that others have to search for."""
    own_servers: Mapping[str, Json] = field(default_factory=dict)
    """MCP servers, as `.mcp.json` has them, that are connected as long as it works."""
    source: str = ""
    """Its file; empty for one that is built in."""
    scope: AgentScope = "built-in"

    def __post_init__(self) -> None:
        for place in ("tools", "disallowed_tools", "asked_tools"):
            for wrong in check_rules(require_texts(f"AgentDefinition.{place}", getattr(self, place) or ())):
                raise ConfigurationError(f"AgentDefinition.{place} has {wrong.text!r}: {wrong.reason}.")

    @property
    def plugin(self) -> str:
        """The plugin that brought it along."""
        return self.name.partition(":")[0] if self.scope == "plugin" else ""

    @property
    def is_claude(self) -> bool:
        """Whether its file was written for another program."""
        return self.scope == "plugin" or f"{os.sep}.claude{os.sep}" in self.source

    @property
    def is_read_only(self) -> bool:
        """Whether it has no tool of ours that changes files, so that it may work while a plan is made."""
        if self.tools is None or "*" in self.tools:
            return {"Write", "Edit"} <= set(self.disallowed_tools)
        offered = {name.partition("(")[0] for name in self.tools}
        return WRITING_TOOLS.isdisjoint(offered - set(self.disallowed_tools))


_GENERAL = """\
You work on a task that another agent hands to you. Do all of it, and nothing that was not asked for. Look
at the project before you change it: search broadly when you do not know where something is, and read what
you are about to edit. Prefer changing files that exist to making new ones, and write no documentation
unless the task wants it."""

_EXPLORE = """\
You find things out about a code base. You change nothing: no file is made, edited or removed, and commands
are for looking only. Begin with broad searches, narrow them down, and read the parts of files that matter.
Run searches that do not depend on each other at the same time. Report what you found with absolute paths
and line numbers, say how sure you are, and name what you looked for and did not find."""

_PLAN = """\
You work out how something should be done, and change nothing on the way: no file is made, edited or
removed. Read the code that the task touches until you know how it works and what depends on it. Then give
the steps in order, each with the files it concerns, the decisions that somebody has to take, with your
proposal, the risks, and how to check that the work is done. End with the files that matter most."""

BUILT_IN_AGENTS: Mapping[str, AgentDefinition] = {
    agent.name: agent
    for agent in (
        AgentDefinition(
            name=DEFAULT_AGENT,
            description="Works on a task of several steps by itself, with all tools there are.",
            system_prompt=_GENERAL,
        ),
        AgentDefinition(
            name="Explore",
            description="Finds files, definitions and connections in a code base quickly; changes nothing.",
            system_prompt=_EXPLORE,
            model="claude-haiku-4-5",
            disallowed_tools=("Write", "Edit"),
        ),
        AgentDefinition(
            name="Plan",
            description="Studies the code and works out a plan, step by step; changes nothing.",
            system_prompt=_PLAN,
            disallowed_tools=("Write", "Edit"),
        ),
    )
}
