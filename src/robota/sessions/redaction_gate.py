"""A quick look at a text or an encoded record: can it hold a secret at all?

The gate asks the rules themselves, so it lets through whatever they could match. It costs little because a
rule is asked only where one of its literals stands.
"""

from __future__ import annotations

import re

from robota.sessions.redaction_scan import RuleSet, Text

_PLURALS = tuple(
    re.compile(f"{first}[_-]?{last}")
    for first, last in (
        ("api", "keys"),
        ("private", "keys"),
        ("secret", "keys"),
        ("access", "tokens"),
        ("refresh", "tokens"),
        ("client", "secrets"),
    )
)
"""Names of fields that hold many secrets; texts have no rule for them."""
_LEAST = 7
_GLANCE = 16 * 1024
"""Longer texts are searched at once."""


def may_hold_secret(text: str, rules: RuleSet) -> bool:
    """False if no rule can find anything in the text."""
    if len(text) < _LEAST:
        return False
    return len(text) > _GLANCE or rules.may_match(Text(text))


def is_plain_record(encoded: bytes, rules: RuleSet) -> bool:
    """Whether encoded JSON cannot hold a secret, seen without decoding it."""
    if len(encoded) > _GLANCE:
        return False
    plain = encoded.decode("utf-8", "replace")
    if "\\" in plain:
        if "\\u" in plain or "BEGIN" in plain:  # what looks different when it is decoded
            return False
        plain = plain.replace("\\n", "\n").replace("\\t", "\t").replace("\\", "")
    text = Text(plain)
    return not any(plural.search(text.lowered) for plural in _PLURALS) and not rules.may_match(text)
