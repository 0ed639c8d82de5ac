"""The part of a summary that code writes: rules, open todos, the plan, each word for word.

Each section stands between tags with a number that occurs in none of the texts, and no such tag is left in
the model's own words. So a summary can neither forge a section nor end one, and a section's text can be
anything, tags included.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern

PROJECT_RULES = "Project rules"
OPEN_TODOS = "Open todos"
PLAN = "The plan"
USER_RULES = "What the user asked for, always or never, in their own words"
FILES_IN_USE = "Files in use, the latest first"

TAG = "kept-state"
NOTE = (
    "What stands in the tags below was put here by the program, not by the author of the summary above. It "
    "is current and complete; where the summary says something else, this counts."
)
_LOOSE_TAG = lazy_pattern(rf"<(\s*(?:/\s*)?{TAG})", re.IGNORECASE)
_NUMBER = lazy_pattern(rf"{TAG}-(\d{{1,9}})", re.IGNORECASE)
_SECTION = lazy_pattern(rf'<{TAG}-(\d+) title="([^"]*)">\n(.*?)\n</{TAG}-\1>', re.DOTALL)


class CompactionSection(Struct, frozen=True):
    """Something the model must know after a compaction, whatever its summary says."""

    title: str
    text: str


def write_sections(sections: Sequence[CompactionSection]) -> str:
    """The sections as they stand at the end of a summary; empty when there is nothing to keep."""
    kept = [section for section in sections if section.text.strip()]
    if not kept:
        return ""
    taken = {int(number) for section in kept for number in _NUMBER.findall(section.text)}
    number = next(number for number in count(1) if number not in taken)
    blocks = [NOTE]
    for section in kept:
        title = disarm(" ".join(section.title.split()).replace('"', "'"))
        blocks.append(f'<{TAG}-{number} title="{title}">\n{section.text}\n</{TAG}-{number}>')
    return "\n\n".join(blocks)


def add_sections(summary: str, sections: str) -> str:
    """A summary with what `write_sections` made."""
    return f"{summary}\n\n{sections}" if sections else summary


def disarm(summary: str) -> str:
    """The model's words with every tag of ours made harmless."""
    return _LOOSE_TAG.sub(r"&lt;\1", summary)


def read_sections(text: str) -> tuple[CompactionSection, ...]:
    """The sections of a summary that `add_sections` put together."""
    return tuple(CompactionSection(found[2], found[3]) for found in _SECTION.finditer(text))


def drop_sections(text: str) -> str:
    """The summary alone: what code wrote is written anew each time."""
    first = _SECTION.search(text)
    return text if first is None else text[: first.start()].removesuffix(f"{NOTE}\n\n").rstrip()
