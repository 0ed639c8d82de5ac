"""What a tool was asked to do, for people: long texts apart from short fields, an edit as a difference."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject, ToolCall

GIST_LENGTH = 160
_HUNK = re.compile(r"^@@ -[0-9]+(?:,[0-9]+)? \+[0-9]+(?:,[0-9]+)? @@", re.MULTILINE)
_EDITS = (("old_string", "new_string"), ("oldString", "newString"))


class CallView(Struct, frozen=True):
    fields: str
    """The input as JSON, without what stands in `texts` and `changes`; empty when nothing is left."""
    texts: tuple[tuple[str, str], ...] = ()
    """Names and values of the fields that have several lines."""
    changes: tuple[str, ...] = ()
    """Edits, as lines that begin with a space, a minus or a plus."""
    gist: str = ""
    """The first words of the input: mostly the command, the file or the address."""


def view_call(call: ToolCall) -> CallView:
    try:
        given = decode(call.arguments)
    except ValueError:
        return CallView("", (("input (not valid JSON)", call.arguments),))
    if not isinstance(given, dict):
        return CallView(show_json(given))
    gist = next((value for value in given.values() if isinstance(value, str)), "")[:GIST_LENGTH]
    changes = tuple(_changes(given))
    texts = tuple((name, value) for name, value in given.items() if isinstance(value, str) and "\n" in value)
    for name, _ in texts:
        del given[name]
    return CallView(show_json(given) if given else "", texts, changes, gist)


def show_json(value: Json) -> str:
    """A JSON value for people to read."""
    return msgspec.json.format(encode(value), indent=2).decode()


def is_difference(text: str) -> bool:
    """Whether a text is the output of a program that compares files."""
    return _HUNK.search(text) is not None


def _changes(given: JsonObject) -> Iterator[str]:
    """Take the edits out of an input and give them as differences."""
    edits = given.get("edits")
    several = edits if isinstance(edits, list) and all(isinstance(edit, dict) for edit in edits) else []
    for edit in (given, *several):
        for old, new in _EDITS:
            if isinstance(edit.get(old), str) and isinstance(edit.get(new), str):
                yield difference(edit.pop(old), edit.pop(new))


def difference(old: str, new: str) -> str:
    """Both texts with their common beginning and end once; linear, and so not always the shortest."""
    before, after = old.split("\n"), new.split("\n")
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    tail = next((n for n in range(shorter - head) if before[-n - 1] != after[-n - 1]), shorter - head)
    lines = [f" {line}" for line in before[:head]]
    lines += [f"-{line}" for line in before[head : len(before) - tail]]
    lines += [f"+{line}" for line in after[head : len(after) - tail]]
    return "\n".join(lines + [f" {line}" for line in before[len(before) - tail :]])
