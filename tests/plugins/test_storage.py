"""One set of promises that every storage keeps, on real files, a real PostgreSQL and a real server."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.office import Receiver

from robota.core.errors import ConfigurationError, PluginError
from robota.plugins.posting import Patience, Poster
from robota.plugins.storage.file_storage import FileStorage
from robota.plugins.storage.port import Entry, Storage
from robota.plugins.storage.postgres_storage import PostgresStorage
from robota.plugins.storage.remote_storage import RemoteStorage
from robota.plugins.storage.sqlite_storage import SqliteStorage

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["file", "sqlite", pytest.param("postgres", marks=pytest.mark.system)])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "file":
        return FileStorage(tmp_path / "deep" / "entries.jsonl", limit=5)
    if request.param == "sqlite":
        return SqliteStorage(tmp_path / "deep" / "entries.db", table="entries", limit=5)
    url = request.getfixturevalue("postgres")
    return PostgresStorage(url, table=f"t_{os.urandom(4).hex()}", limit=5)


def values(entries: list[Entry]) -> list[Any]:
    return [entry.value["n"] for entry in entries]


async def test_a_new_storage_is_empty(storage: Storage) -> None:
    assert await storage.read() == []
    assert await storage.remove("nobody") is False


async def test_entries_come_back_in_the_order_in_which_they_were_written(storage: Storage) -> None:
    await storage.write([Entry({"n": 1, "text": 'ü\n"\\u0000 \\'}), Entry({"n": 2, "deep": [{"a": None}]})])
    await storage.write([Entry({"n": 3})])
    found = await storage.read()
    assert values(found) == [1, 2, 3]
    assert found[0].value["text"] == 'ü\n"\\u0000 \\'
    assert found[1].value["deep"] == [{"a": None}]


async def test_an_entry_takes_the_place_of_the_one_with_its_key(storage: Storage) -> None:
    await storage.write([Entry({"n": 1}, "a"), Entry({"n": 2}, "b")])
    await storage.write([Entry({"n": 3}, "a")])
    assert values(await storage.read()) == [2, 3]
    assert await storage.remove("a") is True
    assert values(await storage.read()) == [2]


async def test_only_the_latest_are_kept(storage: Storage) -> None:
    for start in range(0, 20, 4):
        await storage.write([Entry({"n": n}) for n in range(start, start + 4)])
    assert values(await storage.read()) == [15, 16, 17, 18, 19]


async def test_writers_at_the_same_time_lose_nothing(storage: Storage) -> None:
    async with asyncio.TaskGroup() as tasks:
        for n in range(5):
            tasks.create_task(storage.write([Entry({"n": n})]))
    assert sorted(values(await storage.read())) == [0, 1, 2, 3, 4]


async def test_a_zero_character_stops_no_storage(storage: Storage) -> None:
    await storage.write([Entry({"n": 1, "text": "a\0b"})])
    [entry] = await storage.read()
    assert entry.value["text"] in ("a\0b", "a\N{REPLACEMENT CHARACTER}b")


async def test_files_are_for_their_user_alone(tmp_path: Path) -> None:
    for storage in (
        FileStorage(tmp_path / "d" / "f.jsonl", limit=5),
        SqliteStorage(tmp_path / "e" / "f.db", table="t", limit=5),
    ):
        await storage.write([Entry({"n": 1})])
        assert stat.S_IMODE(os.stat(storage.path).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(storage.path)).st_mode) == 0o700


async def test_a_line_that_a_crash_has_cut_is_left_out_and_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    await FileStorage(path, limit=9).write([Entry({"n": 1})])
    path.write_bytes(path.read_bytes() + b'{"value":{"n":2')
    storage = FileStorage(path, limit=9)
    await storage.write([Entry({"n": 3})])
    assert values(await storage.read()) == [1, 3]


@pytest.mark.parametrize("kind", ["file", "sqlite"])
async def test_a_place_that_cannot_be_used_is_named(tmp_path: Path, kind: str) -> None:
    tmp_path.joinpath("taken").mkdir()
    path = tmp_path / "taken"
    storage: Storage = (
        FileStorage(path, limit=5) if kind == "file" else SqliteStorage(path, table="t", limit=5)
    )
    with pytest.raises(PluginError, match="taken"):
        await storage.write([Entry({"n": 1})])


async def test_a_server_that_is_not_there_is_an_error_within_bounds() -> None:
    async with Receiver() as gone:
        port = gone.port
    storage = PostgresStorage(f"postgresql://nobody@127.0.0.1:{port}/x", table="t", limit=5)
    with pytest.raises(PluginError, match="PostgreSQL cannot be used"):
        await storage.write([Entry({"n": 1})])


@pytest.mark.parametrize("name", ["", "a b", "x;drop", "É", "a" * 64])
def test_a_table_has_a_plain_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="table"):
        SqliteStorage(tmp_path / "f.db", table=name, limit=5)


async def test_a_remote_storage_posts_batches() -> None:
    async with Receiver() as server:
        poster = Poster(f"{server.url}/in", headers={"X-Key": "k"}, allowed_hosts=("127.0.0.1",))
        storage = RemoteStorage(poster, collection="logs")
        await storage.write([Entry({"n": 1}), Entry({"n": 2}, "b")])
        assert await storage.read() == []
    [request] = server.requests
    assert request.body == {
        "collection": "logs",
        "entries": [{"value": {"n": 1}, "key": ""}, {"value": {"n": 2}, "key": "b"}],
    }
    assert request.headers["x-key"] == "k"


async def test_a_private_address_is_refused_unless_it_is_allowed_by_name() -> None:
    async with Receiver() as server:
        with pytest.raises(PluginError, match="this machine"):
            await Poster(server.url).post(b"{}")
    assert server.requests == []


@pytest.mark.parametrize("status", [503, 429, 500])
async def test_a_post_is_made_again_when_the_server_is_weak(status: int) -> None:
    quick = Patience(first_delay=0.001, longest_delay=0.002)
    async with Receiver(status, status) as server:
        assert await Poster(server.url, allowed_hosts=("127.0.0.1",), patience=quick).post(b"{}") == 3
    assert len(server.requests) == 3


async def test_a_refusal_is_not_asked_again_and_endless_weakness_is_given_up() -> None:
    quick = Patience(first_delay=0.001, longest_delay=0.002)
    async with Receiver(400) as server:
        with pytest.raises(PluginError, match="after 1 attempts: HTTP 400"):
            await Poster(server.url, allowed_hosts=("127.0.0.1",), patience=quick).post(b"{}")
    async with Receiver(*[503] * 9) as server:
        with pytest.raises(PluginError, match="after 4 attempts: HTTP 503"):
            await Poster(server.url, allowed_hosts=("127.0.0.1",), patience=quick).post(b"{}")
    assert len(server.requests) == 4


async def test_a_server_that_says_nothing_is_left_after_the_timeout() -> None:
    hasty = Patience(timeout=0.05, retries=0)
    async with Receiver(hold=True) as server:
        with pytest.raises(PluginError, match="no answer within"):
            await Poster(server.url, allowed_hosts=("127.0.0.1",), patience=hasty).post(b"{}")


@pytest.mark.parametrize("url", ["ftp://x/y", "http://user:pass@host/", "nonsense", 5])
def test_an_address_that_cannot_be_used_is_told_at_once(url: Any) -> None:
    with pytest.raises(ConfigurationError, match="posted"):
        Poster(url)


def test_waiting_doubles_up_to_its_bound() -> None:
    assert [Patience().delay(n) for n in range(1, 7)] == [1, 2, 4, 8, 10, 10]
