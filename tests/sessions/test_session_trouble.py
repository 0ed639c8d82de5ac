"""A journal that cannot write says so, whatever the cause; and messages from outside come between rounds."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.recorded_session import FREE, assert_replays, scripted
from tests.support.history import assert_valid_for_a_request

from robota.core.events import Event, HistoryMutation, Noticed, TextDelta, ToolStarted
from robota.core.jsontext import decode
from robota.core.provider import ChatRequest, Chunk, NativePayload, TextChunk
from robota.sessions.journal.event_log import EventLog
from robota.sessions.journal.file.file_journal import FileJournal
from robota.sessions.options import SessionOptions
from robota.sessions.session import Session
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


class Raw:
    """A provider that says what it is given."""

    name = "raw"

    def __init__(self, *chunks: Chunk) -> None:
        self.chunks = chunks

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        for chunk in self.chunks:
            yield chunk


def open_session(home: Path, provider: Any, **options: Any) -> Session:
    options = {"permissions": FREE, "context_window": 100_000, **options}
    store = SessionStore(home / "sessions")
    return Session(
        provider=provider, model="any", store=store, session_id="s-1", options=SessionOptions(**options)
    )


@pytest.mark.parametrize(
    "chunks",
    [
        (TextChunk("half \ud800 a character"),),
        (TextChunk("bytes", raw=b"\xff\xfe{"),),
        (TextChunk("bytes", raw=b"no JSON"), TextChunk(" more", raw=b'{"text":" more"}')),
        (NativePayload(kind="response", payload=b"\xff"), TextChunk("said")),
        (NativePayload(kind="stream_event", payload=b'{"a":1},{"b":2}'), TextChunk("said")),
        (TextChunk("key sk-ant-api03-" + "a1B2" * 20, raw=b"{"),),
    ],
    ids=["surrogate", "no text", "no JSON", "native", "two values", "secret"],
)
async def test_whatever_a_provider_sends_is_on_record_and_every_line_can_be_read(
    tmp_path: Path, chunks: tuple[Chunk, ...]
) -> None:
    session = open_session(tmp_path, Raw(*chunks))
    await session.run("hi")
    await session.shutdown()

    assert session.trouble == ""
    journal = Path(SessionStore(tmp_path / "sessions").journal_path("s-1")).read_bytes()
    assert all(decode(line) for line in journal.splitlines())
    assert b"a1B2a1B2" not in journal
    start = restore(SessionStore(tmp_path / "sessions"), "s-1")
    assert (len(start.messages), start.problems) == (2, ())


async def test_an_event_that_cannot_be_written_is_trouble_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(log: EventLog, event: Event) -> None:
        raise TypeError("this is not JSON")

    monkeypatch.setitem(EventLog.HANDLERS, HistoryMutation, refuse)
    session = open_session(tmp_path, ScriptedProvider("one", "two"))
    notices: list[str] = []
    session.events.on(Noticed, lambda event: notices.append(event.message))

    assert await session.run("hi") == "one"
    assert await session.run("hi") == "two"

    assert "has no record of an event (history_mutation): TypeError: this is not JSON." in session.trouble
    assert [notice for notice in notices if "no record" in notice] == notices[:1]


async def test_a_listener_that_fails_does_not_keep_the_journal_from_writing(tmp_path: Path) -> None:
    (tmp_path / "s-1.jsonl").mkdir()
    journal = FileJournal(str(tmp_path), "s-1")

    def listen(sentence: str) -> None:
        raise RuntimeError("nobody home")

    journal.on_trouble = listen
    await journal.open()
    journal.append(b'"event":"user"}', event=0)

    assert "cannot be opened" in journal.trouble
    assert "nobody home" in journal.trouble
    (tmp_path / "s-1.jsonl").rmdir()
    assert await journal.sync()
    await journal.aclose()
    assert (tmp_path / "s-1.jsonl").read_bytes().count(b"\n") == 1


async def test_a_relative_store_stays_where_it_was_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROBOTA_HOME", "home")
    store, default = SessionStore("sessions"), SessionStore()
    provider = ScriptedProvider("one")
    session = Session(provider=provider, model="any", store=store, session_id="s-1")
    assert default.base_dir == str(tmp_path / "home" / "sessions")
    os.chdir("elsewhere")

    await session.run("hi")
    await session.shutdown()

    assert sorted(path.name for path in (tmp_path / "sessions").iterdir()) == ["s-1.json", "s-1.jsonl"]
    assert store.base_dir == str(tmp_path / "sessions")


# --- messages from outside -------------------------------------------------------------------------------


async def test_a_message_that_comes_while_a_reply_streams_waits_for_the_round_to_end(
    tmp_path: Path,
) -> None:
    recorded = scripted(tmp_path, ["adding", call("add", "x", a=1, b=2)], ["it is ", "3"], "bye")
    session = recorded.session

    def inject(event: TextDelta) -> None:
        if event.text in ("adding", "it is "):
            session.inject_message("user", f"while {event.text.strip()}")

    session.events.on(TextDelta, inject)
    await recorded.run("go", "thanks")

    said = [(message.role, message.content) for message in session.messages[1:]]
    assert said == [
        ("user", "go"),
        ("assistant", "adding"),
        ("tool", "3"),
        ("user", "while adding"),
        ("assistant", "it is 3"),
        ("user", "while it is"),
        ("user", "thanks"),
        ("assistant", "bye"),
    ]
    assert_valid_for_a_request(session.agent.conversation.messages_for_api())
    await session.shutdown()
    assert restore(SessionStore(tmp_path / "sessions"), "s-1").messages == session.messages
    await assert_replays(recorded)


async def test_a_message_that_comes_while_calls_run_waits_for_their_results(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, [call("add", "x", a=1, b=2)], "3")
    session = recorded.session
    session.events.on(ToolStarted, lambda _: session.inject_message("user", "a note"))

    await recorded.run("go")

    assert [message.role for message in session.messages[2:]] == ["assistant", "tool", "user", "assistant"]


async def test_a_message_that_waited_is_there_when_the_run_was_stopped(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, ["one ", "two ", "three"])
    session = recorded.session

    def stop(event: TextDelta) -> None:
        if event.text == "one ":
            session.inject_message("user", "a note")
            session.abort()

    session.events.on(TextDelta, stop)
    await recorded.run("go")

    assert [message.role for message in session.messages[1:]] == ["user", "assistant", "user"]
    assert session.messages[-1].content == "a note"
