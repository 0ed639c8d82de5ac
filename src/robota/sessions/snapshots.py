"""When the store's record of a session is written anew.

The journal has everything, so a snapshot may lag behind it; `SessionStore.load` makes up the difference. It
is written when a good part has been added since the last one, so that saving a long conversation does not
cost more with every prompt. A store without a journal gets each one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Raw, Struct, field

from robota.core.errors import from_unknown
from robota.core.jsontext import encode
from robota.core.messages import HistoryEntry, JsonObject, Message, SystemMessage

if TYPE_CHECKING:
    from robota.sessions.log import SessionLog
    from robota.sessions.redaction import Redactor
    from robota.sessions.store.session_record import SessionRecord
    from robota.sessions.store.session_store import SessionStorePort

MOMENT = 2.0
"""Seconds after a prompt."""
SMALL_JOURNAL = 64 * 1024
"""Bytes up to which a snapshot is written after each prompt."""
GROWTH = 0.1
"""The part of a larger journal that must be new."""


class RedactedHistory(Struct, eq=False, gc=False):
    """The messages and events of a conversation as JSON without secrets: each is made once, because none is
    ever changed."""

    _known: dict[int, tuple[object, bytes]] = {}

    def encode(
        self, messages: Sequence[Message], history: Sequence[HistoryEntry], redactor: Redactor
    ) -> tuple[Raw, Raw]:
        """Both lists of a snapshot."""
        known: dict[int, tuple[object, bytes]] = {}

        def look_up(value: Message | HistoryEntry) -> bytes:
            found = self._known.get(id(value)) or known.get(id(value))
            if found is None:
                found = (value, redactor.json(encode(value), repeated=isinstance(value, SystemMessage)))
            known[id(value)] = found
            return found[1]

        def entry(value: HistoryEntry) -> bytes:
            if value.category != "chat":
                return look_up(value)
            head = encode(
                {"id": value.id, "timestamp": value.timestamp, "category": "chat", "type": value.type}
            )
            return b'%b,"data":%b}' % (head[:-1], look_up(value.data))

        said = b"[%b]" % b",".join([look_up(message) for message in messages])
        happened = b"[%b]" % b",".join([entry(each) for each in history])
        self._known = known
        return Raw(said), Raw(happened)


class Snapshots(Struct, eq=False):
    _store: SessionStorePort | None
    _log: SessionLog
    _make_record: Callable[[RedactedHistory], Callable[[], SessionRecord | JsonObject]]
    _redacted: RedactedHistory = field(default_factory=RedactedHistory)
    _saving: asyncio.Future[None] | None = None
    """One is being written, in a thread."""
    _saved_at: int = 0
    _timer: asyncio.TimerHandle | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    trouble: str = ""
    """Why the last one could not be written."""

    def save_if_due(self) -> None:
        """After a prompt: at once where the store is all there is, else when the session has a moment."""
        if self._store is None or not self._log.opened or self._log.copy is not None:
            return
        if self._log.journal is None:
            with self._noting():
                self._store.save(self._make_record(self._redacted)())
        elif (written := self._written()) <= SMALL_JOURNAL or written - self._saved_at >= written * GROWTH:
            loop = asyncio.get_running_loop()
            if self._timer is None or self._loop is not loop:  # that of another loop may never come
                self._loop, self._timer = loop, loop.call_later(MOMENT, self._save_aside)

    def _save_aside(self) -> None:
        """Write one in a thread, so that a large one holds nobody up."""
        self._timer = None
        if self._store is not None and self._saving is None:
            self._saving = future = asyncio.ensure_future(self._save_in_thread())
            future.add_done_callback(lambda _: setattr(self, "_saving", None))

    async def finish(self) -> None:
        """The session ends: write the last one, behind one that is being written."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._saving is not None:
            await self._saving
        if self._store is not None:
            await self._save_in_thread()

    async def _save_in_thread(self) -> None:
        with self._noting():
            assert self._store is not None
            written, save, make = self._written(), self._store.save, self._make_record(self._redacted)
            await asyncio.to_thread(lambda: save(make()))
            self._saved_at = written

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Take note of how it went, and tell the user of the first failure."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a store may be anybody's; the journal does not need it
            before, self.trouble = self.trouble, f"The session could not be saved: {from_unknown(error)}"
            if not before:
                self._log.notice(self.trouble)
        else:
            self.trouble = ""

    def _written(self) -> int:
        journal = self._log.journal
        return 0 if journal is None else journal.size
