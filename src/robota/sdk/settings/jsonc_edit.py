"""Changes to JSON text with comments: only what is changed changes, the rest stays letter for letter.

Every function takes the text and gives the new one; `ValueError` says why a change cannot be made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec import Struct

from robota.core.jsontext import encode
from robota.core.messages import Json
from robota.sdk.settings.jsonc import Node, Part, parse_jsonc

_BLANKS = " \t\r\n"
_USUAL = "  "


def set_value(text: str, path: Sequence[str], value: Json) -> str:
    """With `value` at `path`; objects that are missing on the way are made."""
    text = text if text.strip() else "{}\n"
    root = parse_jsonc(text)
    node, rest = _descend(root, path)
    style = _Style.of(text, root)
    if not rest:
        if encode(node.value) == encode(value):  # `1 == True` is not meant
            return text
        return _splice(text, [(node.start, node.end, style.write(value, _indent_at(text, node.start)))])
    for key in reversed(rest[1:]):
        value = {key: value}
    return style.append(text, node, value, key=rest[0])


def add_item(text: str, path: Sequence[str], item: Json) -> str:
    """With `item` at the end of the list at `path`, unless it is in it."""
    text = text if text.strip() else "{}\n"
    root = parse_jsonc(text)
    node, rest = _descend(root, path)
    if rest:
        return set_value(text, path, [item])
    if not isinstance(node.value, list):
        raise ValueError(f"{'.'.join(path)} is not a list")
    return text if item in node.value else _Style.of(text, root).append(text, node, item)


def remove_value(text: str, path: Sequence[str]) -> str:
    """Without the key at the end of `path`, however often it is written; comments stay."""
    if not text.strip():
        return text
    node = parse_jsonc(text)
    for key in path[:-1]:
        below = node.find(key)
        if below is None:
            return text
        node = below
    return _splice(text, _cut(text, node.parts, [part for part in node.parts if part.key == path[-1]]))


def remove_item(text: str, path: Sequence[str], item: Json) -> str:
    """Without `item` in the list at `path`."""
    if not text.strip():
        return text
    node, rest = _descend(parse_jsonc(text), path)
    if rest:
        return text
    return _splice(text, _cut(text, node.parts, [part for part in node.parts if part.node.value == item]))


def _descend(node: Node, path: Sequence[str]) -> tuple[Node, Sequence[str]]:
    """The deepest value on the path that is there, and what is missing below it."""
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise ValueError(f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
        below = node.find(key)
        if below is None:
            return node, path[depth:]
        node = below
    return node, ()


class _Style(Struct, frozen=True):
    """How the text is laid out."""

    indent: str
    """Of one level; empty when everything is on one line."""
    newline: str

    @classmethod
    def of(cls, text: str, root: Node) -> _Style:
        newline = "\r\n" if "\r\n" in text else "\n"
        if root.parts and _is_first_on_line(text, root.parts[0].start):
            return cls(_indent_at(text, root.parts[0].start) or _USUAL, newline)
        return cls(_USUAL if "\n" in text[root.start : root.end] or not root.parts else "", newline)

    def write(self, value: Json, indent: str) -> str:
        if not self.indent:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self.indent).split("\n")
        return f"{self.newline}{indent}".join(lines)

    def append(self, text: str, into: Node, value: Json, key: str | None = None) -> str:
        """One more member or item, behind everything that is written in `into`."""
        last = into.parts[-1] if into.parts else None
        close = into.end - 1
        end = len(text[:close].rstrip(_BLANKS))
        outer = _indent_at(text, into.start)
        inner = outer + self.indent
        if last is not None and _is_first_on_line(text, last.start):
            inner = _indent_at(text, last.start)
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        changes: list[tuple[int, int, str]] = []
        if last is not None and last.comma < 0:
            changes.append((last.node.end, last.node.end, ","))
        comma = "," if last is not None and last.comma >= 0 else ""
        if self._is_on_one_line(text, into):
            gap = "" if last is None and end == into.start + 1 else " "
            changes.append((end, end, f"{gap}{name}{self.write(value, outer)}{comma}"))
        else:
            added = f"{self.newline}{inner}{name}{self.write(value, inner)}{comma}{self.newline}{outer}"
            changes.append((end, close, added))
        return _splice(text, changes)

    def _is_on_one_line(self, text: str, node: Node) -> bool:
        if not node.parts:
            return not self.indent
        before = text[node.start : node.parts[0].start]
        behind = text[node.parts[-1].node.end : node.end]
        return "\n" not in before and "\n" not in behind


def _cut(text: str, parts: Sequence[Part], gone: Sequence[Part]) -> list[tuple[int, int, str]]:
    """The spans to leave out: the parts, their commas, and the lines that nothing else is on."""
    spans: list[tuple[int, int]] = []
    for part in gone:
        apart = part.comma >= 0 and bool(text[part.node.end : part.comma].strip(_BLANKS))  # by a comment
        stop = part.node.end if part.comma < 0 or apart else part.comma + 1
        spans.append(_widen(text, part.start, stop, last=part is parts[-1]))
        if apart:
            spans.append((part.comma, part.comma + 1))
    kept = [part for part in parts if part not in gone]
    if gone and kept and parts[-1] in gone and parts[-1].comma < 0:
        spans.append((kept[-1].comma, kept[-1].comma + 1))  # nothing comes behind it any more
    changes, reached = [], 0
    for start, end in sorted(spans):
        changes.append((max(start, reached), max(end, reached), ""))
        reached = max(end, reached)
    return changes


def _widen(text: str, start: int, end: int, *, last: bool) -> tuple[int, int]:
    """With the blanks around it that would have no use: a whole line, or those on one side."""
    left = len(text[:start].rstrip(" \t"))
    right = end + len(text[end:]) - len(text[end:].lstrip(" \t"))
    if left == _line_start(text, start):
        for newline in ("\r\n", "\n"):
            if text.startswith(newline, right):
                return left, right + len(newline)
    return (left, end) if last else (start, right)


def _splice(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    """With these spans replaced; they are in the order of the text."""
    for start, end, new in reversed(changes):
        text = text[:start] + new + text[end:]
    return text


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _is_first_on_line(text: str, at: int) -> bool:
    return not text[_line_start(text, at) : at].strip(" \t")


def _indent_at(text: str, at: int) -> str:
    """The blanks at the beginning of the line."""
    line = text[_line_start(text, at) : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
