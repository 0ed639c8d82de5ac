"""A journal in a file for tests without an event loop: nothing in it ever waits for one."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from typing import Any, TypeVar

from robota.core.jsontext import encode
from robota.sessions.journal.file.file_journal import FileJournal

T = TypeVar("T")


def finish(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that does not suspend."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("It waits for something.")


class JournalFile:
    """`FileJournal` on any path, with the number of each record."""

    def __init__(self, path: str, session_id: str, **options: Any) -> None:
        self.journal = FileJournal(os.path.dirname(path), "any", **options)
        self.journal.path, self.journal.session_id = path, session_id
        self.journal._trouble._path = path
        self.journal._frame = b'Z","sessionId":%b,' % encode(session_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    @property
    def on_trouble(self) -> Any:
        return self.journal.on_trouble

    @on_trouble.setter
    def on_trouble(self, function: Any) -> None:
        self.journal.on_trouble = function

    def open(self) -> None:
        finish(self.journal.open())

    def append(self, body: bytes) -> int:
        return self.journal.append(body, event=0)

    def hold(self, body: bytes) -> None:
        self.journal.append(body, event=0, hold=True)

    def sync(self) -> bool:
        return finish(self.journal.sync())

    def close(self) -> None:
        finish(self.journal.aclose())

    @property
    def seq(self) -> int:
        return self.journal.last.record

    @property
    def synced_seq(self) -> int:
        return self.journal._synced

    @property
    def unsaved(self) -> int:
        return self.journal.last.record - self.journal.saved

    @property
    def bytes_written(self) -> int:
        return self.journal.size
