"""The commands that files and servers of a session bring: those that there are, and those that will be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.registry import CommandRegistry
from robota.sdk.commands.skill_source import SkillCommandSource
from robota.sdk.mcp.prompts import McpPromptSource

if TYPE_CHECKING:
    from robota.sdk.assembly import Assembly


def add_sources(commands: CommandRegistry, assembly: Assembly) -> None:
    """Once, when the session is made."""
    skills = SkillCommandSource(assembly.project.places, assembly.project.skills)
    commands.add_source(skills)
    assembly.live.listeners.append(lambda project: skills.reload(project.skills))
    commands.add_source(McpPromptSource(assembly.kit.servers))
