"""A quick look at a text or a JSON record: can it hold a secret at all?

The gate must let through whatever any rule could match; letting through more only costs time.
"""

from __future__ import annotations

import re

from robota.sessions.redaction_named import NEXT, STEMS
from robota.sessions.redaction_names import TRAILERS
from robota.sessions.redaction_scan import find_runs, has_runs
from robota.sessions.redaction_shapes import RUN_SHAPES

_AFTER_NAME = rf"(?:s|[0-9_]{{0,3}}(?:[_-]?(?:{TRAILERS})[0-9]?)?){NEXT}|s?[0-9_]{{0,3}}[ ]{{0,8}}\\"
_NAMES = tuple(
    (literal, re.compile(rf"{stem}(?:{_AFTER_NAME})|(?:password|passwd|pass|auth)[ \t\n]"))
    for literal, stem in STEMS
)
"""A literal that names of secrets contain, and what must stand at its place."""
_WORDS = tuple(
    (literal, re.compile(pattern))
    for literal, pattern in (
        ("env", r"env[ \t\n]"),
        ("arg", r"arg[ \t\n]"),
        ("set", r"setx?[ \t\n]"),
        ("define", r"define[ \t\n]"),
        ("header", r"header(?:_up)?[ \t\n]"),
        (" -", r" -[a-z]"),
        ("--", r"--[a-z]"),
    )
)
_SIGNS = (
    *("basic", "bearer", "hook", "begin", "private-l", "thin:", "sig=", "signature=", "@", ":543", ":*:"),
    *("identified", "securestring", "eyj", "userpwd", "\\u00"),
)
_COUNTERS = ('"inputtokens":', '"outputtokens":', '"cachereadtokens":', '"cachewritetokens":', '"maxtokens":')
"""Fields of our own records that are named like secrets and hold numbers."""
_GLANCE = 320
"""Looking costs as much as searching when a text is longer."""
_LEAST = 7


def may_hold_secret(text: str) -> bool:
    """False if no rule can find anything in a short text."""
    if len(text) > _GLANCE:
        return True
    return len(text) >= _LEAST and (may_name_secret(text) or has_runs(text))


def may_name_secret(text: str) -> bool:
    """False if no name or sign of a secret stands in the text, of whatever length."""
    return _names_secret(text.lower())


def is_plain_record(encoded: bytes) -> bool:
    """Whether a JSON record cannot hold a secret, seen without decoding it."""
    plain = encoded.decode("utf-8", "replace")
    lowered = plain.lower()
    if "tokens" in lowered:
        for counter in _COUNTERS:
            lowered = lowered.replace(counter, "")
    if _names_secret(lowered):
        return False
    return not any(rule.pattern.match(plain, *run) for run in find_runs(plain) for rule in RUN_SHAPES)


def _names_secret(lowered: str) -> bool:
    # A search for a literal takes a hundredth of what an expression with alternatives takes.
    for sign in _SIGNS:
        if sign in lowered:
            return True
    for literal, pattern in (*_NAMES, *_WORDS):
        at = lowered.find(literal)
        while at >= 0:
            if pattern.match(lowered, at):
                return True
            at = lowered.find(literal, at + 1)
    return False
