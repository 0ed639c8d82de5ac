"""Redaction of whole values: fields by their names, header lists, arguments, JSON inside strings.

The walk is iterative and remembers what it has seen, so depth and cycles do not matter. What is not a secret
keeps its type, its place and its identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from robota.core.messages import Json
from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.scan import REDACTED
from robota.sessions.redaction.values import (
    is_complaint,
    is_placeholder,
    looks_chosen,
    looks_issued,
    repeats_name,
)
from robota.sessions.redaction.words import word_set

_NAME_FIELDS = ("ParameterKey", "name", "key", "header", "field", "variable", "Name", "Key", "k")
_VALUE_FIELDS = ("ParameterValue", "value", "values", "val", "Value", "v", "defaultValue")
_SCHEMA_TYPES = frozenset(("string", "number", "integer", "object", "array", "boolean", "null"))
_SCHEMA_WORDS = word_set(
    """
    type description title $ref anyOf oneOf allOf not enum const format pattern minLength maxLength minimum
    maximum items properties required default examples example nullable deprecated writeOnly readOnly
    additionalProperties minItems maxItems uniqueItems x-order order
    """
)
_PROPERTY_FIELDS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_Slot: TypeAlias = Any


def is_schema(value: Json) -> bool:
    """Whether an object describes a value (JSON schema) instead of being one."""
    if not isinstance(value, dict) or not value:
        return False
    if "shape" in value:  # a service description
        return True
    if "value" in value:
        return False
    kind = value.get("type")
    if isinstance(kind, str):
        return kind in _SCHEMA_TYPES
    if isinstance(kind, list):
        return bool(kind) and all(isinstance(item, str) and item in _SCHEMA_TYPES for item in kind)
    return all(isinstance(key, str) and key in _SCHEMA_WORDS for key in value)


def hides(strength: Strength, value: Json) -> bool:
    """Whether the value under a name of this strength is to be replaced."""
    if strength is Strength.NONE or value is None or isinstance(value, bool) or value == REDACTED:
        return False
    if isinstance(value, (str, bytes)):
        if strength is Strength.WEAK:
            return isinstance(value, str) and looks_issued(value)
        return len(value) > 0
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return strength >= Strength.MANY and len(value) > 0 and not is_schema(value)
    return strength is Strength.FULL


class Walk:
    """One pass over one value."""

    __slots__ = ("_changed", "_later", "_pending", "_seen", "_text", "_words")

    def __init__(self, text: Callable[[str], str]) -> None:
        self._text = text
        self._changed = False
        self._words: dict[str, str] = {}
        self._seen: dict[tuple[int, str], Json] = {}
        self._pending: list[tuple[Json, Json, str]] = []
        self._later: list[tuple[_Slot, Json, list[Json]]] = []

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
            text = self._redact(value)
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
        items = [Walk(self._text).run(item) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        self._changed = True
        return type(value)(items)  # type: ignore[call-arg]  # a set or a frozenset

    def _replace(self, value: Json) -> str:
        self._changed = True
        return REDACTED

    def _field(self, name: str, value: Json, parent: _Slot, slot: Json, context: str) -> Json:
        """A value that stands under a name."""
        strength = name_strength(name)
        if strength is not Strength.NONE and hides(strength, value) and not _is_exempt(name, value, context):
            return self._replace(value)
        inner = name if name in _CONTEXTS else ""
        if strength >= Strength.TEXT and context not in _PROPERTY_FIELDS and not is_schema(value):
            inner = _HOLDER
        return self._copy(value, parent, slot, inner)

    def _fill_dict(self, source: dict[Json, Json], target: dict[Json, Json], context: str) -> None:
        hidden = _named_value(source)
        if context == _HOLDER:
            hidden |= {field: Strength.TEXT for field in ("value", "default") if field in source}
        for key, value in source.items():
            name = self._key(key, target)
            if not isinstance(key, str):
                target[name] = self._copy(value, target, name, "")
            elif key in hidden and hides(hidden[key], value):
                target[name] = self._replace(value)
            else:
                target[name] = self._field(key, value, target, name, context)

    def _redact(self, text: str) -> str:
        """A text, remembered if it is short: names and kinds come back all the time."""
        if len(text) > _WORD:
            return self._text(text)
        known = self._words.get(text)
        if known is None:
            known = self._text(text)
            if len(self._words) < _WORDS:
                self._words[text] = known
        return known

    def _key(self, key: Json, target: dict[Json, Json]) -> Json:
        if not isinstance(key, str):
            return key
        text = self._redact(key)
        if text == key:
            return key
        self._changed = True
        name, number = text, 1
        while name in target:
            number += 1
            name = f"{text} ({number})"
        return name

    def _fill_list(self, source: Json, target: list[Json], context: str) -> None:
        pairs = bool(source) and all(_is_pair(item) for item in source)
        previous: Json = None
        flat = context in _FLAT
        for index, item in enumerate(source):
            if pairs and hides(name_strength(item[0]), item[1]):
                self._changed = True
                target[index] = type(item)((item[0], REDACTED))
            elif self._is_argument(previous, item) or (
                flat and index % 2 and isinstance(previous, str) and hides(name_strength(previous), item)
            ):
                target[index] = self._replace(item)
            else:
                target[index] = self._copy(item, target, index, "")
            previous = item

    @staticmethod
    def _is_argument(option: Json, value: Json) -> bool:
        """`["--password", "hunter2"]`"""
        if not isinstance(option, str) or not isinstance(value, str) or not option.startswith("-"):
            return False
        if "=" in option or value.startswith("-") or is_placeholder(value):
            return False
        strength = name_strength(option)
        return hides(strength, value) or (strength is Strength.WEAK and looks_chosen(value))


_VERSION = re.compile(r"[\^~<>=v]*\d+(?:\.\w+)+\S*")
_FLAT = frozenset(("rawHeaders", "raw_headers"))
_CONTEXTS = _FLAT | _PROPERTY_FIELDS
_WORD = 64
_WORDS = 4096
_HOLDER = "="
"""The context of an object that stands under a secret's name and was not replaced as a whole."""


def _is_pair(item: Json) -> bool:
    return isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str)


def _is_exempt(name: str, value: Json, context: str) -> bool:
    """Names of fields in a schema, and the working directory that shares a name with passwords."""
    if context in _PROPERTY_FIELDS and isinstance(value, dict):
        return True
    lowered = name.lower()
    if lowered.endswith("pwd"):
        return isinstance(value, str) and (value[:1] in "/~." or value[1:3] in (":\\", ":/"))
    if lowered.endswith("string"):  # what is in that JSON is looked at
        return isinstance(value, str) and value.startswith("{")
    if lowered == "id-token":  # a permission of a workflow
        return value in ("read", "write", "none")
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) and is_complaint(item) for item in value)
    if lowered == "cookie":
        return isinstance(value, str) and _VERSION.fullmatch(value) is not None
    return lowered.endswith("credentials") and value in ("include", "omit", "same-origin")


def _is_label(name: str, value: Json) -> bool:
    """`{"name": "Password", "value": "password"}`: the options of a menu."""
    return isinstance(value, str) and repeats_name(name, value) and value.isascii()


def _named_value(source: dict[Json, Json]) -> dict[str, Strength]:
    """The field that holds the value of a `{name: …, value: …}` object, if its name is a secret's."""
    hidden: dict[str, Strength] = {}
    for field in _NAME_FIELDS:
        name = source.get(field)
        if (
            isinstance(name, str)
            and len(name) <= 96
            and (strength := name_strength(name)) is not Strength.NONE
        ):
            for held in _VALUE_FIELDS:
                if held in source and held != field and not _is_label(name, source[held]):
                    hidden[held] = strength
    for field in ("id", "label"):
        name = source.get(field)
        if (
            isinstance(name, str)
            and name_strength(name[-96:]) >= Strength.TEXT
            and looks_chosen(str(source.get("value")))
        ):
            hidden["value"] = Strength.TEXT
    if "kty" in source:
        hidden |= {
            field: Strength.TEXT for field in ("d", "p", "q", "dp", "dq", "qi", "k") if field in source
        }
    if "pass" in source and any(field in source for field in ("user", "username", "login", "email")):
        hidden["pass"] = Strength.TEXT
    if source.get("kind") == "Secret" and "apiVersion" in source:
        hidden |= {field: Strength.FULL for field in ("data", "stringData") if field in source}
    return hidden
