"""Pieces of a reply, or of the progress of tools, as a record keeps a run of them: columns, not objects.

Thousands of pieces come per answer. What is not asked for stays the bytes it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from robota.core.events import PayloadKind

TEXT_WITH_BYTES, TEXT, THOUGHT, INPUT, NATIVE_EVENT, NATIVE_RESPONSE, NATIVE_REQUEST, PROGRESS = "tTrinNqp"
"""Kinds of the pieces of a stream."""
ANSWER = (TEXT, TEXT_WITH_BYTES)
NATIVE_KINDS: dict[str, PayloadKind] = {
    NATIVE_EVENT: "stream_event",
    NATIVE_RESPONSE: "response",
    NATIVE_REQUEST: "request",
}
_NOTHING = Raw(b"[]")


class Pieces(Struct, kw_only=True, omit_defaults=True):
    """Consecutive pieces of a reply, or of the progress of tools, in the order they came."""

    first: int = 1
    """The number of the first piece of text among those of its round."""
    kinds: str = ""
    """One letter per piece; left out when all are text that came with the provider's own bytes."""
    texts: Raw = _NOTHING
    inputs: Raw = _NOTHING
    """Index, id and name of the call for each piece of arguments."""
    progress: Raw = _NOTHING
    """Index of the call for each piece of progress."""
    surface: str | None = None
    native: Raw = _NOTHING
    marks: Raw = _NOTHING
    """Place, number and metadata of native payloads that say more than their place does."""
    tail: str = ""
    """Words of the answer that follow, as far as they may be seen before it is clear what they are part of.
    Whatever comes next has them again."""

    def each(self, *, native: bool = True) -> Iterator[tuple[str, str, Any]]:
        """Kind and text of each piece, and what belongs to it: the call, or the provider's own event, which
        costs the most to read. A native event has no text."""
        found: list[str] = _read_list(self.texts)
        kinds, texts = self.kinds or TEXT_WITH_BYTES * len(found), iter(found)
        calls, running = iter(_read_list(self.inputs)), iter(_read_list(self.progress))
        events = iter(_read_list(self.native) if native else ())
        beside = {TEXT: None, THOUGHT: None, INPUT: calls, PROGRESS: running}
        for kind in kinds:
            source = beside.get(kind, events)
            text = "" if kind in NATIVE_KINDS else next(texts, "")
            yield kind, text, None if source is None else next(source, None)

    def answer(self) -> str:
        """The words of the answer among the pieces."""
        return "".join(text for kind, text, _ in self.each(native=False) if kind in ANSWER)


class NativeNumbers(Struct, eq=False):
    """The numbers of the native payloads of a reply. Events of the stream, text with its bytes included, are
    numbered one after the other, any other payload behind the highest number so far; else a mark says so.
    """

    _streamed: int = 0
    _highest: int = 0
    _marks: dict[int, tuple[int, Any]] = {}
    _place: int = 0

    def enter(self, pieces: Pieces) -> None:
        """The payloads of these pieces are next."""
        self._place = 0
        self._marks = {place: (number, facts) for place, number, facts in _read_list(pieces.marks)}

    def take(self, kind: PayloadKind) -> tuple[int, dict[str, Any]]:
        """Number and metadata of the next one."""
        usual = (self._streamed if kind == "stream_event" else self._highest) + 1
        number, facts = self._marks.get(self._place, (usual, None))
        self._place += 1
        if kind == "stream_event":
            self._streamed = number
        self._highest = max(self._highest, number)
        return number, facts or {}


def _read_list(raw: Raw) -> list[Any]:
    """A list that was left as the bytes it is."""
    value: list[Any] = msgspec.json.decode(raw, type=list)
    return value
