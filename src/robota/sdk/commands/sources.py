"""The commands that files and servers of a session bring: those that there are, and those that will be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.bundle.command_source import PluginCommandSource
from robota.sdk.commands.registry import CommandRegistry
from robota.sdk.commands.skill_source import SkillCommandSource
from robota.sdk.mcp.prompts import McpPromptSource

if TYPE_CHECKING:
    from robota.sdk.assembly import Assembly
    from robota.sdk.project import Project


def add_sources(commands: CommandRegistry, assembly: Assembly) -> None:
    """Once, when the session is made."""
    skills, of_plugins = SkillCommandSource(assembly.project.places), PluginCommandSource()

    def offer(project: Project) -> None:
        skills.reload(project.skills)
        of_plugins.reload(project.skills)

    offer(assembly.project)
    commands.add_source(skills)
    commands.add_source(of_plugins)
    assembly.live.listeners.append(offer)
    commands.add_source(McpPromptSource(assembly.kit.servers))
