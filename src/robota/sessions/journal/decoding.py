"""Lines of a journal as records, records taken apart where one stands for several, methods that take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, reduce
from operator import or_
from typing import Any

import msgspec
from msgspec.structs import replace

from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject
from robota.sessions.journal import records

EXTERNAL = b'"external-payload"'
"""In a line that refers to a payload."""


def decode_line(line: bytes, resolve: Callable[[JsonObject], JsonObject] | None = None) -> records.Record:
    """The record that a line of ours holds; `resolve` puts payloads into the places of their references.

    Raises `ValueError` for a line that is not JSON, or whose fields are not those of its event.
    """
    if resolve is not None and EXTERNAL in line:
        line = encode(resolve(decode(line)))
    try:
        return _decoder().decode(line)
    except msgspec.ValidationError:
        fields: JsonObject = decode(line)
        if fields.get("event") in records.RECORD_TYPES:
            raise
        return unknown_record(fields)


def unknown_record(fields: JsonObject) -> records.Unknown:
    """A record of somebody else."""
    seq, ev = (number if isinstance(number := fields.get(name), int) else 0 for name in ("seq", "ev"))
    stamp, session_id, event = (str(fields.get(name) or "") for name in ("timestamp", "sessionId", "event"))
    return records.Unknown(seq=seq, ev=ev, timestamp=stamp, session_id=session_id, kind=event, fields=fields)


@cache
def _decoder() -> msgspec.json.Decoder[records.Record]:
    return msgspec.json.Decoder(reduce(or_, records.RECORD_TYPES.values()))


def split_record(record: records.Record) -> Iterator[records.Record]:
    """The records that this one stands for, in the order in which they happened.

    A line has more around its facts than in them, so the start of a call tells of the batch it begins and of
    a decision that was made at once, and the message of a reply has the pieces that were not written yet.
    """
    if isinstance(record, records.MessageRecord | records.EmptyReply) and record.rest is not None:
        yield records.Stream(pieces=record.rest, **_common(record))
        yield replace(record, rest=None)
        return
    if not isinstance(record, records.CallBegan | records.CallEnded):
        yield record
        return
    if record.batch is not None:
        yield records.BatchBegan(batch=record.batch, **_common(record))
    verdict = record.verdict if isinstance(record, records.CallBegan) else None
    if verdict is None:
        yield record if record.batch is None else replace(record, batch=None)
    else:
        yield replace(record, batch=None, verdict=None)
        yield records.Decision(index=record.index, verdict=verdict, **_common(record))


def _common(record: records.RunRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in ("ev", "seq", "timestamp", "session_id", "run", "round")}


def is_run_start(name: str, start: str) -> bool:
    """Whether whoever wants to understand a run has to begin at a record of this name; `start` is the name of
    the record where they would begin without it."""
    return name == records.UserRecord.name or (
        name == records.RunBegan.name and start != records.UserRecord.name
    )


def parse_arguments(arguments: str) -> Json:
    """The arguments of a call as values; `None` for what is not JSON."""
    try:
        return decode(arguments)
    except ValueError:
        return None


def methods_by_record(owner: type) -> dict[type[records.Record], Callable[[Any, Any], Any]]:
    """The methods of a class that take records, by type: `take_<name>` takes the record of that name, as the
    methods of an `ast.NodeVisitor` do. One that is called after no record raises `KeyError`."""
    prefix = "take_"
    return {
        records.RECORD_TYPES[name.removeprefix(prefix)]: method
        for name, method in vars(owner).items()
        if name.startswith(prefix)
    }
