"""How far a replay has come, counted in records, and what else was done to the session on the way."""

from __future__ import annotations

from collections.abc import Callable

from robota.sessions.journal.records import Record
from robota.sessions.replay.action import Action
from robota.sessions.replay.recording import UNCOUNTED

AFTER_END = frozenset(("hook_executed",))
"""Records that may follow the end of a compaction."""


class RecordClock:
    """Does what was done meanwhile at the state of the clock at which it was done."""

    __slots__ = ("_at_it", "_do", "_notices", "_time", "action")

    def __init__(self, action: Action, do: Callable[[Record], None]) -> None:
        self.action = action
        self._do = do
        self._time = 0
        """Records so far."""
        self._notices = 0
        """Since then."""
        self._at_it = False
        """Something is being done: its own records do not count, and what comes next has to wait for it."""

    def begin(self, action: Action) -> None:
        self.action = action
        self._time = self._notices = 0
        self.catch_up()

    def end(self) -> None:
        """What was not done in its place by other code is done now."""
        for time in sorted(self.action.asides):
            self._time = time
            self.catch_up(late=True)

    def tick(self, event: str) -> None:
        """The session wrote a record."""
        if event == "notice":
            self._notices += 1
        elif event in UNCOUNTED:
            return
        else:
            self.catch_up(late=True)
            self._time, self._notices = self._time + 1, 0
        self.catch_up()

    def catch_up(self, *, late: bool = False) -> None:
        """Do what is due: at this time and after so many notices, or in any case if `late`."""
        waiting = None if self._at_it else self.action.asides.get(self._time)
        while waiting and (late or waiting[0][0] <= self._notices):
            self.do(waiting.pop(0)[1])

    def do(self, aside: Record) -> None:
        """Do to the session what was done while it was at work."""
        now, self._at_it = (self._time, self._notices), True
        self._do(aside)
        self._time, self._notices = now
        self._at_it = False

    def is_beyond(self, event: str) -> bool:
        """Whether such a record is more than there is of an action whose process ended."""
        action = self.action
        if self._at_it or self._time < action.clock:
            return False
        if event == "notice":
            return self._notices >= action.last_notices
        return event not in UNCOUNTED and (not action.finished or event in AFTER_END)
