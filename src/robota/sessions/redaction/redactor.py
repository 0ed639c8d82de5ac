"""Redaction: the one door through which everything goes that is written or sent elsewhere.

`redact` and `Redactor` are pure: they return the value itself when nothing in it is secret, otherwise a copy.
Redacting twice changes nothing more. `Redactor.text` decides about a place from a bounded stretch of text
around it, so `StreamRedactor` gives the same text however it was cut into pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from robota.core.messages import Json
from robota.sessions.redaction.commands import COMMANDS
from robota.sessions.redaction.gate import is_plain_record, may_hold_secret
from robota.sessions.redaction.headers import SCHEMES
from robota.sessions.redaction.named import NAMED
from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.pem import PRIVATE_KEYS
from robota.sessions.redaction.places import PLACES
from robota.sessions.redaction.scan import (
    REDACTED,
    Rule,
    RuleSet,
    Scanner,
    apply_spans,
)
from robota.sessions.redaction.shapes import SHAPES
from robota.sessions.redaction.stream import TextStream
from robota.sessions.redaction.structure import Walk

__all__ = ["REDACTED", "Redactor", "StreamRedactor", "redact"]

RULES = RuleSet((*SHAPES, *PRIVATE_KEYS, *SCHEMES, *NAMED, *COMMANDS, *PLACES))
_SHORTEST = 8
"""Own secrets shorter than this would hit ordinary words."""
_PREFIX = 128


def redact(value: Json, *, secrets: Sequence[str] = ()) -> Json:
    """The value without its secrets, and without the given texts wherever they appear."""
    return (Redactor(secrets) if secrets else _PLAIN).value(value)


class Redactor:
    """Redaction that also knows the secrets the process itself holds."""

    __slots__ = ("_literals", "_rules")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._literals: tuple[str, ...] = ()
        self._rules = RULES
        for secret in secrets:
            self.add_secret(secret)

    def add_secret(self, value: str) -> None:
        """Replace this text from now on, also in its JSON-escaped and percent-encoded forms."""
        value = value.strip()
        if len(value) < _SHORTEST or value in self._literals:
            return
        for form in _forms(value):
            self._literals += (form,)
            self._rules = RuleSet((_literal_rule(form), *self._rules.rules))

    def value(self, value: Json) -> Json:
        """Any value of Python or JSON, redacted."""
        return Walk(self.text).run(value)

    def text(self, text: str) -> str:
        """One text, redacted."""
        if not may_hold_secret(text, self._rules):
            return text
        spans = Scanner(self._rules).scan(text)
        return apply_spans(text, spans) if spans else text

    def are_plain(self, texts: Sequence[str]) -> bool:
        """Whether certainly none of these texts holds a secret; much cheaper than redacting them."""
        return not may_hold_secret("\n".join(texts), self._rules)

    def json(self, encoded: bytes, key: str = "") -> bytes:
        """Encoded JSON, redacted; the same object when nothing in it is secret."""
        named = name_strength(key) is not Strength.NONE
        if not named and is_plain_record(encoded, self._rules) and not self._holds_literal(encoded):
            return encoded
        try:
            value = msgspec.json.decode(encoded)
        except (msgspec.DecodeError, RecursionError):
            plain = encoded.decode("utf-8", "replace")
            text = self.text(plain)
            return encoded if text is plain else text.encode()
        redacted = Walk(self.text).run(value, key)
        return encoded if redacted is value else msgspec.json.encode(redacted)

    def _holds_literal(self, encoded: bytes) -> bool:
        if not self._literals:
            return False
        bare = encoded.decode("utf-8", "replace").replace(
            "\\", ""
        )  # a secret may be escaped, and more than once
        return any(literal.replace("\\", "") in bare for literal in self._literals)

    def stream(self) -> TextStream:
        """A text that arrives in pieces."""
        return TextStream(self._rules)


class StreamRedactor:
    """One text stream (a reply, or the arguments of one tool call) that arrives in pieces.

    For any way of cutting a text into pieces, what is taken joins to `redactor.text(whole)`.
    """

    __slots__ = ("_stream",)

    def __init__(self, redactor: Redactor) -> None:
        self._stream = redactor.stream()

    def push(self, piece: str) -> None:
        """Add the next piece."""
        self._stream.push(piece)

    def take(self, *, final: bool = False) -> list[str]:
        """The redacted pieces that are safe to write now, in order; all of them if the stream ended."""
        return self._stream.take(final=final)

    @property
    def held(self) -> int:
        """Pieces held back now."""
        return self._stream.held


class LiteralTail:
    """The rest of a long secret of our own, as far as the text follows it."""

    __slots__ = ("_rest", "_seen")

    def __init__(self, rest: str) -> None:
        self._rest = rest
        self._seen = 0

    def inside(self, level: int) -> LiteralTail:
        return self

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        while (
            self._seen < len(self._rest) and position < len(text) and text[position] == self._rest[self._seen]
        ):
            position += 1
            self._seen += 1
        return position, not final and position == len(text) and self._seen < len(self._rest)


def _literal_rule(form: str) -> Rule:
    """Only the beginning decides, so that a stream can be written before a long secret has ended."""
    prefix, rest = form[:_PREFIX], form[_PREFIX:]
    length = len(prefix)
    return Rule(
        (),
        f"(?={re.escape(prefix)})",
        decide=lambda _before, _ahead, _ends: (0, length, LiteralTail(rest) if rest else None, REDACTED),
        at_start=True,
    )


def _forms(value: str) -> list[str]:
    from urllib.parse import quote  # noqa: PLC0415 - only where a secret is registered

    escaped = msgspec.json.encode(value).decode()[1:-1]
    return list(dict.fromkeys((value, escaped, quote(value, safe=""))))


_PLAIN = Redactor()
