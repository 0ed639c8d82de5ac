"""The rules that begin with a secret's name: one for each stem, so that every search begins with a literal."""

from __future__ import annotations

import re

from robota.sessions.redaction_assignments import decide_assignment
from robota.sessions.redaction_links import CHANGES, VALUE_FIRST, decide_link
from robota.sessions.redaction_names import TRAILERS, clean_name
from robota.sessions.redaction_scan import Decision, Rule

_NAME = re.compile(r"[A-Za-z0-9_.$@-]{1,80}")
# What may come between a name and its value, seen from the name's end; most words of a sentence fail here.
_NEXT = (
    r"(?=\\{0,15}[\"'`]|[\]=:>(*%&<|\x1b]|\\{1,8}u00|[ \t]{1,20}(?:[\"'=:|{>]|\?=|is[ :]|[a-z:]{2,20}=[\"'])"
    r"|[ \t]{0,4}\n[ \t]{0,40}(?:value|default|type))"
)
_STEMS = (
    "pass(?:words?|wd|phrases?|code)?",
    "pwd",
    "psk",
    "secret",
    "token",
    # `key` alone names nothing secret
    "key(?:(?<=[a-z0-9_-]key)|(?<=(?:api|uth) key)|(?<=(?:cess|ster|cret|vate|ning|tion) key))",
    "credentials?",
    "cookies?",
    "auth(?:orization)?",
    "bearer",
)


def _decide(before: str, ahead: str, ends: bool) -> Decision | None:
    backwards = _NAME.match(before[:-82:-1])
    if backwards is None:
        return None
    lead = before[: len(before) - backwards.end()]
    name = clean_name(before[len(lead) :], lead)
    return decide_assignment(name, lead, ahead, ends) or decide_link(name, lead, ahead)


NAMED: tuple[Rule, ...] = (
    *(
        Rule((), rf"{stem}[0-9_]{{0,3}}(?:[_-]?(?:{TRAILERS})[0-9]?)?{_NEXT}", decide=_decide, folded=True)
        for stem in _STEMS
    ),
    VALUE_FIRST,
    CHANGES,
)
