"""What the files of the project and its user bring: skills, agents, hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.plain_text import strip_controls
from robota.sdk.commands.effects import CommandResult

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

WIDTH = 100
"""Characters of a description."""


def skills(host: InteractiveSession, args: str) -> CommandResult:
    found = [each for each in host.commands.commands(args.strip()) if each.source != "builtin"]
    lines = [_line(f"/{each.name} {each.argument_hint}".rstrip(), each.description) for each in found]
    return _list("Skills", lines, "There are no skills here: .robota/skills/NAME/SKILL.md would be one.")


def agents(host: InteractiveSession, args: str) -> CommandResult:
    shown = host.project.places.shown
    lines = [
        _line(f"{each.name} ({shown(each.source) if each.source else each.scope})", each.description)
        for each in host.project.agents.definitions.values()
    ]
    return _list("Agents", lines, "There are no agents here.")


def hooks(host: InteractiveSession, args: str) -> CommandResult:
    lines = [
        _line(f"{event}{f' ({group.matcher})' if group.matcher else ''}", f"{hook.type} {hook.label}")
        for event, groups in host.project.settings.hooks.items()
        for group in groups
        for hook in group.hooks
    ]
    return _list("Hooks", lines, "There are no hooks here.")


def _line(name: str, text: str) -> str:
    words = " ".join(strip_controls(text).split())
    return f"  {strip_controls(name)}: {words if len(words) <= WIDTH else words[: WIDTH - 1] + '…'}"


def _list(title: str, lines: list[str], nothing: str) -> CommandResult:
    return CommandResult("\n".join([f"{title}:", *lines]) if lines else nothing)
