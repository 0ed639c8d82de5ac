"""Snapshots redact only what is new, and a large one holds nobody up."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from msgspec import Raw
from msgspec.json import format as format_json
from tests.sessions.recorded_session import scripted

from robota.core.jsontext import decode, encode
from robota.core.messages import AssistantMessage, UserMessage, message_to_history_entry
from robota.sessions.redaction import REDACTED, Redactor
from robota.sessions.snapshots import RedactedHistory
from robota.sessions.store.session_record import FIELD_ORDER, seal
from robota.sessions.store.session_store import SessionStore

pytestmark = pytest.mark.anyio
SECRET = "hunter2-hunter2-hunter2"


class CountingRedactor(Redactor):
    """Counts what it is given."""

    def __init__(self) -> None:
        super().__init__((SECRET,))
        self.looked_at = 0

    def json(self, encoded: bytes, key: str = "", *, repeated: bool = False) -> bytes:
        self.looked_at += 1
        return super().json(encoded, key, repeated=repeated)


def test_each_message_is_redacted_once_for_both_lists_and_all_snapshots() -> None:
    redactor, redacted = CountingRedactor(), RedactedHistory()
    messages = [UserMessage(f"the word is {SECRET}"), AssistantMessage("noted")]
    for _ in range(3):
        history = [message_to_history_entry(message) for message in messages]
        said, happened = redacted.encode(messages, history, redactor)

    assert redactor.looked_at == 2
    assert [message["content"] for message in decode(said)] == [f"the word is {REDACTED}", "noted"]
    assert [entry["data"] for entry in decode(happened)] == decode(said)
    redacted.encode([*messages, UserMessage("more")], [], redactor)
    assert redactor.looked_at == 3


def test_a_long_record_is_laid_out_entry_by_entry_as_if_at_one_go() -> None:
    """Formatting tens of megabytes in one call would hold every other thread for as long."""
    entries = [
        {"content": f'"{number}"\n' * 400, "parts": [[], {}, {"a": [1, None]}]} for number in range(600)
    ]
    indented = Raw(format_json(encode(entries), indent=2))
    fields = {"id": "s-1", "history": indented, "messages": entries, "later": {"x": [], "y": entries[:1]}}

    compact = format_json(encode(dict(sorted(fields.items(), key=lambda each: in_file(each[0])))), indent=-1)
    sealed = b'%b,"checksum":"%08x"}' % (compact[:-1], crc32(compact))
    assert len(compact) > 2 * 1024 * 1024
    assert seal(fields) == format_json(sealed, indent=2) + b"\n"


def in_file(key: str) -> int:
    return FIELD_ORDER.index(key) if key in FIELD_ORDER else len(FIELD_ORDER)


async def test_a_snapshot_is_written_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    save = SessionStore.save

    def note(store: SessionStore, record: Any) -> None:
        threads.append(threading.current_thread())
        save(store, record)

    monkeypatch.setattr(SessionStore, "save", note)
    recorded = scripted(tmp_path, "one")
    await recorded.run("first")
    await recorded.session.shutdown()

    assert threads
    assert threading.main_thread() not in threads
    loaded = SessionStore(tmp_path / "sessions").load_snapshot("s-1")
    assert loaded is not None
    assert loaded.parse_messages() == recorded.session.messages


async def test_a_conversation_is_redacted_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    encode = RedactedHistory.encode

    def note(history: RedactedHistory, *given: Any) -> Any:
        threads.append(threading.current_thread())
        return encode(history, *given)

    monkeypatch.setattr(RedactedHistory, "encode", note)
    recorded = scripted(tmp_path, "one")
    await recorded.run("first")
    await recorded.session.shutdown()

    assert threads
    assert threading.main_thread() not in threads
