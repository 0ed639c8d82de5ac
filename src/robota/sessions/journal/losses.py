"""What is left of a conversation where records of its journal are lost or damaged.

A record that cannot be read costs itself: in its place stands a sentence that says so, and whatever refers to
it still finds its place by the number of the run, the round and the call.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from robota.core.jsontext import encode, is_json
from robota.core.messages import JsonObject, ToolCall
from robota.sessions.journal.file.payloads import KIND
from robota.sessions.journal.pieces import ANSWER, INPUT, Pieces
from robota.sessions.journal.records import (
    RECORD_TYPES,
    CallEnded,
    Record,
    ToolMessageRecord,
    Unknown,
    UserRecord,
)

LOST = "lost"
"""In the metadata of what stands for something that is lost."""
LOST_MESSAGE = "[A message of this conversation was lost: the session's journal is damaged here.]"
LOST_ANSWER = "[The words of this answer were lost: the session's journal is damaged here.]"
LOST_RESULT = (
    "Error: its result was lost. The session's journal is damaged here; the call may have had its effects."
)
MOST_LOST = 10_000
"""Messages in a row that get something in their place: a number beyond reason must not use up the memory."""


def salvage(record: Unknown) -> Record | None:
    """A record of ours without what it refers to and is lost; `None` if it says nothing without that."""
    kind = RECORD_TYPES.get(record.kind)
    if kind is None or not record.seq:
        return None
    lost = {name for name, value in record.fields.items() if is_reference(value)}
    if kind is UserRecord and lost:
        return None  # half a prompt is none
    left: JsonObject = {name: value for name, value in record.fields.items() if name not in lost}
    try:
        found = msgspec.json.decode(encode(left), type=kind)
    except msgspec.ValidationError:
        return None
    if isinstance(found, CallEnded) and lost & {"content", "error"}:
        failed = found.outcome != "success"
        return replace(found, content=LOST_RESULT, error=LOST_RESULT if failed else None)
    if isinstance(found, ToolMessageRecord) and "content" in lost:
        return replace(found, content=LOST_RESULT)
    return found


def is_reference(value: object) -> bool:
    return isinstance(value, dict) and value.get("kind") == KIND


def read_pieces(fields: JsonObject) -> Pieces:
    return msgspec.json.decode(encode(fields), type=Pieces)


def read_reply(streams: Sequence[Pieces]) -> tuple[str, tuple[ToolCall, ...]]:
    """The words and the calls of a reply, as far as its stream has them whole."""
    words: list[str] = []
    calls: dict[int, tuple[str, str, list[str]]] = {}
    for pieces in streams:
        for kind, text, beside in pieces.each(native=False):
            if kind in ANSWER:
                words.append(text)
            elif kind == INPUT:
                at, call_id, name = beside
                known = calls.setdefault(at, (call_id or "", name or "", []))
                calls[at] = (known[0] or call_id or "", known[1] or name or "", known[2])
                known[2].append(text)
    found: list[ToolCall] = []
    for at, (call_id, name, texts) in sorted(calls.items()):
        if at != len(found) or not call_id or not name or not is_json(arguments := "".join(texts)):
            break  # later ones would be counted wrongly
        found.append(ToolCall(call_id, name, arguments))
    return "".join(words) + (streams[-1].tail if streams else ""), tuple(found)
