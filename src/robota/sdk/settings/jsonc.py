"""JSON with comments and trailing commas, as people write settings: its value, and where each part stands.

`read_jsonc` is what loads files: strict JSON, the usual case, never sees the slow reader. `parse_jsonc` keeps
the places, for whoever names a line or changes the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.jsontext import decode
from robota.core.messages import Json, JsonObject
from robota.core.regular_file import open_regular

_BLANK = lazy_pattern(r"(?:[ \t\r\n]++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_TEXT = lazy_pattern(r'"(?:[^"\\\n]|\\.)*+"')
_WORD = lazy_pattern(r"[-+.\w]+")
_STEP = lazy_pattern(r"([^.\[\]]+)|\[(\d+)\]")


class JsoncError(ValueError):
    """Text that is not JSON; `line` counts from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Node(Struct, frozen=True, kw_only=True):
    """A value and its place: `text[start:end]`."""

    value: Json
    start: int
    end: int
    parts: tuple[Part, ...] = ()
    """Of an object or a list."""

    def find(self, key: str | int) -> Node | None:
        """The part under that key or number. Of a key that is written twice the last one counts."""
        if isinstance(key, int):
            return self.parts[key].node if isinstance(self.value, list) and key < len(self.parts) else None
        return next((part.node for part in reversed(self.parts) if part.key == key), None)


class Part(Struct, frozen=True):
    """A member of an object, or an item of a list."""

    key: str | None
    start: int
    node: Node
    comma: int
    """Where the comma behind it stands; -1 when there is none."""


def read_jsonc(text: str) -> Json:
    """The value that the text stands for."""
    try:
        return decode(text)
    except ValueError:
        return parse_jsonc(text).value


def parse_jsonc(text: str) -> Node:
    """The value with all places; what is not JSON raises `JsoncError`."""
    try:
        return _Reader(text).read_document()
    except RecursionError as error:
        raise JsoncError("it is nested too deeply", 1) from error


def find_line(text: str, path: Sequence[str | int], node: Node | None = None) -> int:
    """The line of the value at `path`, or of the nearest one around it; `node` if the text was parsed."""
    node = parse_jsonc(text) if node is None else node
    at = node.start
    for key in path:
        part = next((each for each in reversed(node.parts) if each.key == key), None)
        below = node.find(key)
        if below is None:
            break
        at, node = below.start if part is None else part.start, below
    return text.count("\n", 0, at) + 1


def read_place(place: str) -> list[str | int]:
    """`hooks.PreToolUse[0]` as the keys that lead there."""
    return [int(found[2]) if found[2] else found[1].split(" ")[0] for found in _STEP.finditer(place)]


def find_line_in(path: str, place: str) -> int:
    """The line of what stands there in a file, whose outermost key may be left out in it; 0 if that cannot
    be told."""
    if not path.endswith(".json"):
        return 0
    try:
        with open_regular(path) as file:
            text = file.read().decode("utf-8-sig")
        node, keys = parse_jsonc(text), read_place(place)
    except (OSError, ValueError):  # nobody loads what cannot be read, and that was told
        return 0
    return find_line(text, keys if node.find(keys[0]) else keys[1:], node)


def join_doubled(node: Node) -> tuple[Json, tuple[str, ...]]:
    """The value with what stands under a key that is written twice put together, so that nothing is lost that
    guards something; and those keys."""
    doubled: list[str] = []

    def join(first: Json, second: Json) -> Json:
        if isinstance(first, dict) and isinstance(second, dict):
            shared = {key: join(first[key], second[key]) for key in first.keys() & second.keys()}
            return {**first, **second, **shared}
        return [*first, *second] if isinstance(first, list) and isinstance(second, list) else second

    def build(node: Node) -> Json:
        if isinstance(node.value, list):
            return [build(part.node) for part in node.parts]
        if not isinstance(node.value, dict):
            return node.value
        built: JsonObject = {}
        for part in node.parts:
            key, value = part.key or "", build(part.node)
            if key in built:
                doubled.append(key)
                value = join(built[key], value)
            built[key] = value
        return built

    return build(node), tuple(doubled)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 1 if text.startswith("\ufeff") else 0

    def read_document(self) -> Node:
        node = self._read_value()
        if self._peek():
            raise self._error("there is something behind the end of the value")
        return node

    def _peek(self) -> str:
        """The next letter that counts; empty at the end."""
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _read_value(self) -> Node:
        letter = self._peek()
        if letter == "{":
            return self._read_object()
        if letter == "[":
            return self._read_list()
        return self._read_scalar(_TEXT if letter == '"' else _WORD)

    def _read_scalar(self, pattern: re.Pattern[str]) -> Node:
        start, found = self._at, pattern.match(self._text, self._at)
        if found is None:
            raise self._error(self._describe_next())
        try:
            value = decode(found[0])
        except ValueError as error:
            shown = found[0] if len(found[0]) <= 40 else f"{found[0][:40]}…"
            raise self._error(f"{shown} is not a value: texts need double quotes") from error
        self._at = found.end()
        return Node(value=value, start=start, end=self._at)

    def _read_object(self) -> Node:
        start, parts = self._at, []
        values: JsonObject = {}
        self._at += 1
        while self._peek() != "}":
            part = self._read_member()
            parts.append(part)
            values[part.key or ""] = part.node.value
            if part.comma < 0 and self._peek() != "}":
                raise self._error(f"a comma or }} is missing: {self._describe_next()}")
        self._at += 1
        return Node(value=values, start=start, end=self._at, parts=tuple(parts))

    def _read_list(self) -> Node:
        start, parts = self._at, []
        self._at += 1
        while self._peek() != "]":
            node = self._read_value()
            parts.append(Part(None, node.start, node, self._read_comma()))
            if parts[-1].comma < 0 and self._peek() != "]":
                raise self._error(f"a comma or ] is missing: {self._describe_next()}")
        self._at += 1
        return Node(value=[part.node.value for part in parts], start=start, end=self._at, parts=tuple(parts))

    def _read_member(self) -> Part:
        if self._peek() != '"':
            raise self._error(f"a key in double quotes is missing: {self._describe_next()}")
        key = self._read_scalar(_TEXT)
        if self._peek() != ":":
            raise self._error(f"a colon is missing behind the key {key.value!r}")
        self._at += 1
        return Part(str(key.value), key.start, self._read_value(), self._read_comma())

    def _read_comma(self) -> int:
        if self._peek() != ",":
            return -1
        self._at += 1
        return self._at - 1

    def _describe_next(self) -> str:
        rest = self._text[self._at : self._at + 2]
        if not rest:
            return "the text ends too early"
        if rest == "/*":
            return "a comment has no end"
        if rest[0] == '"' and _TEXT.match(self._text, self._at) is None:
            return "a text has no end"
        return f"{rest[0]} does not belong there"

    def _error(self, message: str) -> JsoncError:
        return JsoncError(message, self._text.count("\n", 0, self._at) + 1)
