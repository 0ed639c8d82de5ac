"""Finds the first place where two logs of a session differ in more than the clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

from msgspec import Struct

from robota.core.messages import Json
from robota.sessions.session_log import LogEntry

_LEFT_OUT = frozenset(("timestamp", "seq", "sessionId"))
_NOT_COMPARED = frozenset(("notice", "context_loaded", "session_resumed", "run_start"))
"""What depends on the world around a session, or has been compared otherwise."""
_IN_BATCH = frozenset(("hook_executed", "permission_decided", "tool_original", "tool_execution_request"))


class Divergence(Struct, frozen=True, kw_only=True):
    """Where a replay went another way than the recording."""

    step: int
    """Messages that were in the conversation at this point."""
    event: str
    field: str
    """Empty when a whole event is missing or too many."""
    recorded: Json
    replayed: Json

    def __str__(self) -> str:
        where = f"{self.event}.{self.field}" if self.field else self.event
        return f"Step {self.step}: {where} was {self.recorded!r:.200}, now it is {self.replayed!r:.200}."


def first_divergence(
    recorded: Iterable[LogEntry], replayed: Iterable[LogEntry], *, step: int = 0, prefix: bool = False
) -> Divergence | None:
    """`step` messages were there before; with `prefix` the recording may end early."""
    for ours, theirs in zip_longest(in_order(recorded), in_order(replayed)):
        if ours is None and prefix:
            return None
        difference = compare_entries(ours, theirs)
        if difference is not None:
            field, before, after = difference
            event = str((ours or theirs or {}).get("event"))
            return Divergence(step=step, event=event, field=field, recorded=before, replayed=after)
        if ours is not None and ours["event"] in ("history_mutation", "compaction_marked"):
            step += 1
    return None


def compare_entries(ours: LogEntry | None, theirs: LogEntry | None) -> tuple[str, Json, Json] | None:
    """The first field that differs, and its two values."""
    if ours is None or theirs is None or ours["event"] != theirs["event"]:
        return "", _name(ours), _name(theirs)
    for field in {**ours, **theirs}:
        if field not in _LEFT_OUT and ours.get(field) != theirs.get(field):
            return field, ours.get(field), theirs.get(field)
    return None


def in_order(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """The entries to compare. What parallel calls do before they end depends on timing: sorted by call."""
    waiting: list[LogEntry] = []
    in_batch = False
    for entry in entries:
        event = entry["event"]
        if event in _NOT_COMPARED:
            continue
        if in_batch and event in _IN_BATCH:
            waiting.append(entry)
            continue
        if in_batch and event != "tool_execution_result":
            in_batch = False
            yield from sorted(waiting, key=_call_of)
            waiting = []
        if event == "tool_batch_started":
            in_batch = True
        yield entry
    yield from sorted(waiting, key=_call_of)


def _call_of(entry: LogEntry) -> str:
    return str(entry.get("callId") or "")


def _name(entry: LogEntry | None) -> str:
    return "nothing" if entry is None else str(entry["event"])
