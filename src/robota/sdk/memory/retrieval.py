"""Which topics belong to a prompt: those whose name or notes share words with it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

MAX_TOPICS = 5
MAX_CHARACTERS = 2_000
_NAME_HIT, _CONTENT_HIT = 4, 1
_MIN_WORD = 3


class Recalled(Struct, frozen=True):
    topic: str
    text: str
    score: int


def recall(words: str, topics: Iterable[tuple[str, str]]) -> list[Recalled]:
    """The topics, given by name and content, that fit best, cut to what a prompt may carry."""
    wanted = {word for word in re.findall(r"\w+", words.casefold()) if len(word) >= _MIN_WORD}
    scored = [Recalled(topic, text, _score(wanted, topic, text.casefold())) for topic, text in topics]
    best = sorted((each for each in scored if each.score), key=lambda each: (-each.score, each.topic))
    room, chosen = MAX_CHARACTERS, []
    for each in best[:MAX_TOPICS]:
        text = _cut(each.text.strip(), room)
        if text:
            chosen.append(Recalled(each.topic, text, each.score))
            room -= len(text)
    return chosen


def _score(wanted: set[str], topic: str, content: str) -> int:
    return sum(_NAME_HIT * (word in topic) + _CONTENT_HIT * (word in content) for word in wanted)


def _cut(text: str, room: int) -> str:
    """The last lines that fit, for the newest notes are at the end; the heading goes first."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("# ")]
    while lines and len("\n".join(lines)) > room:
        del lines[0]
    return "\n".join(lines)
