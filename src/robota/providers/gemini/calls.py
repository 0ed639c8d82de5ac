"""Calls of a Gemini reply: whole, or in pieces that each name the place in the arguments they belong to."""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec import Struct

from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject, ToolCall
from robota.core.provider import ToolInputChunk
from robota.providers.wire.reply import text_of

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[['\"](.*?)['\"]\]")
_PATH = re.compile(rf"\$(?:{_STEP.pattern})+")
_LONGEST_LIST = 10_000
"""Places beyond are not believed."""


class _Open(Struct):
    """A call that is not whole yet."""

    id: str
    name: str
    signature: str
    arguments: JsonObject


class GeminiCalls(Struct, eq=False):
    whole: list[ToolCall] = []
    _open: _Open | None = None

    def add(self, function: JsonObject, signature: str) -> ToolInputChunk | None:
        """Take a call or a piece of one; what of its arguments can be shown, once it is whole.

        A piece says that it will be continued; the last one says nothing at all.
        """
        begun, name = self._open, text_of(function, "name")
        if begun is None and not name:
            return None
        if begun is None:
            begun = _Open(text_of(function, "id"), name, signature, {})
        begun.signature = begun.signature or signature
        arguments = function.get("args")
        if isinstance(arguments, dict):
            begun.arguments.update(arguments)
        pieces = function.get("partialArgs")
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                _put(begun.arguments, piece)
        if function.get("willContinue"):
            self._open = begun
            return None
        self._open = None
        text = encode(begun.arguments).decode()
        self.whole.append(ToolCall(begun.id, begun.name, text, begun.signature or None))
        return ToolInputChunk(len(self.whole) - 1, text, begun.id, begun.name)


def _put(arguments: JsonObject, piece: JsonObject) -> None:
    """Put a piece where its path leads; texts that lead to the same place are one text."""
    path = text_of(piece, "jsonPath")
    steps: list[str | int] = [
        int(place) if place else plain or quoted for plain, place, quoted in _STEP.findall(path)
    ]
    if not _PATH.fullmatch(path) or isinstance(steps[0], int):
        return
    holder: Json = arguments
    for step, following in pairwise(steps):
        holder = _enter(holder, step, [] if isinstance(following, int) else {})
    known = _enter(holder, steps[-1], None)
    value = _value(piece)
    if isinstance(known, str) and isinstance(value, str):
        value = known + value
    if _fits(holder, steps[-1]):
        holder[steps[-1]] = value


def _enter(holder: Json, step: str | int, new: Json) -> Json:
    """What is at this place; `new` if there is nothing yet."""
    if not _fits(holder, step):
        return new  # a path that contradicts an earlier one: what it says is lost, and nothing else
    if isinstance(holder, list) and isinstance(step, int):
        holder.extend([None] * (step + 1 - len(holder)))
    elif step not in holder:
        holder[step] = None
    if holder[step] is None:
        holder[step] = new
    return holder[step]


def _fits(holder: Json, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(holder, list) and step < _LONGEST_LIST
    return isinstance(holder, dict)


def _value(piece: JsonObject) -> Json:
    for kind in ("stringValue", "numberValue", "boolValue"):
        if kind in piece:
            return piece[kind]
    return None
