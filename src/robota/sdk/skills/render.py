"""A skill as the model gets it: arguments put in, the output of its commands in the place of them.

Commands are found in the file as it is written: neither arguments nor outputs can bring new ones in, and no
output is read again. In files of the `.claude` format arguments are split as a shell would, also inside
commands, and what is missing stays as it is; in those under `.robota` they are split at blanks, commands get
none, and what is missing is empty.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.sdk.skills.skill import Skill, SkillError

RunShell: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs a command and gives its output; raises `SkillError` when it may not run, or fails."""
_COMMAND = lazy_pattern(
    r"^```!(?P<info>[ \t]*)\n(?P<script>.*?)^```[ \t]*$|(?:^|(?<=\s))!`(?P<line>[^`\n]+)`",
    re.MULTILINE | re.DOTALL,
)
NO_SHELL = "[not run: commands in skills are switched off by the setting disableSkillShellExecution]"


def find_commands(text: str) -> list[str]:
    """The commands that a skill with this text would run, as they are written."""
    if "!`" not in text and "```!" not in text:  # most have none, and there may be thousands
        return []
    return [(found["line"] or found["script"]).strip() for found in _COMMAND.finditer(text)]


class Surroundings(Struct, frozen=True, kw_only=True):
    """What a skill may mention besides its arguments."""

    session_id: str = ""
    project: str = ""
    home: str = ""
    model: str = ""
    effort: str = ""

    def variables(self, skill: Skill) -> dict[str, str]:
        return {
            "CLAUDE_SESSION_ID": self.session_id,
            "CLAUDE_EFFORT": self.effort,
            "CLAUDE_MODEL": self.model,
            "CLAUDE_SKILL_DIR": skill.directory,
            "CLAUDE_PROJECT_DIR": self.project,
            "PROJECT_DIR": self.project,
            "USER_HOME": self.home,
            **skill.variables,
        }


class _Substitution:
    """Puts arguments and variables into texts, and remembers whether any argument was asked for."""

    def __init__(self, skill: Skill, args: str, surroundings: Surroundings) -> None:
        self._args = args
        self._strict = skill.dialect == "robota"
        self._words = args.split() if self._strict else _split(args)
        self._named = dict(enumerate(skill.arguments))
        self._variables = surroundings.variables(skill)
        names = "|".join(map(re.escape, sorted(skill.arguments, key=len, reverse=True)))
        self._pattern = re.compile(
            r"(?P<escape>\\)?\$(?:ARGUMENTS(?:\[(?P<at>\d+)\]|(?!\w))|(?P<number>\d+)(?![\w\[])"
            r"|\{(?P<variable>\w+)\}" + (rf"|(?P<name>{names})(?!\w))" if names else ")")
        )
        self.used = False

    def apply(self, text: str, *, arguments: bool = True) -> str:
        def fill(found: re.Match[str]) -> str:
            if found["escape"]:
                return found[0][1:]
            if found["variable"]:
                return self._variables.get(found["variable"], found[0])
            return self._fill_argument(found) if arguments else found[0]

        return self._pattern.sub(fill, text)

    def _fill_argument(self, found: re.Match[str]) -> str:
        parts = found.groupdict()
        self.used = True
        if parts.get("name"):
            at = next(at for at, name in self._named.items() if name == parts["name"])
            return self._words[at] if at < len(self._words) else ""
        number = parts["at"] or parts["number"]
        if number is None:
            return self._args
        at = int(number)
        if at < len(self._words):
            return self._words[at]
        return "" if self._strict and len(number) == 1 else found[0]


def _split(args: str) -> list[str]:
    try:
        return shlex.split(args)
    except ValueError:  # an apostrophe, not a quotation
        return args.split()


async def render_skill(skill: Skill, args: str, surroundings: Surroundings, run: RunShell) -> str:
    """The instructions of a skill for these arguments."""
    body = skill.read_body(as_found=True)
    substitution = _Substitution(skill, args, surroundings)
    if not skill.trusted and find_commands(body):
        raise SkillError(
            f"The skill {skill.name!r} runs commands, and this project is not trusted: nothing was run "
            "or sent. Trust the project first."
        )
    rendered, end = [], 0
    for found in _COMMAND.finditer(body):
        command = (found["line"] or found["script"]).strip()
        rendered.append(substitution.apply(body[end : found.start()]))
        end = found.end()
        if command:
            rendered.append(await run(substitution.apply(command, arguments=skill.dialect != "robota")))
    rendered.append(substitution.apply(body[end:]))
    text = "".join(rendered).strip()
    if args and not substitution.used and skill.dialect != "robota":
        text = f"{text}\n\nARGUMENTS: {args}"
    return text


def make_prompt(skill: Skill, text: str, args: str) -> str:
    """What the model is told: the instructions, and what to do with them."""
    task = args or skill.description
    if not text:
        return f'Use the "{skill.name}" skill: {task}'
    instructions = f"{_say_where(skill)}{text}"
    return (
        f'<skill name="{skill.name}">\n{instructions}\n</skill>\n\nExecute the "{skill.name}" skill: {task}'
    )


def _say_where(skill: Skill) -> str:
    """Where the other files of the skill are, if it has some."""
    if skill.is_command or not any(
        name != os.path.basename(skill.path) for name in os.listdir(skill.directory)
    ):
        return ""
    return f"The files of this skill are in {skill.directory}\n\n"
