"""A quick look at a text or an encoded record: can it hold a secret at all?

The gate asks the rules themselves, so it lets through whatever they could match. It costs little because a
rule is asked only where one of its literals stands.
"""

from __future__ import annotations

from functools import lru_cache

from robota.sessions.redaction.scan import RuleSet, Text

_LEAST = 7
_SMALL = 256
_GLANCE = 16 * 1024
"""Longer texts are searched at once."""


def may_hold_secret(text: str, rules: RuleSet) -> bool:
    """False if no rule can find anything in the text."""
    if len(text) < _LEAST:
        return False
    return len(text) > _GLANCE or rules.may_match(Text(text))


def is_plain_record(encoded: bytes, rules: RuleSet) -> bool:
    """Whether encoded JSON cannot hold a secret, seen without decoding it."""
    if len(encoded) <= _SMALL:  # many small records of a session are the same
        return _is_plain_small(encoded, rules)
    return _is_plain(encoded, rules)


def _is_plain(encoded: bytes, rules: RuleSet) -> bool:
    plain = encoded.decode("utf-8", "replace")
    if "\\" in plain:
        if "\\u" in plain or "BEGIN" in plain:  # what looks different when it is decoded
            return False
        plain = plain.replace("\\n", "\n").replace("\\t", "\t").replace("\\", "")
    return not rules.may_match(Text(plain))


_is_plain_small = lru_cache(maxsize=128)(_is_plain)
