"""When the store's record of a session is written anew.

The journal has everything, so a snapshot may lag behind it; `SessionStore.load` makes up the difference. It
is written when a good part has been added since the last one, so that saving a long conversation does not
cost more with every prompt. A store without a journal gets each one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import to_builtins

from robota.core.errors import from_unknown
from robota.core.messages import JsonObject

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle

    from robota.sessions.session import Session
    from robota.sessions.store.session_record import SessionRecord

MOMENT = 2.0
"""Seconds after a prompt."""
SMALL_JOURNAL = 64 * 1024
"""Bytes up to which a snapshot is written after each prompt."""
GROWTH = 0.1
"""The part of a larger journal that must be new."""


class Snapshots:
    __slots__ = ("_loop", "_saved_at", "_session", "_timer", "trouble")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._saved_at = 0
        self._timer: TimerHandle | None = None
        self._loop: AbstractEventLoop | None = None
        self.trouble = ""
        """Why the last one could not be written."""

    def save_if_due(self) -> None:
        """After a prompt: at once where the store is all there is, else when the session has a moment."""
        session = self._session
        if session.store is None or not session.life.scribe.opened:
            return
        if session.life.scribe.logger is None:
            self.save()
        elif self._is_due():
            import asyncio  # noqa: PLC0415 - a loop is running, so this is a look-up

            loop = asyncio.get_running_loop()
            if self._timer is None or self._loop is not loop:  # that of another loop may never come
                self._loop, self._timer = loop, loop.call_later(MOMENT, self.save)

    def save(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        store = self._session.store
        if store is None:
            return
        try:
            store.save(self._redacted())
        except Exception as error:  # noqa: BLE001 - a store may be anybody's; the journal does not need it
            trouble = f"The session could not be saved: {from_unknown(error)}"
            if not self.trouble:
                self._session.life.scribe.notice(trouble)
            self.trouble = trouble
        else:
            self.trouble = ""
            self._saved_at = self._written()

    def _is_due(self) -> bool:
        written = self._written()
        return written <= SMALL_JOURNAL or written - self._saved_at >= written * GROWTH

    def _written(self) -> int:
        logger = self._session.life.scribe.logger
        return 0 if logger is None else logger.journal.file.bytes_written

    def _redacted(self) -> SessionRecord | JsonObject:
        """The record without what this process must not give away; the store does not know its keys."""
        redactor, record = self._session.options.redactor, self._record()
        if redactor is None:
            return record
        fields: JsonObject = redactor.value(record.to_mapping())
        return fields

    def _record(self) -> SessionRecord:
        from robota.core.tool import tool_schema  # noqa: PLC0415 - comes with the first save
        from robota.sessions.store.message_codec import history_entry_to_record, message_to_record  # noqa: PLC0415
        from robota.sessions.store.session_record import SessionRecord  # noqa: PLC0415

        session = self._session
        agent, logger = session.agent, session.life.scribe.logger
        return SessionRecord(
            id=session.session_id,
            cwd=session.cwd,
            name=session.name,
            model=agent.model or None,
            system_prompt=agent.system_message,
            tool_schemas=[to_builtins(tool_schema(tool)) for tool in agent.tools],
            journal_seq=None if logger is None else logger.journal.file.seq - logger.journal.file.unsaved,
            messages=[message_to_record(message) for message in agent.messages],
            history=[history_entry_to_record(entry) for entry in agent.history],
        )
