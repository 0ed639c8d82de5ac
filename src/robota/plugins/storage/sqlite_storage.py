"""Entries in a table of an SQLite file, which other programs may read with SQL."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TypeVar

import msgspec
from anyio import to_thread

from robota.core.errors import PluginError
from robota.core.jsontext import encode
from robota.core.private_directory import make_private_directories
from robota.plugins.storage.port import Entry
from robota.plugins.storage.tables import check_table

T = TypeVar("T")
_WAIT_SECONDS = 5.0


class SqliteStorage:
    """One table of one file. A connection serves one call, in a thread."""

    def __init__(self, path: str | os.PathLike[str], *, table: str, limit: int) -> None:
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self._table = check_table(table)
        self._limit = limit

    async def write(self, entries: Sequence[Entry]) -> None:
        table, rows = self._table, [(entry.key or None, encode(entry.value).decode()) for entry in entries]

        def put(database: sqlite3.Connection) -> None:
            keys = [(key,) for key, _ in rows if key is not None]
            database.executemany(f"DELETE FROM {table} WHERE key = ?", keys)
            database.executemany(f"INSERT INTO {table} (key, value) VALUES (?, ?)", rows)
            database.execute(
                f"DELETE FROM {table} WHERE id <= (SELECT id FROM {table} ORDER BY id DESC LIMIT 1 OFFSET ?)",
                (self._limit,),
            )

        await self._call(put)

    async def read(self) -> list[Entry]:
        found = await self._call(
            lambda database: database.execute(f"SELECT key, value FROM {self._table} ORDER BY id").fetchall()
        )
        return [Entry(msgspec.json.decode(value), key or "") for key, value in found]

    async def remove(self, key: str) -> bool:
        query = f"DELETE FROM {self._table} WHERE key = ?"
        return await self._call(lambda database: database.execute(query, (key,)).rowcount > 0)

    async def _call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with self._open() as database:
                return work(database)

        try:
            return await to_thread.run_sync(run)
        except (sqlite3.Error, OSError) as error:
            raise PluginError(f"The database {self.path} cannot be used: {error}.") from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        make_private_directories(os.path.dirname(self.path))
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            with database:
                database.execute(
                    f"CREATE TABLE IF NOT EXISTS {self._table} "
                    "(id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, value TEXT NOT NULL)"
                )
                yield database
