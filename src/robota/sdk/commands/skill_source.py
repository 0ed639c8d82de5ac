"""`SkillCommandSource`: skills as commands, by their names behind a slash."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from robota.sdk.commands.effects import CommandResult
from robota.sdk.commands.registry import Command
from robota.sdk.places import Places, find_places
from robota.sdk.skills.loader import load_skills
from robota.sdk.skills.skill import Skill, Skills

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


class SkillCommandSource:
    """The skills of somebody who works in a directory, looked for once; `skills` are those found already.
    Those of plugins are the business of `PluginCommandSource`."""

    name = "skills"

    def __init__(self, where: str | os.PathLike[str] | Places, skills: Skills | None = None) -> None:
        self._places = where if isinstance(where, Places) else find_places(where)
        self._skills = skills
        self._commands: tuple[Command, ...] | None = None

    @property
    def skills(self) -> Skills:
        if self._skills is None:
            self._skills = load_skills(self._places)
        return self._skills

    def reload(self, skills: Skills | None = None) -> None:
        """Take other skills, or look for them again."""
        self._skills = skills
        self._commands = None

    def commands(self) -> Iterable[Command]:
        if self._commands is None:
            also: dict[str, list[str]] = {}
            for alias, name in self.skills.aliases.items():
                also.setdefault(name, []).append(alias)
            self._commands = tuple(
                make_command(skill, tuple(also.get(skill.name, ())))
                for skill in self.skills
                if not skill.plugin
            )
        return self._commands


def make_command(skill: Skill, aliases: tuple[str, ...] = ()) -> Command:
    """The skill as something to be typed."""
    return Command(
        name=skill.name,
        aliases=aliases,
        description=f"({skill.plugin}) {skill.description}" if skill.plugin else skill.description,
        source="plugin" if skill.plugin else "skill",
        execute=partial(_call, skill),
        argument_hint=skill.argument_hint,
        disable_model_invocation=not skill.for_model,
        user_invocable=skill.for_user,
    )


async def _call(skill: Skill, host: InteractiveSession, args: str) -> CommandResult:
    return await host.kit.skills.call(skill, args)
