"""What robota itself tells a model: the texts that come with it. They are public and hold no secret, so
nobody has to search them for one at the start of every session."""

from __future__ import annotations

_texts: dict[str, None] = {}


def own_words(text: str) -> str:
    """Note a text that comes with robota and stands between other texts as a whole. It is returned."""
    _texts[text] = None
    return text


def known_own_words() -> tuple[str, ...]:
    """Those that were used so far."""
    return tuple(_texts)
