"""A quick look at a text or a JSON record: can it hold a secret at all?

The gate must let through whatever any rule could match; letting through more only costs time.
"""

from __future__ import annotations

import re

from robota.sessions.redaction_named import NEXT, STEMS
from robota.sessions.redaction_names import TRAILERS
from robota.sessions.redaction_scan import find_runs, has_runs
from robota.sessions.redaction_shapes import RUN_SHAPES

_GATE = re.compile(
    rf"(?:{'|'.join(stem for _, stem in STEMS)})(?:s|[0-9_]{{0,3}}(?:[_-]?(?:{TRAILERS})[0-9]?)?){NEXT}"
    r"|(?:password|passwd|pass|auth|env|arg|setx?|define|header|header_up)[ \t\n]"
    r"|basic|bearer|hook|begin|private-l|thin:"
    r"|sig=|signature=|@| -[a-z]|--[a-z]|:543|:\*:|identified|securestring|eyj|userpwd|\\u00"
    rf"|(?:{'|'.join(stem for _, stem in STEMS)})s?[0-9_]{{0,3}}[ ]{{0,8}}\\"
)
_GLANCE = 320
"""Looking costs as much as searching when a text is longer."""
_RECORD = 640
_LEAST = 7


def may_hold_secret(text: str) -> bool:
    """False if no rule can find anything in a short text."""
    if len(text) > _GLANCE:
        return True
    return len(text) >= _LEAST and (_GATE.search(text.lower()) is not None or has_runs(text))


def may_name_secret(text: str) -> bool:
    """False if no name or sign of a secret stands in the text, of whatever length."""
    return _GATE.search(text.lower()) is not None


def is_plain_record(encoded: bytes) -> bool:
    """Whether a short JSON record cannot hold a secret, seen without decoding it."""
    if len(encoded) > _RECORD:
        return False
    plain = encoded.decode("utf-8", "replace")
    if may_name_secret(plain):
        return False
    return not any(rule.pattern.match(plain, *run) for run in find_runs(plain) for rule in RUN_SHAPES)
