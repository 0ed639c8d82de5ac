"""Finds the first place where two logs of a session differ in more than the clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TypeAlias

from msgspec import Struct

from robota.core.messages import Json
from robota.sessions.journal.entries import LazyList, LogEntry
from robota.sessions.usage.budget import is_about_time, is_about_use

_LEFT_OUT = frozenset(("timestamp", "seq", "sessionId", "epoch", "budget"))
"""A replay has a budget only where it knows all that was spent."""
_NOT_COMPARED = frozenset(
    ("context_loaded", "session_resumed", "run_start", "question_asked", "question_closed", "model_change",
     "context", "tool_progress", "subagent", "background_task_event", "background_job_group_event")
)  # fmt: skip
"""What depends on the world around a session, follows from something that is compared, or was told of work
beside it and is told again near its place."""
_IN_BATCH = frozenset(
    ("hook_executed", "permission_decided", "tool_original", "notice", "session_change", "settings_change",
     "inbox", "history_entry")
)  # fmt: skip
_SIZES = {
    "session_init": frozenset(("systemPromptLength",)),
    "pre_run": frozenset(("historyChars", "historyEstTokens")),
    "context_compact": frozenset(("before", "after")),
}
"""Figures that follow from the length of texts."""
_FACTS = frozenset(("session_init", "pre_run"))
"""What a session is, told before it does anything."""
_STEPS = frozenset(("history_mutation", "compaction_marked"))
_Difference: TypeAlias = tuple[str, Json, Json]


class Divergence(Struct, frozen=True, kw_only=True):
    """Where a replay went another way than the recording."""

    step: int
    """Messages that were in the conversation at this point."""
    seq: int
    """The record of the journal, 0 where it has none."""
    event: str
    field: str
    """The way to the value that differs; empty when a whole event is missing or too many."""
    recorded: Json
    replayed: Json

    def __str__(self) -> str:
        where = f"{self.event}.{self.field}" if self.field else "the next event"
        return f"Step {self.step}: {where} was {self.recorded!r:.200}, now it is {self.replayed!r:.200}."


_PLAIN = frozenset({str, int, float, bool, type(None)})


class LogComparison(Struct, eq=False, kw_only=True):
    """Compares entry by entry. Histories that grow are compared once, however many entries have them."""

    step: int = 0
    """Messages that were there before."""
    sizes: bool = True
    """Not if texts may have had another length."""
    facts: bool = True
    """Not if a session is tried with other options: that they are others is no news."""
    spending: bool = False
    """Whether all that was spent is known, so that the same part of a budget must be used."""
    _compared: dict[tuple[object, ...], int] = {}

    def first_divergence(
        self, recorded: Iterable[LogEntry], replayed: Iterable[LogEntry], *, prefix: bool = False
    ) -> Divergence | None:
        """With `prefix` either log may end early."""
        for ours, theirs in self._pair(in_order(recorded, cut=prefix), in_order(replayed, cut=prefix)):
            if prefix and (ours is None or theirs is None):
                return None
            difference = self._compare(ours, theirs)
            if difference is not None:
                field, before, after = difference
                known = ours or theirs or {}
                return Divergence(
                    step=self.step,
                    seq=int((ours or {}).get("seq", 0)),
                    event=str(known.get("event")),
                    field=field,
                    recorded=before,
                    replayed=after,
                )
            if ours is not None and ours["event"] in _STEPS:
                self.step += 1
        return None

    def _compare(self, ours: LogEntry | None, theirs: LogEntry | None) -> _Difference | None:
        if ours is None or theirs is None or ours["event"] != theirs["event"]:
            return "", _name(ours), _name(theirs)
        if not self.facts and ours["event"] in _FACTS:
            return None
        ignored = _LEFT_OUT if self.sizes else _LEFT_OUT | _SIZES.get(str(ours["event"]), frozenset())
        fields = (field for field in {**ours, **theirs} if field not in ignored)
        return self._first((field, ours.get(field), theirs.get(field)) for field in fields)

    def _pair(
        self, recorded: Iterator[LogEntry], replayed: Iterator[LogEntry]
    ) -> Iterator[tuple[LogEntry | None, LogEntry | None]]:
        """Both logs side by side. A notice that only the recording has came from its disk, and is passed
        over, unless it follows from what was spent."""
        for theirs in replayed:
            ours = next(recorded, None)
            said = theirs.get("message") if theirs["event"] == "notice" else None
            while ours is not None and self._is_of_the_disk(ours) and ours["message"] != said:
                ours = next(recorded, None)
            yield ours, theirs
        for ours in recorded:
            if not self._is_of_the_disk(ours):
                yield ours, None

    def _is_of_the_disk(self, entry: LogEntry) -> bool:
        return entry["event"] == "notice" and not (self.spending and is_about_use(str(entry["message"])))

    def _differ(self, path: str, ours: Json, theirs: Json) -> _Difference | None:
        if type(ours) in _PLAIN or type(theirs) in _PLAIN:  # most values; the rest takes ten times as long
            return None if ours == theirs else (path, ours, theirs)
        if isinstance(ours, LazyList) and isinstance(theirs, LazyList):
            return self._differ_in_list(path, ours, theirs, self._known(path, ours, theirs))
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            keys = {**ours, **theirs}
            return self._first((f"{path}.{key}", ours.get(key), theirs.get(key)) for key in keys)
        if _is_list(ours) and _is_list(theirs):
            return self._differ_in_list(path, ours, theirs, 0)
        return None if ours == theirs else (path, ours, theirs)

    def _differ_in_list(
        self, path: str, ours: Sequence[Json], theirs: Sequence[Json], start: int
    ) -> _Difference | None:
        pairs = enumerate(zip_longest(ours[start:], theirs[start:]), start)
        return self._first((f"{path}[{at}]", one, other) for at, (one, other) in pairs)

    def _first(self, pairs: Iterable[_Difference]) -> _Difference | None:
        """The first difference between values that should be equal, each with the way to it."""
        for path, ours, theirs in pairs:
            found = self._differ(path, ours, theirs)
            if found is not None:
                return found
        return None

    def _known(self, path: str, ours: LazyList, theirs: LazyList) -> int:
        """How many items of two growing lists were found equal before."""
        if ours.source is None or theirs.source is None or len(ours) != len(theirs):
            return 0
        key = (path, ours.source, theirs.source)
        known = self._compared.get(key, 0)
        self._compared[key] = len(ours)
        return min(known, len(ours))


def in_order(entries: Iterable[LogEntry], *, cut: bool = False) -> Iterator[LogEntry]:
    """The entries to compare. What parallel calls do before they end depends on timing, so it is moved to
    the end of its call; notices that have no call come after the batch. In a log that is `cut` a batch may
    have no end, and then no place for them."""
    waiting: dict[str, list[LogEntry]] = {}
    in_batch = False
    for entry in entries:
        event = entry["event"]
        if event in _NOT_COMPARED or (event == "notice" and is_about_time(str(entry["message"]))):
            continue
        if in_batch and event in _IN_BATCH:
            waiting.setdefault(str(entry.get("callId") or ""), []).append(entry)
            continue
        if event == "tool_execution_result":
            yield from waiting.pop(str(entry.get("callId")), ())
        elif in_batch and event != "tool_execution_request":
            in_batch = False
            yield from _settle(waiting)
        in_batch = in_batch or event == "tool_batch_started"
        yield entry
    if not (cut and in_batch):
        yield from _settle(waiting)


def _settle(waiting: dict[str, list[LogEntry]]) -> Iterator[LogEntry]:
    for call_id in sorted(waiting):
        found = waiting.pop(call_id)
        yield from found if call_id else sorted(found, key=lambda entry: str(entry.get("message")))


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _name(entry: LogEntry | None) -> str:
    return "nothing" if entry is None else str(entry["event"])
