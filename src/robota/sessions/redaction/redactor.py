"""Redaction: the one door through which everything goes that is written or sent elsewhere.

`redact` and `Redactor` are pure: they return the value itself when nothing in it is secret, otherwise a copy.
Redacting twice changes nothing more. In values, fields are known by their names, and so are header lists,
arguments and JSON inside strings; in texts, rules decide about a place from a bounded stretch around it, so
that `StreamRedactor` gives the same text however it was cut into pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.given import require_texts
from robota.core.jsontext import is_json
from robota.core.messages import Json
from robota.core.plain_text import known_own_words
from robota.sessions.redaction.names import (
    PROPERTY_FIELDS,
    TELLING_FIELDS,
    Strength,
    hides,
    is_exempt,
    is_schema,
    name_strength,
    named_value,
)
from robota.sessions.redaction.rules import REDACTED, Rule, Tail
from robota.sessions.redaction.scanner import StreamRedactor, may_match, redact_text
from robota.sessions.redaction.values import is_placeholder, looks_chosen

_SHORTEST = 8
"""Own secrets shorter than this would hit ordinary words."""
_JSON_FIELD = "arguments"
"""It holds a text of JSON, in messages as in the replies of most services."""
_JSON_TEXT = lazy_pattern(rf'"{_JSON_FIELD}": ?"(\{{(?:[^"\\]++|\\.)*+)"')
_LEAST = 7
"""No rule finds anything in a shorter text."""


def redact(value: Json, *, secrets: Sequence[str] = ()) -> Json:
    """The value without its secrets, and without the given texts wherever they appear."""
    return (Redactor(secrets) if secrets else _PLAIN).value(value)


class Redactor:
    """Redaction that also knows the secrets the process itself holds."""

    __slots__ = ("_bare", "own")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.own: tuple[Rule, ...] = ()
        self._bare: dict[str, str] = {}
        """The forms of own secrets, and how they look without any backslash."""
        for secret in require_texts("secrets", secrets):
            self.add_secret(secret)

    def add_secret(self, value: str) -> None:
        """Replace this text from now on, also in its JSON-escaped and percent-encoded forms."""
        value = value.strip()
        if len(value) < _SHORTEST or value in self._bare:
            return
        from urllib.parse import quote  # noqa: PLC0415 - only where a secret is registered

        escaped = msgspec.json.encode(value).decode()[1:-1]
        for form in dict.fromkeys((value, escaped, quote(value, safe=""))):
            self._bare = {**self._bare, form: form.replace("\\", "")}  # a thread may be going through it
            self.own += (_own_rule(form),)

    def value(self, value: Json) -> Json:
        """Any value of Python or JSON, redacted."""
        return _Walk(self.text).run(value)

    def text(self, text: str) -> str:
        """One text, redacted."""
        return redact_text(text, self.own) if len(text) >= _LEAST else text

    def texts(self, texts: Iterable[str]) -> list[str]:
        """Texts that follow each other: each as it is in the redacted whole."""
        stream = StreamRedactor(self)
        for text in texts:
            stream.push(text)
        return stream.take(final=True)

    def are_plain(self, texts: Iterable[str], *, repeated: bool = False) -> bool:
        """Whether certainly none of these texts holds a secret; much cheaper than redacting them."""
        return not (_may_match_again if repeated else may_match)("\n".join(texts), self.own)

    def json(self, encoded: bytes, key: str = "", *, repeated: bool = False) -> bytes:
        """Encoded JSON, redacted; the same object when nothing in it is secret. What comes word for word
        again and again, as what sessions are made of does, is `repeated`: it is searched once."""
        if not (key and name_strength(key)) and self._is_plain(encoded, repeated=repeated):
            return encoded
        try:
            value = msgspec.json.decode(encoded)
        except (msgspec.DecodeError, RecursionError):
            plain = encoded.decode("utf-8", "replace")
            text = self.text(plain)
            return encoded if text is plain else text.encode()
        redacted = _Walk(self.text).run(value, key)
        return encoded if redacted is value else msgspec.json.encode(redacted)

    def _is_plain(self, encoded: bytes, *, repeated: bool) -> bool:
        """Whether encoded JSON cannot hold a secret, seen without decoding it."""
        plain = encoded.decode("utf-8", "replace")
        if self._bare:
            bare = plain.replace("\\", "")  # a secret may be escaped, and more than once
            if any(form in bare for form in self._bare.values()):
                return False
        if "\\" in plain:
            if "\\u" in plain or "BEGIN" in plain:  # what looks different when it is decoded
                return False
            if '"{' not in plain:
                plain = _without_escapes(plain)
            elif (texts := _json_texts(plain)) is None:
                return False
            else:
                plain = "\n".join((_without_escapes(_JSON_TEXT.sub('""', plain)), *texts))
        if not repeated:
            return not may_match(plain)
        for text in known_own_words():
            plain = plain.replace(_as_in_json(text), "\n")
        return not _may_match_again(plain)


def _json_texts(encoded: str) -> list[str] | None:
    """The JSON that stands in strings of JSON, without escapes; nothing if some of it is none."""
    texts = list(map(_without_escapes, _JSON_TEXT.findall(encoded)))
    return list(map(_without_escapes, texts)) if all(map(is_json, texts)) else None


_may_match_again = lru_cache(maxsize=16)(may_match)


def _without_escapes(encoded: str) -> str:
    """Encoded JSON with its strings as they are when they are decoded: rules count their backslashes."""
    doubled = "\\\\" in encoded
    if doubled:
        encoded = encoded.replace("\\\\", "\0")  # which JSON never holds as it is
    for escape, meaning in _ESCAPES:
        encoded = encoded.replace(escape, meaning)
        if "\\" not in encoded:
            break
    return encoded.replace("\0", "\\") if doubled else encoded


_ESCAPES = (
    ("\\n", "\n"), ('\\"', '"'), ("\\t", "\t"), ("\\r", "\r"), ("\\b", "\b"), ("\\f", "\f"), ("\\", ""),
)  # fmt: skip
"""What follows a backslash in JSON, the usual first."""


@cache
def _as_in_json(text: str) -> str:
    """What is left of a text that was encoded when its escapes are gone."""
    return _without_escapes(msgspec.json.encode(text).decode()[1:-1])


class _OwnTail(Tail):
    """The rest of a long secret of our own, as far as the text follows it."""

    _rest: str
    _seen: int = 0

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        while (
            self._seen < len(self._rest) and position < len(text) and text[position] == self._rest[self._seen]
        ):
            position += 1
            self._seen += 1
        return position, not final and position == len(text) and self._seen < len(self._rest)


def _own_rule(form: str) -> Rule:
    """Only the beginning decides, so that a stream can be written before a long secret has ended."""
    prefix, rest = form[:_PREFIX], form[_PREFIX:]
    length = len(prefix)
    return Rule(
        prefix,
        "",
        lambda _before, _ahead, _ends: (0, length, _OwnTail(rest) if rest else None, REDACTED),
        at_start=True,
    )


_PREFIX = 128

_Slot: TypeAlias = Any


class _Walk(Struct, eq=False):
    """One pass over one value.

    It is iterative and remembers what it has seen, so depth and cycles do not matter. What is not a secret
    keeps its type, its place and its identity.
    """

    _text: Callable[[str], str]
    _changed: bool = False
    _words: dict[str, str] = {}
    _seen: dict[tuple[int, str], Json] = {}
    _pending: list[tuple[Json, Json, str]] = []
    _later: list[tuple[_Slot, Json, list[Json]]] = []

    def run(self, root: Json, key: str = "") -> Json:
        """The redacted value; the same object if nothing was secret."""
        top: list[Json] = [None]
        top[0] = self._field(key, root, top, 0, "") if key else self._copy(root, top, 0, "")
        while self._pending:
            source, target, context = self._pending.pop()
            if isinstance(source, dict):
                self._fill_dict(source, target, context)
            else:
                self._fill_list(source, target, context)
        for parent, slot, items in reversed(self._later):
            parent[slot] = tuple(items)
        return top[0] if self._changed else root

    def _copy(self, value: Json, parent: _Slot, slot: Json, context: str) -> Json:
        """The redacted copy of a value; containers are filled later."""
        if isinstance(value, str):
            text = self._words.get(value) or self._redact(value)
            if text == value:
                return value
            self._changed = True
            return text
        if isinstance(value, (dict, list, tuple)):
            return self._container(value, parent, slot, context)
        if isinstance(value, (bytes, bytearray)):
            return self._bytes(value)
        if isinstance(value, (set, frozenset)):
            return self._set(value)
        return value

    def _container(self, value: Json, parent: _Slot, slot: Json, context: str) -> Json:
        seen = (id(value), context)
        if seen in self._seen and not isinstance(value, tuple):
            return self._seen[seen]
        copy: Json = {} if isinstance(value, dict) else [None] * len(value)
        if isinstance(value, tuple):
            if seen in self._seen:  # a tuple that holds itself through a list
                return value
            self._later.append((parent, slot, copy))
        self._seen[seen] = copy
        self._pending.append((value, copy, context))
        return copy

    def _bytes(self, value: bytes | bytearray) -> bytes | bytearray:
        try:
            plain = value.decode()
        except UnicodeDecodeError:
            return value
        text = self._text(plain)
        if text is plain:
            return value
        self._changed = True
        return type(value)(text.encode())

    def _set(self, value: Iterable[Json]) -> Json:
        items = [_Walk(self._text).run(item) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        self._changed = True
        return type(value)(items)  # type: ignore[call-arg]  # a set or a frozenset

    def _replace(self) -> str:
        self._changed = True
        return REDACTED

    def _field(self, name: str, value: Json, parent: _Slot, slot: Json, context: str) -> Json:
        """A value that stands under a name."""
        strength = name_strength(name)
        if strength is not Strength.NONE and hides(strength, value) and not is_exempt(name, value, context):
            return self._replace()
        inner = name if name in _CONTEXTS else ""
        if strength >= Strength.TEXT and context not in PROPERTY_FIELDS and not is_schema(value):
            inner = _HOLDER
        return self._copy(value, parent, slot, inner)

    def _fill_dict(self, source: dict[Json, Json], target: dict[Json, Json], context: str) -> None:
        hidden = {} if source.keys().isdisjoint(TELLING_FIELDS) else named_value(source)
        if context == _HOLDER:
            hidden |= {field: Strength.TEXT for field in ("value", "default") if field in source}
        for key, value in source.items():
            if not isinstance(key, str):
                target[key] = self._copy(value, target, key, "")
                continue
            text = self._words.get(key) or self._redact(key)
            name = key if text == key else self._unused(text, target)
            if key in hidden and hides(hidden[key], value):
                target[name] = self._replace()
            elif key == _JSON_FIELD and isinstance(value, str):
                target[name] = self._json(value)
            elif key in _CONTEXTS or name_strength(key):
                target[name] = self._field(key, value, target, name, context)
            else:
                target[name] = self._copy(value, target, name, "")

    def _json(self, text: str) -> str:
        """The arguments of a call: what the names in them say shows only when they are decoded. They keep
        their form where the secrets of their text are the same."""
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            value = text
        redacted = _Walk(self._text).run(value)
        if redacted is value:
            return text
        self._changed = True
        shown = self._redact(text)
        return shown if value is text or _means(shown, redacted) else msgspec.json.encode(redacted).decode()

    def _redact(self, text: str) -> str:
        """A text, remembered if it is short: names and kinds come back all the time."""
        redacted = self._text(text)
        if len(text) <= _WORD and len(self._words) < _WORDS:
            self._words[text] = redacted
        return redacted

    def _unused(self, text: str, target: dict[Json, Json]) -> str:
        """A name for a field whose own name holds a secret."""
        self._changed = True
        name, number = text, 1
        while name in target:
            number += 1
            name = f"{text} ({number})"
        return name

    def _fill_list(self, source: Json, target: list[Json], context: str) -> None:
        pairs = bool(source) and all(
            isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str) for item in source
        )
        previous: Json = None
        flat = context in _FLAT
        for index, item in enumerate(self._arguments(source)):
            if pairs and hides(name_strength(item[0]), item[1]):
                self._changed = True
                target[index] = type(item)((item[0], REDACTED))
            elif self._is_argument(previous, item) or (
                flat and index % 2 and isinstance(previous, str) and hides(name_strength(previous), item)
            ):
                target[index] = self._replace()
            else:
                target[index] = self._copy(item, target, index, "")
            previous = item

    def _arguments(self, source: Json) -> Json:
        """The items of a list; those of a command are redacted as the command that they make."""
        if len(source) < 2 or not all(isinstance(item, str) for item in source):
            return source
        if not any(item[:1] == "-" for item in source):
            return source
        plain = msgspec.json.encode(list(source)).decode()
        text = self._text(plain)
        if text is plain:
            return source
        try:
            items = msgspec.json.decode(text, type=list[str])
        except msgspec.DecodeError:
            return source
        if len(items) != len(source):
            return self._without_key(source)
        self._changed = True
        return items

    def _without_key(self, source: Sequence[str]) -> Sequence[str]:
        """The lines of a text without those of a private key, from its first to its last."""
        first = next((at for at, line in enumerate(source) if "-BEGIN " in line), len(source))
        after = next((at for at, line in enumerate(source) if at > first and "-END " in line), len(source))
        if first == len(source):
            return source
        self._changed = True
        return [REDACTED if first <= at <= after else line for at, line in enumerate(source)]

    @staticmethod
    def _is_argument(option: Json, value: Json) -> bool:
        """`["--password", "hunter2"]`"""
        if not isinstance(option, str) or not isinstance(value, str) or not option.startswith("-"):
            return False
        if "=" in option or value.startswith("-") or is_placeholder(value):
            return False
        strength = name_strength(option)
        return hides(strength, value) or (strength is Strength.WEAK and looks_chosen(value))


def _means(encoded: str, value: Json) -> bool:
    try:
        return bool(msgspec.json.decode(encoded) == value)
    except msgspec.DecodeError:  # a secret reached past the end of its string
        return False


_FLAT = frozenset(("rawHeaders", "raw_headers"))
_CONTEXTS = _FLAT | PROPERTY_FIELDS
_WORD = 64
_WORDS = 4096
_HOLDER = "="
"""The context of an object that stands under a secret's name and was not replaced as a whole."""


_PLAIN = Redactor()
