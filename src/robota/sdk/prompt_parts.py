"""The parts of a session's system prompt, from what its project's files say and what it is made of."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from robota.core.permissions.modes import PermissionMode
from robota.core.ports import Ports, timestamp
from robota.core.provider import NativeWebTools
from robota.core.tool import Tool
from robota.sdk.context.system_prompt import PromptParts, PromptSection
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
        permission_mode=mode,
        web_search=web_tools is not None and bool(web_tools.web_search),
        tools=tuple(tool.name for tool in tools),
        **find_project_parts(project),
        **more,
    )


def find_project_parts(project: Project) -> dict[str, Any]:
    """Those that follow from the project's files alone, and change with them."""
    context, settings = project.context, project.settings
    return {
        "language": settings.language or "",
        "project": context.project,
        "instructions": context.files,
        "skills": list_for_model(project.skills),
        "plugins": project.bundles.sections,
        "git": context.has_repository and settings.get("includeGitInstructions"),
        "skill_fraction": settings.get("skillListingBudgetFraction"),
        "skill_characters": settings.get("skillListingMaxDescChars"),
    }


def add_section(text: str | None) -> tuple[PromptSection, ...]:
    """What a program adds to the prompt."""
    return (PromptSection("Further Instructions", text),) if text else ()
