"""When the store's record of a session is written anew.

The journal has everything, so a snapshot may lag behind it; `SessionStore.load` makes up the difference. It
is written when a good part has been added since the last one, so that saving a long conversation does not
cost more with every prompt. A store without a journal gets each one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from robota.core.errors import from_unknown
from robota.core.messages import JsonObject

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle

    from robota.sessions.log import SessionLog
    from robota.sessions.store.session_record import SessionRecord
    from robota.sessions.store.session_store import SessionStorePort

MOMENT = 2.0
"""Seconds after a prompt."""
SMALL_JOURNAL = 64 * 1024
"""Bytes up to which a snapshot is written after each prompt."""
GROWTH = 0.1
"""The part of a larger journal that must be new."""


class Snapshots:
    __slots__ = ("_log", "_loop", "_make_record", "_saved_at", "_store", "_timer", "trouble")

    def __init__(
        self,
        store: SessionStorePort | None,
        log: SessionLog,
        make_record: Callable[[], SessionRecord | JsonObject],
    ) -> None:
        self._store = store
        self._log = log
        self._make_record = make_record
        self._saved_at = 0
        self._timer: TimerHandle | None = None
        self._loop: AbstractEventLoop | None = None
        self.trouble = ""
        """Why the last one could not be written."""

    def save_if_due(self) -> None:
        """After a prompt: at once where the store is all there is, else when the session has a moment."""
        if self._store is None or not self._log.opened:
            return
        if self._log.journal is None:
            self.save()
        elif (written := self._written()) <= SMALL_JOURNAL or written - self._saved_at >= written * GROWTH:
            import asyncio  # noqa: PLC0415 - a loop is running, so this is a look-up

            loop = asyncio.get_running_loop()
            if self._timer is None or self._loop is not loop:  # that of another loop may never come
                self._loop, self._timer = loop, loop.call_later(MOMENT, self.save)

    def save(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._store is None:
            return
        try:
            self._store.save(self._make_record())
        except Exception as error:  # noqa: BLE001 - a store may be anybody's; the journal does not need it
            trouble = f"The session could not be saved: {from_unknown(error)}"
            if not self.trouble:
                self._log.notice(trouble)
            self.trouble = trouble
        else:
            self.trouble = ""
            self._saved_at = self._written()

    def _written(self) -> int:
        journal = self._log.journal
        return 0 if journal is None else journal.size
