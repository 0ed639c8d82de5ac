"""The rules that begin with a secret's name, one for each stem: so every search begins with a literal."""

from __future__ import annotations

import re

from robota.sessions.redaction.assignments import decide_assignment, decide_object
from robota.sessions.redaction.links import CHANGES, VALUE_FIRST, decide_link
from robota.sessions.redaction.names import TRAILERS, clean_name
from robota.sessions.redaction.places import decide_spoken
from robota.sessions.redaction.scan import Decision, Rule

_NAME = re.compile(r"[A-Za-z0-9_.$@-]{1,80}")
# What may come between a name and its value, seen from the name's end; most words of a sentence fail here.
_NEXT = (
    r"(?=[\\\"'`\]=:>(*&<|│\x1b{\[%% \t\r\n])(?=[\"'`\]=:>(*&<|│\x1b]"
    r"|[ \t]{1,20}+(?:[\"'=:|│{>]|\\{1,7}[\"']|\?[=?:]|is[ :]|or \\{0,7}[\"']|as \w%s"
    r"|[a-z:]{2,20}+=\\{0,7}[\"'])"
    r"|\\{1,15}[\"'`]|\{\\{0,7}[\"']|\[\d{0,4}\][ \t]{0,4}=|%%(?:3d|5d|22)|\\{1,8}u00"
    r"|[ \t]{0,4}(?:\r?\n|\\{1,7}n)(?:[+>\s0-9→|:-]|\\{1,7}t){0,48}+(?:value|default|type))"
)
_ISSUED = "|[a-z0-9+/=_-]{20}"
_SPOKEN = {"token": _ISSUED, "auth": _ISSUED, "key": rf"{_ISSUED}|\d{{1,2}}: ", "pass": "|to proceed"}
"""What else may follow these in a sentence."""
_STEMS = (  # each with the literal of the gate that it contains
    ("pass", "pass(?:words?|wd|phrases?|code)?"),
    ("pwd", "pwd"),
    ("psk", "psk"),
    ("secret", "secret(?:s(?<=client.secrets)|s(?<=clientsecrets))?"),
    (
        "token",
        "token(?:s(?:(?<=accesstokens)|(?<=access.tokens)|(?<=refreshtokens)|(?<=refresh.tokens)))?",
    ),
    # `key` alone names nothing secret
    (
        "key",
        "key(?:(?<=[a-z0-9_.-]key)|(?<=(?:api|uth) key)|(?<=(?:cess|ster|cret|vate|ning|tion|seal) key))s?",
    ),
    ("cred", "credentials?"),
    ("cookie", "cookies?"),
    ("auth", "auth(?:orization)?"),
    ("bearer", "bearer"),
)


_SPACED = re.compile(
    r"(?i)\b(?:(?:api|access|secret|private|auth|client|bearer|refresh|signing|encryption|master|unseal"
    r"|session) ){1,2}\Z"
)


def _decide(before: str, ahead: str, ends: bool) -> Decision | None:
    backwards = _NAME.match(before[:-82:-1])
    if backwards is None:
        return None
    lead = before[: len(before) - backwards.end()]
    name = clean_name(before[len(lead) :], lead)
    if lead.endswith(" ") and (words := _SPACED.search(lead[-40:])):  # `API key: …`
        name = f"{words.group()}{name}"
        lead = lead[: -len(words.group())]
    return (
        decide_assignment(name, lead, ahead, ends)
        or decide_object(name, lead, ahead)
        or decide_link(name, lead, ahead)
        or decide_spoken(name, lead, ahead)
    )


def _escaped(before: str, ahead: str, ends: bool) -> Decision | None:
    """A name of JSON with letters written as `\\u0077`."""
    found = _ESCAPED.search(before[-120:])
    if found is None:
        return None
    name = _LETTER.sub(lambda letter: chr(int(letter[1], 16)), found.group())
    return decide_assignment(name, before[: len(before) - len(found.group())], ahead, ends)


_LETTER = re.compile(r"\\u00([2-7][0-9a-fA-F])")
_ESCAPED = re.compile(r"(?:[\w.-]|\\u00[2-7][0-9a-fA-F])+\Z")


NAMED: tuple[Rule, ...] = (
    *(
        Rule(
            (needle,),
            rf"{stem}[0-9_]{{0,3}}(?:[_-]?(?:{TRAILERS})[0-9]?)?{_NEXT % _SPOKEN.get(needle, '')}",
            decide=_decide,
            folded=True,
        )
        for needle, stem in _STEMS
    ),
    Rule(("\\u00",), r"\\u00[2-7][0-9a-fA-F](?:[\w.-]|\\u00[2-7][0-9a-fA-F]){0,60}(?=\")", decide=_escaped),
    VALUE_FIRST,
    CHANGES,
)
