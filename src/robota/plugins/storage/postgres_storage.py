"""Entries in a table of a PostgreSQL database; needs the extra `postgres`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from robota.core.errors import ConfigurationError, PluginError
from robota.core.jsontext import encode
from robota.core.messages import JsonObject
from robota.plugins.storage.port import Entry
from robota.plugins.storage.tables import check_table

if TYPE_CHECKING:
    from psycopg import AsyncConnection

CONNECT_SECONDS = 5.0
CALL_SECONDS = 15.0


_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def to_jsonb(value: JsonObject) -> str:
    """The text of a value; `jsonb` knows no NUL, which becomes the sign for a lost character."""
    return _NUL.sub(r"\1\\ufffd", encode(value).decode())


class PostgresStorage:
    """One table. A connection serves one call: batches are rare, and servers are restarted."""

    def __init__(self, url: str, *, table: str, limit: int) -> None:
        """`url` as PostgreSQL reads it, such as `postgresql://user@host/database`."""
        self._url = url
        self._table = check_table(table)
        self._limit = limit
        try:
            import psycopg  # noqa: F401, PLC0415 - an extra, asked for where it is chosen
        except ImportError as error:
            raise ConfigurationError(
                "Keeping something in PostgreSQL needs psycopg: pip install 'robota[postgres]'."
            ) from error

    async def write(self, entries: Sequence[Entry]) -> None:
        table, rows = self._table, [(entry.key or None, to_jsonb(entry.value)) for entry in entries]
        async with self._open() as database, database.cursor() as cursor:
            keys = [key for key, _ in rows if key is not None]
            if keys:
                await cursor.execute(f"DELETE FROM {table} WHERE key = ANY(%s)".encode(), (keys,))
            insert = f"INSERT INTO {table} (key, value) VALUES (%s, %s::jsonb)"
            await cursor.executemany(insert.encode(), rows)
            last = f"SELECT id FROM {table} ORDER BY id DESC LIMIT 1 OFFSET %s"
            await cursor.execute(f"DELETE FROM {table} WHERE id <= ({last})".encode(), (self._limit,))

    async def read(self) -> list[Entry]:
        async with self._open() as database, database.cursor() as cursor:
            await cursor.execute(f"SELECT key, value::text FROM {self._table} ORDER BY id".encode())
            found = await cursor.fetchall()
        return [Entry(msgspec.json.decode(value), key or "") for key, value in found]

    async def remove(self, key: str) -> bool:
        async with self._open() as database:
            done = await database.execute(f"DELETE FROM {self._table} WHERE key = %s".encode(), (key,))
            return done.rowcount > 0

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[AsyncConnection]:
        import psycopg  # noqa: PLC0415 - see above

        try:
            async with (
                asyncio.timeout(CALL_SECONDS),
                await psycopg.AsyncConnection.connect(
                    self._url, connect_timeout=int(CONNECT_SECONDS)
                ) as database,
            ):
                # Two that make the table at the same time would meet in PostgreSQL's catalogue.
                await database.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self._table,))
                await database.execute(
                    f"CREATE TABLE IF NOT EXISTS {self._table} "
                    "(id BIGSERIAL PRIMARY KEY, key TEXT UNIQUE, value JSONB NOT NULL)".encode()
                )
                yield database
        except (psycopg.Error, OSError, TimeoutError) as error:
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise PluginError(f"The table {self._table} in PostgreSQL cannot be used: {said}.") from error
