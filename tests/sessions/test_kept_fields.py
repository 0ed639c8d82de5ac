"""What the layers above keep in the record of a session is journaled: it is rebuilt, resumed and replayed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.live_session import Studio, add

from robota.core.events import ContextLoaded, ToolEnded
from robota.core.messages import Json
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.session import Session
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio

EARLY: list[Json] = [{"path": "a.md"}]
LATE: list[Json] = [{"path": "a.md"}, {"path": "b.md"}]


async def keep_some(tmp_path: Path) -> Studio:
    """One value before the journal is open, another in the middle of a run."""
    studio = Studio(
        tmp_path,
        ["Adding.", call("add", a=1, b=2)],
        "It is 3.",
        rules=PermissionRules(mode="bypassPermissions"),
    )
    session = studio.session
    session.kept.put("contextReferences", EARLY)
    session.log.when_open(lambda: session.log.report(ContextLoaded, data={"files": ["AGENTS.md"]}))
    studio.session.events.on(ToolEnded, lambda event: session.kept.put("contextReferences", LATE))
    await session.submit("Add.")
    return studio


async def test_it_is_in_the_snapshot_and_in_the_record_made_of_the_journal(tmp_path: Path) -> None:
    studio = await keep_some(tmp_path)
    await studio.session.shutdown()
    store = SessionStore(studio.kept)
    snapshot = store.load_snapshot("s-1")
    (studio.kept / "s-1.json").unlink()
    rebuilt = store.load("s-1")
    assert snapshot is not None
    assert snapshot.context_references == LATE
    assert rebuilt is not None
    assert rebuilt.context_references == LATE
    written = [record["value"] for record in studio.records if record["event"] == "session_change"]
    assert written == [EARLY, LATE]
    assert [record["data"] for record in studio.records if record["event"] == "context_loaded"] == [
        {"files": ["AGENTS.md"]}
    ]


async def test_a_resumed_session_has_it_and_keeps_it(tmp_path: Path) -> None:
    studio = await keep_some(tmp_path)
    await studio.session.shutdown()
    store = SessionStore(studio.kept)
    again = Session(provider=ScriptedProvider("Yes."), tools=[add], store=store, start=restore(store, "s-1"))
    assert again.kept.values == {"contextReferences": LATE}
    await again.submit("Still there?")
    await again.shutdown()
    record = store.load_snapshot("s-1")
    assert record is not None
    assert record.context_references == LATE


async def test_a_record_without_a_journal_has_it_too(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    store.save({"id": "old", "cwd": "/p", "messages": [], "history": [], "contextReferences": EARLY})
    assert restore(store, "old").kept == {"contextReferences": EARLY}


async def test_a_replay_follows(tmp_path: Path) -> None:
    studio = await keep_some(tmp_path)
    await studio.session.shutdown()
    report = await replay_session(studio.kept / "s-1.jsonl")
    assert report.identical, report.divergence
