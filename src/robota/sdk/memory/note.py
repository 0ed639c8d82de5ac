"""One note: a line of a memory file, `- [2026-11-16] (project/tests) Run them with two workers.`"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.errors import ValidationError
from robota.core.given import suggest

NoteType: TypeAlias = Literal["user", "feedback", "project", "reference"]
TYPES: tuple[NoteType, ...] = get_args(NoteType)
GENERAL = "general"
MAX_TEXT = 240
MAX_TOPIC = 80
_LINE = lazy_pattern(r"- \[(\d{4}-\d{2}-\d{2})\] \(([a-z]+)/([^)]+)\) (.+)")
_NOT_SLUG = lazy_pattern(r"[^\w]+", re.UNICODE)


class Note(Struct, frozen=True, kw_only=True):
    date: str
    """Such as 2026-11-16."""
    type: NoteType = "project"
    topic: str = GENERAL
    text: str

    @property
    def line(self) -> str:
        return f"- [{self.date}] ({self.type}/{self.topic}) {self.text}"


def read_note(line: str) -> Note | None:
    """The note that a line is; `None` for anything else that people write into their files."""
    found = _LINE.fullmatch(line.strip())
    if found is None:
        return None
    kind = next((each for each in TYPES if each == found[2]), None)
    return None if kind is None else Note(date=found[1], type=kind, topic=found[3], text=found[4])


def make_slug(topic: str) -> str:
    """The name of a topic as its file has it: lower case, words joined by hyphens."""
    plain = unicodedata.normalize("NFC", topic).casefold().replace("_", "-")
    return _NOT_SLUG.sub("-", plain).strip("-")[:MAX_TOPIC].strip("-") or GENERAL


def require_type(type: str) -> NoteType:
    found = next((each for each in TYPES if each == type), None)
    if found is None:
        raise ValidationError(f"There is no type of note {type!r}; {suggest(type, TYPES)}")
    return found


def clean_text(text: str) -> str:
    """One line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 1].rstrip()}…"


def normalise(text: str) -> str:
    """What two notes have in common that say the same: letters and digits, in any case."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))
