"""A session logger of the user's own: told of every record, redacted, besides the journal or in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec.json import decode

from robota.core.errors import describe_exception
from robota.core.messages import JsonObject
from robota.sessions.journal.port import JournalProblem, Position, SessionJournal
from robota.sessions.journal.records import Record


class SessionLogger(Protocol):
    """Whoever wants to know what happens in sessions: a database, a queue, a file in a format of its own."""

    def log(self, session_id: str, event: str, data: JsonObject) -> None:
        """One record, in the order of the journal. It must not wait; what it raises is told as trouble."""


class LoggedJournal:
    """A journal that tells a logger of what is written. Without an `inner` one nothing else is kept."""

    def __init__(self, session_id: str, logger: SessionLogger, inner: SessionJournal | None = None) -> None:
        self.session_id = session_id
        self._logger = logger
        self._inner = inner
        self._trouble = ""
        self._last = Position()

    @property
    def on_trouble(self) -> Callable[[str], None] | None:
        return self._on_trouble if self._inner is None else self._inner.on_trouble

    @on_trouble.setter
    def on_trouble(self, hear: Callable[[str], None] | None) -> None:
        self._on_trouble = hear
        if self._inner is not None:
            self._inner.on_trouble = hear

    _on_trouble: Callable[[str], None] | None = None

    @property
    def path(self) -> str:
        return "" if self._inner is None else self._inner.path

    @property
    def last(self) -> Position:
        return self._last if self._inner is None else self._inner.last

    @property
    def saved(self) -> int:
        return self._last.record if self._inner is None else self._inner.saved

    @property
    def size(self) -> int:
        return 0 if self._inner is None else self._inner.size

    @property
    def trouble(self) -> str:
        return self._trouble or ("" if self._inner is None else self._inner.trouble)

    async def open(self) -> Position:
        return self._last if self._inner is None else await self._inner.open()

    def append(self, body: bytes, *, event: int, hold: bool = False) -> int:
        if self._inner is None:
            number = self._last.record + 1
            self._last = Position(number, event, closed=False)
        else:
            number = self._inner.append(body, event=event, hold=hold)
        self._tell(body)
        return number

    def _tell(self, body: bytes) -> None:
        data = decode(b"{" + body)
        try:
            self._logger.log(self.session_id, data.pop("event"), data)
        except Exception as error:  # noqa: BLE001 - a logger is foreign code, and the session goes on
            self._complain(f"The session logger failed: {describe_exception(error)}")
        else:
            self._complain("")

    def _complain(self, sentence: str) -> None:
        changed, self._trouble = sentence != self._trouble, sentence
        if changed and self.on_trouble is not None:
            self.on_trouble(sentence)

    def release(self) -> None:
        if self._inner is not None:
            self._inner.release()

    async def sync(self) -> bool:
        return True if self._inner is None else await self._inner.sync()

    def put(self, payload: bytes) -> bytes:
        return payload if self._inner is None else self._inner.put(payload)

    def read(self, *, after_event: int = 0) -> Iterator[Record | JournalProblem]:
        return iter(()) if self._inner is None else self._inner.read(after_event=after_event)

    async def aclose(self) -> None:
        if self._inner is not None:
            await self._inner.aclose()
