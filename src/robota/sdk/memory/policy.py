"""What becomes of something worth remembering: saved, kept for somebody's consent, or passed over."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from robota._lazy_pattern import lazy_pattern

MemoryMode: TypeAlias = Literal["disabled", "approval_required", "auto_save"]
Verdict: TypeAlias = Literal["save", "queue", "skip"]
SURE = 0.85
"""The confidence from which on something is saved without a question."""
_SECRET_WORDS = lazy_pattern(
    r"\b(?:pass(?:word|phrase|wd)|api[ _-]?key|secret|token|credentials?|pin)\b\s*(?:is|=|:|are)\s*\S"
    r"|(?:비밀번호|암호|토큰)\s*(?:는|은|:|=)\s*\S",
    re.IGNORECASE,
)
_SOCIAL_SECURITY = lazy_pattern(r"\b\d{3}-\d{2}-\d{4}\b|\b\d{6}-[1-4]\d{6}\b")
_CARD = lazy_pattern(r"\b(?:\d[ -]?){12,18}\d\b")


def decide(mode: MemoryMode, confidence: float, *, sensitive: bool) -> Verdict:
    if mode == "disabled" or sensitive:
        return "skip"
    return "save" if mode == "auto_save" and confidence >= SURE else "queue"


def is_sensitive(text: str, redact: Callable[[str], str]) -> bool:
    """Whether it holds what must not lie in a file of the project: keys, passwords, numbers of people."""
    if redact(text) != text or _SECRET_WORDS.search(text) or _SOCIAL_SECURITY.search(text):
        return True
    return any(_is_card(re.sub(r"\D", "", found)) for found in _CARD.findall(text))


def _is_card(digits: str) -> bool:
    doubled = [int(digit) * (2 if at % 2 else 1) for at, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0
