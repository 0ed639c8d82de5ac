"""Private keys in PEM, PGP and PuTTY form: with real or escaped line ends, in one line, or cut off."""

from __future__ import annotations

import re

from robota.sessions.redaction.scan import REDACTED, Decision, Rule

_GAP = (
    r"(?:[ \t]{1,24}|(?:\n|\\+n)[>+ \t]{0,12}\d{1,5}(?:[\t:|→]|\\+t)"
    r"|\n(?:[\w./-]{1,40}:\d{1,5}:|[\w.-]{1,24} {1,4}\| |\d{4}-\d\d-\d\d[^\n]{8,30}?: )"
    r"|\\+[nrt\"']|[\s\"'+,;#>|*`]|\\+u000[aAdD]|%0[aAdD]|%20|&#10;|<br\s?/?>)"
)
_RUN = "[A-Za-z0-9+/=]"
_END = r"-{4,5} ?END [A-Z0-9 ]{0,40}-{4,5}"
_HEAD = (
    r"BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    rf"{_GAP}{{0,12}}+(?:[A-Z][A-Za-z-]{{2,20}}: (?:[^\n\\]|\\+[\"']){{0,70}}{_GAP}{{1,6}}+){{0,3}}"
    rf"{_RUN}{{16}}"
)
_MORE = re.compile(rf"{_RUN}*+")
_LINE = re.compile(
    rf"{_GAP}{{1,24}}+(?:{_RUN}{{16}}|{_RUN}{{0,15}}+{_GAP}{{0,24}}+{_END}|{_RUN}{{1,15}}+(?={_GAP}{{0,24}}+\Z))"
)
_LAST = re.compile(_END)
_LOOK = 150
"""What must be seen to know whether a line goes on with the key."""


class KeyTail:
    """The lines of a private key, up to its END line or, if it was cut off, its last line."""

    __slots__ = ()

    def inside(self, level: int) -> KeyTail:
        return self

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        while True:
            run = _MORE.match(text, position)
            position = run.end() if run else position
            if not final and len(text) - position < _LOOK:
                return position, True
            if end := _LAST.match(text, position):
                return end.end(), False
            line = _LINE.match(text[position : position + _LOOK])
            if line is None:
                return position, False
            position += line.end()
            if text[position - 1] == "-":
                return position, False


def _key_after(before: str, ahead: str, _ends: bool) -> Decision | None:
    """The lines of a PuTTY key; the secret part of a private calendar's address"""
    if before.endswith("/private-"):
        return 0, 32, None, REDACTED
    lines = re.match(rf"({_GAP}{{1,6}}+){_RUN}{{16}}", ahead)
    return (lines.end(1), lines.end(), KeyTail(), REDACTED) if lines else None


PRIVATE_KEYS: tuple[Rule, ...] = (
    Rule(("begin",), f"----[ -]{_HEAD}", KeyTail()),
    Rule(("rivate-",), r"rivate-(?:Lines: \d{1,4}|(?<=/private-)(?=[0-9a-f]{32}))", decide=_key_after),
)
