"""A session goes on from where it was left, or as a copy from any of its messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.recorded_session import FREE, add, assert_replays, scripted
from tests.support.history import assert_valid_for_a_request
from tests.support.session_options import fork_session, resume_session

from robota.core.errors import StorageError, ValidationError
from robota.core.jsontext import encode
from robota.core.messages import HistoryEntry
from robota.sessions.options import SessionOptions
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.start import LEFT_OUT, restore, restore_journal
from robota.sessions.store.session_record import SessionRecord
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio

OPTIONS = SessionOptions(permissions=FREE, context_window=100_000)
CALLS = [call("add", "x", a=1, b=2), call("add", "y", a=3, b=4)]


async def record(home: Path) -> SessionStore:
    """A session of seven messages: system, user, assistant with two calls, two results, assistant, …"""
    recorded = scripted(home, ["adding", *CALLS], "3 and 7", "bye", name="sums")
    await recorded.run("go", "thanks")
    await recorded.session.shutdown()
    return SessionStore(home / "sessions")


async def test_a_session_goes_on_as_it_was_left(tmp_path: Path) -> None:
    store = await record(tmp_path)
    before = restore_journal(store.journal_path("s-1")).messages
    provider = ScriptedProvider("welcome back")

    session = resume_session(store, "s-1", provider=provider, tools=[add], options=OPTIONS)

    assert (session.session_id, session.model, session.name) == ("s-1", "scripted", "sums")
    assert (session.cwd, session.messages) == (str(tmp_path), before)
    assert await session.run("hello again") == "welcome back"
    assert [message.role for message in provider.requests[0].messages].count("system") == 1
    await session.shutdown()
    assert (await replay_session(store.journal_path("s-1"))).identical


async def test_a_session_without_a_system_message_gets_none(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, "one", system=None)
    await recorded.run("first")
    await recorded.session.shutdown()

    store = SessionStore(tmp_path / "sessions")
    session = resume_session(store, "s-1", provider=ScriptedProvider("two"), options=OPTIONS)
    await session.run("second")

    assert [message.role for message in session.messages] == ["user", "assistant"] * 2


async def test_a_session_that_does_not_exist_or_cannot_be_read_is_never_an_empty_one(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    with pytest.raises(StorageError, match="There is no session s-9"):
        resume_session(store, "s-9", provider=ScriptedProvider())
    (tmp_path / "s-8.jsonl").write_bytes(b"\x00" * 500)
    with pytest.raises(StorageError, match="nothing readable"):
        resume_session(store, "s-8", provider=ScriptedProvider())


async def test_what_was_cut_is_told_and_answered(tmp_path: Path) -> None:
    store = await record(tmp_path)
    path = Path(store.journal_path("s-1"))
    lines = path.read_bytes().splitlines(keepends=True)
    started = next(at for at, line in enumerate(lines) if b'"tool_start"' in line)
    path.write_bytes(b"".join(lines[: started + 1]))
    Path(store.path_of("s-1")).unlink()  # a crash at this point would have left an older one

    told = restore(store, "s-1").problems
    session = resume_session(store, "s-1", provider=ScriptedProvider("on"), options=OPTIONS)

    assert len(told) == 2
    assert "effects are unknown" in told[0]
    assert_valid_for_a_request(session.agent.conversation.messages_for_api())


async def test_a_session_without_a_journal_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    store = await record(tmp_path)
    known = restore_journal(store.journal_path("s-1")).messages
    Path(store.journal_path("s-1")).unlink()

    session = resume_session(store, "s-1", provider=ScriptedProvider("on"), options=OPTIONS)

    assert session.messages == known
    assert await session.run("more") == "on"
    assert (await replay_session(store.journal_path("s-1"))).identical


async def test_an_old_record_goes_on_too(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    old = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    store.save(SessionRecord(id="session_1_abc", cwd=str(tmp_path), messages=old))

    session = resume_session(store, "session_1_abc", provider=ScriptedProvider("on"), options=OPTIONS)

    assert [message.content for message in session.messages] == ["hi", "hello"]
    assert await session.run("more") == "on"


async def test_an_originals_record_keeps_its_events_its_name_and_its_creation(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    moment = "2025-03-01T12:00:00.000Z"
    note = {"id": "e1", "timestamp": moment, "category": "event", "type": "note", "data": {"n": 1}}
    chat = [
        {"id": f"m{at}", "timestamp": moment, "category": "chat", "type": message["role"], "data": message}
        for at, message in enumerate(said)
    ]
    known = {"id": "o-1", "cwd": str(tmp_path), "name": "greetings", "createdAt": moment, "updatedAt": moment}
    record = {**known, "messages": said, "history": [chat[0], note, chat[1]]}
    (tmp_path / "o-1.json").write_bytes(encode(record))
    log = [
        {"timestamp": moment, "sessionId": "o-1", "event": "history_mutation", "message": message}
        for message in said
    ]
    (tmp_path / "o-1.jsonl").write_bytes(b"".join(encode(line) + b"\n" for line in log))

    session = resume_session(store, "o-1", provider=ScriptedProvider("on"), options=OPTIONS)
    assert [entry.type for entry in session.history] == ["user", "note", "assistant"]
    assert session.name == "greetings"
    await session.run("more")
    await session.shutdown()

    saved = store.load("o-1")
    assert saved is not None
    assert (saved.name, saved.created_at) == ("greetings", moment)
    assert [entry.type for entry in saved.parse_history()][:3] == ["user", "note", "assistant"]
    again = resume_session(store, "o-1", provider=ScriptedProvider(), options=OPTIONS)
    assert [entry.type for entry in again.history][:3] == ["user", "note", "assistant"]
    assert again.name == "greetings"


async def test_the_creation_is_that_of_the_session_not_of_its_snapshot(tmp_path: Path) -> None:
    store = await record(tmp_path)
    created = restore(store, "s-1").created_at
    Path(store.path_of("s-1")).unlink()

    session = resume_session(store, "s-1", provider=ScriptedProvider("on"), options=OPTIONS)
    await session.run("more")
    await session.shutdown()

    saved = store.load_snapshot("s-1")
    assert saved is not None
    assert saved.created_at == created


async def test_a_new_name_stays_although_nothing_was_said(tmp_path: Path) -> None:
    store = await record(tmp_path)
    session = resume_session(store, "s-1", provider=ScriptedProvider(), options=OPTIONS)
    session.name = "additions"
    await session.shutdown()

    assert (restore(store, "s-1").name, store.list()[0].name) == ("additions", "additions")
    assert (await replay_session(store.journal_path("s-1"))).identical

    fork = fork_session(store, "s-1", provider=ScriptedProvider(), options=OPTIONS)
    fork.name = "another"
    await fork.shutdown()
    assert [each.id for each in store.list()] == ["s-1"]


# --- forks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [None, 0, 1, 2, 3, 4, 5, 6, 8])
async def test_a_fork_goes_on_from_any_step_on_another_model(tmp_path: Path, step: int | None) -> None:
    store = await record(tmp_path)
    journal = Path(store.journal_path("s-1"))
    before, first = journal.read_bytes(), restore_journal(str(journal)).messages[:step]
    provider = ScriptedProvider("another way", name="other")

    session = fork_session(store, "s-1", step=step, provider=provider, model="other-model", options=OPTIONS)

    assert session.messages[: len(first)] == first
    added = {3: [LEFT_OUT, LEFT_OUT], 4: ["7"]}  # the second result was known when the first was told
    assert [message.content for message in session.messages[len(first) :]] == added.get(step or 0, [])
    assert await session.run("what else?") == "another way"
    assert provider.requests[0].model == "other-model"
    assert_valid_for_a_request(provider.requests[0].messages)
    await session.shutdown()
    assert session.session_id != "s-1"
    assert journal.read_bytes() == before
    copy = store.journal_path(session.session_id)
    assert restore_journal(copy).messages == session.messages
    report = await replay_session(copy)
    assert report.divergence is None, str(report.divergence)


@pytest.mark.parametrize("step", [-1, 9, 100])
async def test_a_step_that_never_was_is_refused(tmp_path: Path, step: int) -> None:
    store = await record(tmp_path)

    with pytest.raises(ValidationError, match=f"There is no step {step} in session s-1"):
        fork_session(store, "s-1", step=step, provider=ScriptedProvider())


async def test_a_fork_of_a_conversation_with_summaries_events_and_a_new_beginning(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, "one", "two", "a summary", "three", "another", "four")
    session = recorded.session
    await recorded.run("first")
    session.clear_history()
    await recorded.run("second")
    session.add_history_entry(HistoryEntry(category="event", type="note", data={"n": 1}))
    await session.compact()
    await recorded.run("third")
    await session.compact()
    await recorded.run("fourth")
    await assert_replays(recorded)
    store = SessionStore(tmp_path / "sessions")

    fork = fork_session(store, "s-1", provider=ScriptedProvider("five"), options=OPTIONS)
    assert fork.messages == session.messages
    assert fork.history == session.history
    await fork.run("fifth")
    report = await replay_session(store.journal_path(fork.session_id))
    assert report.divergence is None, str(report.divergence)

    early = fork_session(store, "s-1", step=3, provider=ScriptedProvider("five"), options=OPTIONS)
    assert [message.content for message in early.messages] == ["You are terse.", "first", "one"]
