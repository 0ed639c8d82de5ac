"""A conversation that the journal does not have yet is copied into it, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from robota import Session
from robota.core.messages import HistoryEntry
from robota.providers.scripted import ScriptedProvider
from robota.sessions import log as session_log
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore

pytestmark = pytest.mark.anyio

LONG = 40


@pytest.fixture(autouse=True)
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry is a slice of its own: what comes between two slices can be told by counting."""
    monkeypatch.setattr(session_log, "SLICE", 0.0)


def make_session(directory: Path) -> Session:
    session = Session(
        provider=ScriptedProvider("done", "done"),
        model="any",
        store=SessionStore(str(directory)),
        session_id="s-1",
    )
    for number in range(LONG):
        session.inject_message("user", f"prompt {number}")
        session.inject_message("assistant", f"answer {number}")
        session.add_history_entry(HistoryEntry(category="event", type="note", data={"number": number}))
    return session


def kept_in(directory: Path) -> list[str]:
    """What a resume makes of the journal."""
    store = SessionStore(str(directory))
    start = restore(store, "s-1")
    return [str(getattr(entry.data, "content", entry.data)) for entry in start.conversation.history]


def shown(session: Session) -> list[str]:
    return [str(getattr(entry.data, "content", entry.data)) for entry in session.history]


async def begin_copy(session: Session) -> None:
    while session.log.copy is None:  # noqa: ASYNC110 - each turn of the loop is a slice
        await asyncio.sleep(0)


async def test_others_have_their_turn_while_a_conversation_is_copied(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while session.log.copy is not None or not session.log.opened:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await session.open()
    await counting
    assert turns >= LONG * 3
    await session.shutdown()
    assert kept_in(tmp_path) == shown(session)


async def test_what_is_added_meanwhile_stands_behind_what_was_there(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    opening = asyncio.create_task(session.open())
    await begin_copy(session)
    session.inject_message("user", "in the middle")
    session.add_history_entry(HistoryEntry(category="event", type="note", data={"number": -1}))
    session.name = "another name"
    await opening
    await session.shutdown()
    assert kept_in(tmp_path) == shown(session)
    assert kept_in(tmp_path)[-2:] == ["in the middle", "{'number': -1}"]
    assert restore(SessionStore(str(tmp_path)), "s-1").name == "another name"


async def test_a_copy_that_was_cut_goes_on_with_the_next_prompt(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    opening = asyncio.create_task(session.submit("first"))
    await begin_copy(session)
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert session.log.copy is not None
    assert await session.run("second") == "done"
    await session.shutdown()
    assert kept_in(tmp_path) == shown(session)
    assert len(kept_in(tmp_path)) == LONG * 3 + 2


async def test_a_conversation_that_is_cleared_meanwhile_begins_again(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    opening = asyncio.create_task(session.open())
    await begin_copy(session)
    session.clear_history()
    session.inject_message("user", "afresh")
    await opening
    await session.shutdown()
    assert kept_in(tmp_path) == shown(session) == ["afresh"]


async def test_two_who_open_at_once_copy_it_once(tmp_path: Path) -> None:
    session = make_session(tmp_path)
    await asyncio.gather(session.open(), session.open())
    await session.shutdown()
    assert kept_in(tmp_path) == shown(session)
