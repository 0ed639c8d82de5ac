"""Tests that every journal of a session must pass, ours and yours. Subclass the suite in a test module.

    class TestMyJournal(JournalConformance):
        def make_journal(self, directory, session_id):
            return MyJournal(directory, session_id)

Two journals made for one directory and session are two views of the same records. Where a journal keeps them
is its own business; one that does not refuse a second writer says `exclusive = False`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from robota.core.errors import StorageError
from robota.core.jsontext import encode
from robota.sessions.journal.port import JournalProblem, Position, SessionJournal
from robota.sessions.journal.records import (
    NoticeRecord,
    Record,
    RunBegan,
    RunEnded,
    SessionEnded,
    Unknown,
    UserRecord,
)

LARGE = 200_000


class JournalConformance:
    pytestmark: ClassVar = [pytest.mark.anyio]
    exclusive = True
    """Whether a second writer is refused."""

    def make_journal(self, directory: Path, session_id: str) -> SessionJournal:
        raise NotImplementedError

    @asynccontextmanager
    async def opened(self, directory: Path, session_id: str = "s-1") -> AsyncIterator[SessionJournal]:
        journal = self.make_journal(directory, session_id)
        await journal.open()
        try:
            yield journal
        finally:
            await journal.aclose()

    def write(self, journal: SessionJournal, record: Record, *, event: int, hold: bool = False) -> int:
        record.ev = event
        return journal.append(encode(record)[1:], event=event, hold=hold)

    def read(self, journal: SessionJournal, after_event: int = 0) -> list[Record]:
        """Everything in it, which must be without a problem."""
        items = list(journal.read(after_event=after_event))
        assert not [item for item in items if isinstance(item, JournalProblem)]
        return [item for item in items if isinstance(item, Record)]

    def write_runs(self, journal: SessionJournal, count: int) -> None:
        """Runs of five events each: the start, three notices, the end."""
        for number in range(count):
            first = number * 5 + 1
            self.write(journal, UserRecord(input=f"prompt {number}"), event=first - 1)
            self.write(journal, RunBegan(run=number + 1, execution_id=f"e{number}"), event=first)
            for at in range(3):
                self.write(journal, NoticeRecord(message=f"{number}.{at}"), event=first + 1 + at)
            self.write(journal, RunEnded(run=number + 1), event=first + 4)

    async def test_a_new_journal_is_empty(self, tmp_path: Path) -> None:
        journal = self.make_journal(tmp_path, "s-1")
        assert await journal.open() == Position(0, 0, closed=True)
        assert (journal.session_id, journal.trouble, journal.saved) == ("s-1", "", 0)
        await journal.aclose()

    async def test_records_come_back_in_order_with_their_numbers(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as journal:
            texts = ["plain", "ä 🐢 \u2028 \x00", 'a "quoted"\nline']
            numbers = [
                self.write(journal, NoticeRecord(message=text), event=at) for at, text in enumerate(texts, 1)
            ]

            found = self.read(journal)

            assert numbers == [record.seq for record in found] == [1, 2, 3]
            assert [record.ev for record in found] == [1, 2, 3]
            assert [getattr(record, "message", "") for record in found] == texts
            assert {record.session_id for record in found} == {"s-1"}
            assert (journal.last.record, journal.last.event, journal.saved) == (3, 3, 3)
            assert journal.size > 0

    async def test_a_record_that_was_held_stands_before_the_next_one(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as journal:
            self.write(journal, NoticeRecord(message="one"), event=1)
            held = self.write(journal, NoticeRecord(message="two"), event=2, hold=True)
            assert journal.last.event == 2
            after = self.write(journal, NoticeRecord(message="three"), event=3)
            self.write(journal, NoticeRecord(message="four"), event=4, hold=True)
            journal.release()

            found = self.read(journal)

            assert (held, after) == (2, 3)
            assert [record.seq for record in found] == [1, 2, 3, 4]
            assert [getattr(record, "message", "") for record in found] == ["one", "two", "three", "four"]

    async def test_what_was_synced_is_there_for_the_next_process(self, tmp_path: Path) -> None:
        first = self.make_journal(tmp_path, "s-1")
        await first.open()
        self.write_runs(first, 2)
        self.write(first, NoticeRecord(message="held"), event=11, hold=True)
        assert await first.sync()
        await first.aclose()

        second = self.make_journal(tmp_path, "s-1")
        assert await second.open() == Position(13, 11, closed=False)
        assert self.write(second, NoticeRecord(message="on"), event=12) == 14
        assert len(self.read(second)) == 14
        await second.aclose()

    async def test_a_journal_says_whether_its_session_ended_in_good_order(self, tmp_path: Path) -> None:
        first = self.make_journal(tmp_path, "s-1")
        await first.open()
        self.write_runs(first, 1)
        self.write(first, SessionEnded(reason="other"), event=5)
        await first.aclose()

        second = self.make_journal(tmp_path, "s-1")
        assert (await second.open()).closed
        self.write(second, NoticeRecord(message="more"), event=6)
        assert not second.last.closed
        await second.aclose()

    async def test_large_values_come_back_whole(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as journal:
            large = "x" * LARGE
            kept = journal.put(encode(large))
            journal.append(b'"event":"notice","ev":1,"message":%b}' % kept, event=1)

            [found] = self.read(journal)

            assert getattr(found, "message", "") == large

    @pytest.mark.parametrize("after", [0, 1, 4, 5, 7, 10, 14, 15, 99])
    async def test_reading_behind_an_event_begins_with_its_run(self, tmp_path: Path, after: int) -> None:
        async with self.opened(tmp_path) as journal:
            self.write_runs(journal, 3)

            found = self.read(journal, after_event=after)

            told = {record.ev for record in found if not isinstance(record, UserRecord)}
            assert set(range(after + 1, 16)) <= told
            assert isinstance(found[0], UserRecord)
            later = [record for record in found if record.ev > after]
            if later and not isinstance(later[0], RunBegan):
                assert any(isinstance(record, RunBegan) for record in found[: found.index(later[0])])

    async def test_an_unknown_record_is_not_lost(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as journal:
            journal.append(b'"event":"from_the_future","ev":3,"a":{"b":[1,2]}}', event=3)

            [found] = self.read(journal)

            assert isinstance(found, Unknown)
            assert (found.kind, found.fields["a"], found.ev) == ("from_the_future", {"b": [1, 2]}, 3)

    async def test_sessions_do_not_see_each_other(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as first, self.opened(tmp_path, "s-2") as second:
            self.write(first, NoticeRecord(message="one"), event=1)
            self.write(second, NoticeRecord(message="two"), event=1)

            assert [getattr(record, "message", "") for record in self.read(first)] == ["one"]
            assert [getattr(record, "message", "") for record in self.read(second)] == ["two"]

    async def test_only_one_may_write(self, tmp_path: Path) -> None:
        first, second = self.make_journal(tmp_path, "s-1"), self.make_journal(tmp_path, "s-1")
        await first.open()
        self.write(first, NoticeRecord(message="one"), event=1)
        if self.exclusive:
            with pytest.raises(StorageError, match="s-1"):
                await second.open()
        await first.aclose()
        assert (await second.open()).record == 1
        await second.aclose()
