"""The system prompt, made of typed parts: the same parts give the same words, and nothing else is looked at.

What stays the same from session to session comes first, so that a provider's cache of prompts can serve it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache

from msgspec import Struct

from robota.core.context import BYTES_PER_TOKEN
from robota.core.jsontext import encode
from robota.core.permissions.modes import PermissionMode
from robota.sdk.context.instructions import InstructionFile
from robota.sdk.context.nested import quote_instructions
from robota.sdk.context.project import ProjectFacts
from robota.sdk.places import Places
from robota.tools.function_tool import text_beside

SKILL_DESCRIPTION_CHARACTERS = 1_536
"""The default of `skillListingMaxDescChars`."""
SKILL_LISTING_FRACTION = 0.01
"""The default of `skillListingBudgetFraction`: the part of the window that the list of skills may take."""
LEAST_LISTING = 8_000
"""Characters that it may have however small the window is."""
_role, _git, _web_search = (cache(text_beside(__file__, part)) for part in range(3))
_LANGUAGES = {
    "ko": "Korean", "en": "English", "ja": "Japanese", "zh": "Chinese", "de": "German", "fr": "French",
    "es": "Spanish", "pt": "Portuguese", "it": "Italian", "ru": "Russian",
}  # fmt: skip
_MODES: dict[PermissionMode, str] = {
    "plan": "You may read and search, and nothing else: changes and commands are refused. Work out a plan "
    "and present it.",
    "default": "Reading needs no question. Before a change or a command runs, the user is asked, unless a "
    "rule allows it.",
    "acceptEdits": "Files in the workspace are changed without a question. Before a command runs, the user "
    "is asked, unless a rule allows it.",
    "bypassPermissions": "Tools run without a question, unless a rule denies them. Nobody looks before you "
    "act, so take care.",
}


class Listed(Struct, frozen=True):
    """Something that the model may call, in one line."""

    name: str
    description: str = ""


class PromptSection(Struct, frozen=True):
    """A part of the prompt under its heading."""

    name: str
    text: str

    @property
    def tokens(self) -> int:
        """About as many as it takes in a request."""
        return math.ceil(len(encode(self.text)) / BYTES_PER_TOKEN)


class SystemPrompt(Struct, frozen=True):
    """The parts in their order."""

    sections: tuple[PromptSection, ...]

    @property
    def text(self) -> str:
        if not self.sections:
            return ""
        first, *rest = self.sections
        return "\n\n".join((first.text, *(f"## {section.name}\n{section.text}" for section in rest)))


class PromptParts(Struct, frozen=True, kw_only=True):
    """All that the system prompt depends on."""

    places: Places
    additional_dirs: Sequence[str] = ()
    platform: str = ""
    date: str = ""
    """As it is written, such as 2026-11-16."""
    role: str = ""
    """Takes the place of the one that comes with robota."""
    whole: str | None = None
    """Takes the place of everything but the additions; an empty text leaves them alone."""
    language: str = ""
    """A code such as `ko`, or the name of a language."""
    project: ProjectFacts = ProjectFacts()
    permission_mode: PermissionMode = "default"
    instructions: Sequence[InstructionFile] = ()
    memory: str = ""
    web_search: bool = False
    """The model's service searches the web itself."""
    git: bool = False
    """Say how to work with git (`includeGitInstructions`)."""
    tools: Sequence[str] = ()
    skills: Sequence[Listed] = ()
    context_window: int = 200_000
    skill_fraction: float = SKILL_LISTING_FRACTION
    skill_characters: int = SKILL_DESCRIPTION_CHARACTERS
    plugins: Sequence[PromptSection] = ()
    """What bundle plugins add."""
    additions: Sequence[PromptSection] = ()
    """Of whoever makes the session."""


def build_system_prompt(parts: PromptParts) -> SystemPrompt:
    """The system prompt; sections without a text are left out."""
    if parts.whole is not None:
        role = (PromptSection("Role", parts.whole),) if parts.whole else ()
        return SystemPrompt((*role, *parts.additions))
    by_kind = {"agents": "Agent Instructions", "notes": "Project Notes", "rule": "Project Notes"}
    told = {
        name: [file for file in parts.instructions if by_kind[file.kind] == name] for name in by_kind.values()
    }
    budget = max(LEAST_LISTING, int(parts.context_window * parts.skill_fraction * BYTES_PER_TOKEN))
    sections = [
        PromptSection("Role", _describe_role(parts)),
        PromptSection("Git", _git() if parts.git else ""),
        PromptSection("Working Directory", _describe_place(parts)),
        PromptSection("Current Project", _describe_project(parts.project)),
        PromptSection("Permission Mode", f"{parts.permission_mode}: {_MODES[parts.permission_mode]}"),
        *(PromptSection(name, _quote_all(files, parts.places)) for name, files in told.items()),
        PromptSection("Memory", parts.memory.strip()),
        PromptSection("Web Search", _web_search() if parts.web_search else ""),
        PromptSection("Available Tools", ", ".join(parts.tools)),
        PromptSection("Skills", _list_within(parts.skills, budget, parts.skill_characters, _SKILLS)),
        *parts.plugins,
        *parts.additions,
    ]
    return SystemPrompt(tuple(section for section in sections if section.text))


_SKILLS = (
    "Instructions for certain tasks. When one fits what the user wants, call it with the Skill tool first:"
)


def _describe_role(parts: PromptParts) -> str:
    role = parts.role.strip() or _role()
    if not parts.language:
        return role
    language = _LANGUAGES.get(parts.language.lower().partition("-")[0], parts.language)
    return (
        f"{role}\n\nAlways answer in {language}, whatever language files and tools use. Code stays as it is."
    )


def _describe_place(parts: PromptParts) -> str:
    facts = [
        parts.places.cwd,
        f"Further directories of the workspace: {', '.join(parts.additional_dirs)}"
        if parts.additional_dirs
        else "",
        f"Platform: {parts.platform}" if parts.platform else "",
        f"Date when the session began: {parts.date}" if parts.date else "",
    ]
    return "\n".join(filter(None, facts))


def _describe_project(project: ProjectFacts) -> str:
    facts = {
        "Name": project.name,
        "Type": project.type,
        "Language": project.language if project.language != project.type else "",
        "Package manager": project.package_manager,
    }
    if project.type == "unknown":
        return ""
    return "\n".join(f"{name}: {value}" for name, value in facts.items() if value)


def _quote_all(files: Iterable[InstructionFile], places: Places) -> str:
    """Instructions with where they come from: the nearer to the working directory, the more they count."""
    return "\n\n".join(quote_instructions(places.shown(file.path), file.text) for file in files)


def _list_within(items: Sequence[Listed], budget: int, longest: int, opening: str) -> str:
    """One line each. If they do not fit, descriptions get shorter, all alike, and then names are left out."""
    if not items:
        return ""
    names = sum(len(item.name) + 5 for item in items)
    room = max((budget - names) // len(items), 0)
    texts = [" ".join(item.description.split()) for item in items]
    if names + sum(min(len(text), longest) for text in texts) > budget:
        longest = min(longest, room)
    lines, size = [opening], 0
    for number, (item, text) in enumerate(zip(items, texts, strict=True)):
        line = f"- {item.name}: {_cut(text, longest)}" if text and longest > 1 else f"- {item.name}"
        size += len(line)
        if size > budget:
            lines.append(f"- and {len(items) - number} more, which are not listed for want of room")
            break
        lines.append(line)
    return "\n".join(lines)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
