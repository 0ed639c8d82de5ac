"""The parts of a session's system prompt, from what its project's files say and what it is made of."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from robota.core.permissions.modes import PermissionMode
from robota.core.ports import Ports, timestamp
from robota.core.provider import NativeWebTools
from robota.core.tool import Tool
from robota.sdk.commands.command_tools import PREFIX
from robota.sdk.context.system_prompt import Listed, PromptParts, PromptSection
from robota.sdk.project import Project
from robota.sdk.skills.tool import list_for_model


def find_parts(
    project: Project,
    tools: Sequence[Tool],
    mode: PermissionMode,
    web_tools: NativeWebTools | None,
    ports: Ports,
    **more: Any,
) -> PromptParts:
    """`more` are parts that whoever makes the session knows."""
    return PromptParts(
        places=project.places,
        platform=sys.platform,
        date=timestamp(ports.now()).date().isoformat(),
        project=project.context.project,
        git=project.context.has_repository,
        permission_mode=mode,
        instructions=project.context.files,
        skills=list_for_model(project.skills),
        web_search=web_tools is not None and bool(web_tools.web_search),
        **list_tools(tools),
        **more,
    )


def list_tools(tools: Iterable[Tool]) -> dict[str, Any]:
    """What the model may call: names alone, because a request describes the tools; commands in a list of
    their own."""
    given = tuple(tools)
    commands = tuple(
        Listed(tool.name, tool.description.partition("\n")[0])
        for tool in given
        if tool.name.startswith(PREFIX)
    )
    names = tuple(tool.name for tool in given if not tool.name.startswith(PREFIX))
    return {"tools": names, "commands": commands}


def add_section(text: str | None) -> tuple[PromptSection, ...]:
    """What a program adds to the prompt."""
    return (PromptSection("Further Instructions", text),) if text else ()
