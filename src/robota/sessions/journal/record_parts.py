"""Records that stand for several, because a line has more around its facts than in them.

The start of a call tells of the batch it begins and of a decision that was made at once; the message of a
reply has the pieces of its stream that were not written yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from robota.core.messages import Json, JsonObject
from robota.sessions.journal.reader import JournalRecord

_COMMON = ("crc", "v", "seq", "timestamp", "sessionId", "run", "round")


def split_record(
    record: JournalRecord, fields: Mapping[str, Json]
) -> Iterator[tuple[JournalRecord, Mapping[str, Json]]]:
    """The records that this one stands for, in the order in which they happened."""
    common = {name: fields[name] for name in _COMMON if name in fields}
    if record.event == "message" and "stream" in fields:
        stream = fields["stream"]
        lost = stream.get("kind") == "external-payload"  # a payload that could not be read stays a reference
        yield _part(record, "stream", {**common, **({"native": stream} if lost else stream)})
        yield record, {name: value for name, value in fields.items() if name != "stream"}
        return
    if record.event not in ("tool_start", "tool_result") or not ("batch" in fields or "decided" in fields):
        yield record, fields
        return
    if "batch" in fields:
        yield _part(record, "tool_batch_started", {**common, **fields["batch"]})
    rest = {name: value for name, value in fields.items() if name not in ("batch", "decided")}
    yield record, rest
    if "decided" in fields:
        decided = {**common, "index": fields.get("index", 0), **fields["decided"]}
        yield _part(record, "permission_decided", decided)


def _part(record: JournalRecord, event: str, fields: JsonObject) -> tuple[JournalRecord, Mapping[str, Json]]:
    return replace(record, event=event), {**fields, "event": event}
