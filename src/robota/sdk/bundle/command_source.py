"""`PluginCommandSource`: the skills and commands of plugins, as `plugin:name` behind a slash."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from robota.sdk.commands.registry import Command
from robota.sdk.commands.skill_source import make_command
from robota.sdk.skills.skill import Skill

if TYPE_CHECKING:
    from robota.sdk.bundle.bundle import BundlePlugin


class PluginCommandSource:
    """Brings what people may call of plugins. The short name is enough while no other command has it."""

    name = "plugins"

    def __init__(self, plugins: Iterable[BundlePlugin] = ()) -> None:
        self._commands = tuple(make_command(skill) for plugin in plugins for skill in plugin.skills)

    def reload(self, skills: Iterable[Skill]) -> None:
        """Take other skills; those that no plugin brings are left to others."""
        self._commands = tuple(make_command(skill) for skill in skills if skill.plugin)

    def commands(self) -> Iterable[Command]:
        return self._commands
