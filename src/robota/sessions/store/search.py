"""Full-text search over what was said in past sessions, as a part of their index.

Words match by their beginning, without regard to case, in any order; all of them must be in one message.
Scripts without spaces are indexed character by character. Where SQLite has no full-text search, every
message is looked at.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from typing import TypeAlias

import msgspec
from msgspec import Struct, to_builtins

from robota.core.errors import StorageError
from robota.core.messages import Json
from robota.sessions.files import Files
from robota.sessions.journal.conversation import ConversationFold
from robota.sessions.journal.file.reader import read_journal
from robota.sessions.journal.records import Record
from robota.sessions.store.message_codec import read_time
from robota.sessions.store.snapshot_file import SnapshotFile, is_journal_ahead
from robota.sessions.store.summary import text_of

PIECE = 64 * 1024
"""Characters of a message that are searched as one."""
_MOST_WORDS = 32
_LONGEST_WORD = 200
_JOINER = "\u2060"
_UNSPACED = re.compile(
    "([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])"
)
_TABLES = """
CREATE TABLE texts (
    session TEXT PRIMARY KEY, snapshot_time INTEGER, snapshot_size INTEGER, snapshot_inode INTEGER,
    journal_time INTEGER, journal_size INTEGER
) WITHOUT ROWID;
CREATE TABLE passages (
    number INTEGER PRIMARY KEY, session TEXT, message TEXT, role TEXT, timestamp TEXT, moment REAL
);
CREATE INDEX passages_of_session ON passages (session);
"""
_FULL_TEXT = "CREATE VIRTUAL TABLE words USING fts5 (body)"
_PLAIN = "CREATE TABLE words (rowid INTEGER PRIMARY KEY, body TEXT)"
_SAID_EVENTS = frozenset(
    ("message", "compaction_marked", "history_cleared", "history_rewound", "history_mutation")
)
_Said: TypeAlias = tuple[str, str, str, str]
"""Message id, role, time stamp, text."""


class SearchHit(Struct, frozen=True, kw_only=True):
    session_id: str
    message_id: str
    role: str
    """`user` or `assistant`."""
    timestamp: str
    snippet: str
    """The words in their surroundings, in one line."""


class _Spoken(Struct):
    role: Json = None
    content: Json = None
    id: Json = None
    timestamp: Json = None


class _SpokenRecord(Struct, rename="camel"):
    messages: list[_Spoken] = []
    journal_seq: int | None = None


_read_spoken = msgspec.json.Decoder(_SpokenRecord).decode


class SessionTexts(Struct, eq=False):
    """The part of the index that knows what was said."""

    _directory: str
    _files: Files
    _redact: Callable[[str], str]
    _full_text: bool

    @property
    def schema(self) -> str:
        return _TABLES + (_FULL_TEXT if self._full_text else _PLAIN)

    def refresh(
        self,
        database: sqlite3.Connection,
        found: Mapping[str, tuple[int, ...]],
        on_step: Callable[[int, int], object] | None = None,
    ) -> None:
        """Read the sessions that changed since they were read last."""
        known = {row[0]: row[1:] for row in database.execute("SELECT * FROM texts")}
        for id in known.keys() - found.keys():
            self._update(database, id, (), None)
        changed = [(id, marks) for id, marks in found.items() if known.get(id) != marks]
        for number, (id, marks) in enumerate(changed, 1):
            self._update(database, id, self._read(id, marks), marks)
            if on_step is not None:
                on_step(number, len(changed))

    def find(
        self, database: sqlite3.Connection, text: str, *, cwds: Iterable[str] | None, limit: int
    ) -> list[SearchHit]:
        words = [word[:_LONGEST_WORD] for word in _as_plain_text(text).split()[:_MOST_WORDS]]
        if not words:
            return []
        database.create_function("holds", 2, lambda body, word: word in body.casefold(), deterministic=True)
        conditions, values = self._conditions(words)
        if cwds is not None:
            places = list(cwds)
            conditions.append(
                f"session IN (SELECT id FROM sessions WHERE cwd IN ({', '.join('?' * len(places))}))"
            )
            values += places
        rows = database.execute(
            "SELECT number FROM words JOIN passages ON number = words.rowid "
            f"WHERE {' AND '.join(conditions)} ORDER BY moment DESC, number DESC LIMIT ?",
            (*values, limit),
        ).fetchall()
        return [self._hit(database, row[0], words) for row in rows]

    def _conditions(self, words: list[str]) -> tuple[list[str], list[Json]]:
        """The search as SQL. What full text knows as a word goes there; the rest is looked for as it is."""
        indexed = [word for word in words if self._full_text and any(map(str.isalnum, word))]
        others = [word for word in words if word not in indexed]
        conditions, values = ["holds(body, ?)"] * len(others), [word.casefold() for word in others]
        if indexed:
            phrases = (_spaced(word).replace('"', '""') for word in indexed)
            conditions.insert(0, "words MATCH ?")
            values.insert(0, " ".join(f'"{phrase}"*' for phrase in phrases))
        return conditions, list(values)

    def _hit(self, database: sqlite3.Connection, number: int, words: list[str]) -> SearchHit:
        session, message, role, timestamp = database.execute(
            "SELECT session, message, role, timestamp FROM passages WHERE number = ?", (number,)
        ).fetchone()
        body = database.execute("SELECT body FROM words WHERE rowid = ?", (number,)).fetchone()[0]
        return SearchHit(
            session_id=session,
            message_id=message.rpartition("#")[0],
            role=role,
            timestamp=timestamp,
            snippet=cut_snippet(body.replace(_JOINER, ""), words),
        )

    # --- reading sessions -------------------------------------------------------------------------------

    def _update(
        self, database: sqlite3.Connection, id: str, said: Iterable[_Said], marks: tuple[int, ...] | None
    ) -> None:
        """Have exactly these texts of a session; those that are there already are not touched."""
        database.execute("BEGIN IMMEDIATE")
        try:
            rows = database.execute("SELECT message, number FROM passages WHERE session = ?", (id,))
            outdated = dict(rows.fetchall())
            for message, role, timestamp, text in said:
                for start in range(0, len(text), PIECE):
                    key = f"{message}#{start // PIECE}"
                    if outdated.pop(key, None) is None:
                        self._add(database, (id, key, role, timestamp), text[start : start + PIECE])
            numbers = [(number,) for number in outdated.values()]
            database.executemany("DELETE FROM words WHERE rowid = ?", numbers)
            database.executemany("DELETE FROM passages WHERE number = ?", numbers)
            database.execute("DELETE FROM texts WHERE session = ?", (id,))
            if marks is not None:
                database.execute("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?)", (id, *marks))
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise

    def _add(self, database: sqlite3.Connection, passage: tuple[str, str, str, str], text: str) -> None:
        moment = read_time(passage[3])
        number = database.execute(
            "INSERT INTO passages (session, message, role, timestamp, moment) VALUES (?, ?, ?, ?, ?)",
            (*passage, moment.timestamp() if moment is not None else 0.0),
        ).lastrowid
        body = _as_plain_text(self._redact(text))
        database.execute(
            "INSERT INTO words (rowid, body) VALUES (?, ?)",
            (number, _spaced(body) if self._full_text else body),
        )

    def _read(self, id: str, marks: tuple[int, ...]) -> Iterator[_Said]:
        """What was said, from the snapshot and, where that knows more, from the journal."""
        path = f"{self._directory}/{id}.json"
        journal = f"{self._directory}/{id}.jsonl" if marks[4] >= 0 else ""
        seen: set[str] = set()
        with suppress(OSError, ValueError):
            record = _read_spoken(SnapshotFile(self._files, path).read())
            for number, message in enumerate(record.messages, 1):
                spoken = str(message.id or number)
                seen.add(spoken)
                yield from _keep(spoken, message.role, message.timestamp, message.content)
            seq = record.journal_seq
            if not journal or (seq is not None and not is_journal_ahead(self._files, journal, seq)):
                return
        if journal:
            with suppress(OSError, StorageError):
                yield from self._read_journal(journal, id, seen)

    def _read_journal(self, path: str, id: str, seen: set[str]) -> Iterator[_Said]:
        fold = ConversationFold()
        for item in read_journal(path, session_id=id, files=self._files, events=_SAID_EVENTS):
            message = fold.take(item) if isinstance(item, Record) else None
            if message is not None and message.id not in seen:
                stamp = to_builtins(message.timestamp)
                yield from _keep(message.id, message.role, stamp, message.content)


def has_full_text() -> bool:
    """Whether this Python's SQLite was built with full-text search."""
    with closing(sqlite3.connect(":memory:")) as database:
        return bool(database.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0])


def cut_snippet(body: str, words: list[str], *, before: int = 40, length: int = 160) -> str:
    """A piece of the text around the first of the words that is in it, in one line."""
    folded = body.lower()
    places = [at for word in words if (at := folded.find(word.lower())) >= 0]
    start = max(0, min(places, default=0) - before)
    end = min(len(body), start + length)
    text = " ".join(body[start:end].split())
    return f"{'…' if start else ''}{text}{'…' if end < len(body) else ''}"


def _keep(message: str, role: Json, timestamp: Json, content: Json) -> Iterator[_Said]:
    text = text_of(content)
    if role in ("user", "assistant") and text:
        yield message, role, timestamp if isinstance(timestamp, str) else "", text


def _spaced(text: str) -> str:
    """Characters of scripts without spaces set apart, so that each is a word of its own."""
    return _UNSPACED.sub(f"{_JOINER}\\1{_JOINER}", text)


def _as_plain_text(text: str) -> str:
    """Half characters, as a terminal may send them, and zeros, which end a text of SQLite, are not text."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
