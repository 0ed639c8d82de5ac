from __future__ import annotations

from pathlib import Path

from robota.core.messages import JsonObject
from robota.sessions.journal.file.file_journal import FileJournal
from robota.sessions.journal.port import LoggedJournal, MemoryJournal, SessionJournal
from robota.sessions.store.session_store import SessionStore
from robota.testing.journal_conformance import JournalConformance


class TestFileJournal(JournalConformance):
    def make_journal(self, directory: Path, session_id: str) -> SessionJournal:
        return FileJournal(str(directory), session_id)


class TestJournalOfASubagent(JournalConformance):
    def make_journal(self, directory: Path, session_id: str) -> SessionJournal:
        journal = SessionStore(directory).open_journal(session_id, agent_id="helper")
        assert journal is not None
        assert journal.path == f"{directory}/{session_id}/subagents/helper.jsonl"
        return journal


class TestJournalWithALogger(JournalConformance):
    def make_journal(self, directory: Path, session_id: str) -> SessionJournal:
        return LoggedJournal(session_id, _Deaf(), FileJournal(str(directory), session_id))


class _Deaf:
    def log(self, session_id: str, event: str, data: JsonObject) -> None:
        assert event
        assert "event" not in data


class TestMemoryJournal(JournalConformance):
    exclusive = False

    def make_journal(self, directory: Path, session_id: str) -> SessionJournal:
        return _kept.setdefault((directory, session_id), MemoryJournal(session_id))


_kept: dict[tuple[Path, str], MemoryJournal] = {}
