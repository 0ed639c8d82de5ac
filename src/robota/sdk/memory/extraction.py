"""What a user asks to remember, found in the words of a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.sdk.memory.note import GENERAL, NoteType, clean_text, normalise

_SENTENCE = lazy_pattern(r"[^.!?。\n]*(?:[.!?](?=\S)[^.!?。\n]*)*[.!?。\n]?")
"""A full stop inside a word, as in a file's name, ends nothing."""
_CUES = (
    (lazy_pattern(r"\bremember (?:that|to)\s+(.+)", re.IGNORECASE | re.DOTALL), 0.9),
    (lazy_pattern(r"기억해\s*(?:줘|주세요|둬|두세요)?\s*[:：,]\s*(.+)", re.DOTALL), 0.9),
    (
        lazy_pattern(r"(.+?)(?:라는 것을|다는 것을|는 것을|라고|다고|[을를])?\s*(?:꼭\s*)?기억해", re.DOTALL),
        0.9,
    ),
    (lazy_pattern(r"((?:앞으로는?|항상|언제나)\s+.+)", re.DOTALL), 0.75),
)
_TYPES: tuple[tuple[NoteType, str], ...] = (
    ("reference", r"https?://"),
    ("feedback", r"\b(?:always|never|don't|do not|stop|instead)\b|항상|언제나|앞으로|마세요|마라"),
    ("user", r"^(?:i|i'm|my|we|our)\b|^(?:나는|저는|내|제)\s"),
)


class Candidate(Struct, frozen=True, kw_only=True):
    id: str
    text: str
    type: NoteType
    topic: str = GENERAL
    confidence: float


def find_candidates(words: str) -> Iterator[Candidate]:
    """One for each sentence that asks for it."""
    seen: set[str] = set()
    for sentence in _SENTENCE.findall(words):
        for cue, confidence in _CUES:
            found = cue.search(sentence)
            text = clean_text(found[1]).strip(" .!?。,:：") if found is not None else ""
            if len(normalise(text)) < 2:
                continue
            id = make_id(text)
            if id not in seen:
                seen.add(id)
                yield Candidate(id=id, text=text, type=guess_type(text), confidence=confidence)
            break


def make_id(text: str) -> str:
    """The same for the same words, so that nothing waits twice."""
    from hashlib import sha256  # noqa: PLC0415 - loads OpenSSL, for those who ask to remember something

    return f"mem_{sha256(normalise(text).encode()).hexdigest()[:12]}"


def guess_type(text: str) -> NoteType:
    return next((type for type, cue in _TYPES if re.search(cue, text, re.IGNORECASE)), "project")
