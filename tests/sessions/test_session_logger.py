"""A logger of the user's own is told of everything that the journal gets, redacted and in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio, add

from robota.core.messages import JsonObject
from robota.sessions import JournalOptions, Session, SessionOptions
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, str, JsonObject]] = []

    def log(self, session_id: str, event: str, data: JsonObject) -> None:
        self.heard.append((session_id, event, data))

    @property
    def names(self) -> list[str]:
        return [event for _, event, _ in self.heard]


async def use(session: Session) -> None:
    async with session:
        await session.run("my password is: hunter2-secret")
        await session.child("helper").run("and you?")


def options(logger: Any) -> SessionOptions:
    return SessionOptions(journal=JournalOptions(logger=logger), context_window=100_000)


async def test_without_a_store_a_logger_hears_the_whole_session() -> None:
    listener = Listener()
    provider = ScriptedProvider([call("add", a=1, b=2)], "Three.", "Fine.")
    session = Session(provider=provider, tools=[add], session_id="s-1", options=options(listener))
    await use(session)
    assert list(dict.fromkeys(who for who, _, _ in listener.heard)) == ["s-1", "s-1/helper"]
    own = [event for who, event, _ in listener.heard if who == "s-1"]
    assert own[0] == "session_init"
    assert own[-1] == "session_shutdown"
    assert {"user", "provider_request", "tool_start", "tool_result", "message", "run_end"} <= set(own)
    text = json.dumps([data for _, _, data in listener.heard])
    assert "Three." in text
    assert "hunter2-secret" not in text


async def test_beside_a_journal_it_hears_what_the_file_has(tmp_path: Path) -> None:
    listener = Listener()
    studio = Studio(tmp_path, "x" * 100_000, logger=listener)
    await studio.session.run("hello")
    await studio.session.shutdown()
    written = [json.loads(line) for line in studio.path.read_text().splitlines()]
    assert listener.names == [record["event"] for record in written]
    assert all(
        {name: record[name] for name in data} == data
        for (_, _, data), record in zip(listener.heard, written, strict=True)
    )


async def test_a_logger_that_fails_is_trouble_and_not_the_end(tmp_path: Path) -> None:
    class Broken(Listener):
        def log(self, session_id: str, event: str, data: JsonObject) -> None:
            if event == "user":
                raise OSError("the queue is full")
            super().log(session_id, event, data)

    listener = Broken()
    studio = Studio(tmp_path, "Hello.", logger=listener)
    assert await studio.session.run("hello") == "Hello."
    assert "The session logger failed: OSError: the queue is full" in " ".join(studio.notices)
    assert studio.session.trouble == ""
    assert listener.names[0] == "session_init"
