"""Tests that every session store must pass, ours and yours. Subclass the suite in a test module.

    class TestMyStore(StoreConformance):
        def make_store(self, directory):
            return MyStore(directory)

Two stores made for one directory are two views of the same sessions. Nothing here looks at files: where a
store keeps its records is its own business.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from robota.core.errors import ValidationError
from robota.core.messages import AssistantMessage, JsonObject, ToolCall, UserMessage
from robota.sessions.store.message_codec import message_to_record
from robota.sessions.store.session_record import SessionRecord
from robota.sessions.store.session_store import SessionStorePort

UNSAFE_IDS = (
    "",
    ".",
    "..",
    "../escape",
    "a/b",
    "a\\b",
    ".hidden",
    "-flag",
    "a b",
    "a\n",
    "a\0",
    "é",
    "x" * 129,
)
_MOMENT = datetime(2026, 3, 1, 11, 30, tzinfo=UTC)
_CONVERSATION = (
    UserMessage("What is 1 + 2, 🐢?", id="m1", timestamp=_MOMENT),
    AssistantMessage(
        "Let me add.", (ToolCall("call_0", "add", '{"a":1,"b":2}'),), id="m2", timestamp=_MOMENT
    ),
)


def make_record(id: str, *, updated_at: str = "2026-03-01T12:00:00.000Z") -> JsonObject:
    """A record in the spelling on disk with every field of the specification and some of the future."""
    chat = [message_to_record(message) for message in _CONVERSATION]
    return {
        "id": id,
        "cwd": "/srv/project",
        "createdAt": "2026-03-01T11:00:00.000Z",
        "updatedAt": updated_at,
        "name": "sums",
        "model": "some-model",
        "sandboxSnapshotId": "snapshot-7",
        "systemPrompt": "Be brief.",
        "journalSeq": 12,
        "version": 1,
        "toolSchemas": [{"name": "add", "inputSchema": {"type": "object"}}],
        "backgroundTasks": [{"taskId": "t1", "state": "running"}],
        "backgroundTaskEvents": [{"taskId": "t1", "event": "started"}],
        "backgroundJobGroups": [{"groupId": "g1"}],
        "backgroundJobGroupEvents": [{"groupId": "g1", "event": "created"}],
        "memoryEvents": [{"type": "retrieved", "topic": "build"}],
        "usedMemoryReferences": [{"topic": "build", "path": "memory/build.md"}],
        "contextReferences": [{"path": "AGENTS.md"}],
        "messages": chat,
        "history": [
            {
                "id": "e0",
                "timestamp": "2026-03-01T11:00:00.000Z",
                "category": "event",
                "type": "note",
                "data": 1,
            },
            *(_chat_entry(message) for message in chat),
        ],
        "goal": {"text": "of a later version", "steps": [1, 2.5, None, True]},
        "activeBranch": "main",
    }


def _chat_entry(message: JsonObject) -> JsonObject:
    return {
        "id": message["id"],
        "timestamp": message["timestamp"],
        "category": "chat",
        "type": message["role"],
        "data": message,
    }


class StoreConformance:
    def make_store(self, directory: Path) -> SessionStorePort:
        """A store that keeps its sessions in this directory, which may not exist yet."""
        raise NotImplementedError

    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        return tmp_path / "sessions"

    @pytest.fixture
    def store(self, directory: Path) -> SessionStorePort:
        return self.make_store(directory)

    # --- one record -------------------------------------------------------------------------------------

    def test_every_field_of_a_record_comes_back(self, store: SessionStorePort, directory: Path) -> None:
        store.save(make_record("s1"))
        assert _load(self.make_store(directory), "s1").to_mapping() == make_record("s1")

    def test_a_record_object_comes_back_as_it_was(self, store: SessionStorePort) -> None:
        store.save(make_record("s1"))
        record = _load(store, "s1")
        store.save(record)
        assert _load(store, "s1") == record

    def test_messages_can_be_given_as_they_are_in_memory(self, store: SessionStorePort) -> None:
        message = UserMessage("hi")
        store.save(SessionRecord(id="s1", cwd="/w", messages=[message]))
        assert _load(store, "s1").parse_messages() == [message]

    def test_fields_of_other_versions_survive_a_rewrite(self, store: SessionStorePort) -> None:
        store.save(make_record("s1"))
        record = _load(store, "s1")
        assert record.extra == {key: make_record("s1")[key] for key in ("goal", "activeBranch")}
        record.name = "renamed"
        store.save(record)
        assert _load(store, "s1").extra == record.extra

    def test_a_session_that_does_not_exist_is_none(self, store: SessionStorePort) -> None:
        assert store.load("nobody") is None

    # --- saving over a record ---------------------------------------------------------------------------

    def test_saving_keeps_what_the_new_record_does_not_set(self, store: SessionStorePort) -> None:
        store.save(make_record("s1"))
        before = _load(store, "s1")
        store.save(
            SessionRecord(id="s1", cwd="/srv/project", messages=before.messages, history=before.history)
        )
        after = _load(store, "s1")
        assert after.updated_at > before.updated_at
        after.updated_at = before.updated_at
        assert after == before

    def test_saving_replaces_what_the_new_record_sets(self, store: SessionStorePort) -> None:
        store.save(make_record("s1"))
        store.save({**make_record("s1"), "name": "other", "messages": [], "history": [], "memoryEvents": []})
        record = _load(store, "s1")
        assert (record.name, record.messages, record.history, record.memory_events) == ("other", [], [], [])

    def test_a_mapping_may_hold_only_what_changes(self, store: SessionStorePort) -> None:
        store.save(make_record("s1"))
        before = _load(store, "s1")
        store.save({"id": "s1", "name": None, "updatedAt": before.updated_at})
        before.name = None
        assert _load(store, "s1") == before

    def test_a_record_without_times_gets_them(self, store: SessionStorePort) -> None:
        store.save(SessionRecord(id="s1", cwd="/w", messages=[]))
        record = _load(store, "s1")
        assert record.created_at == record.updated_at != ""

    def test_a_record_without_history_gets_the_one_of_its_messages(self, store: SessionStorePort) -> None:
        old = make_record("s1")
        del old["history"]
        store.save(old)
        record = _load(store, "s1")
        assert [entry["data"] for entry in record.history] == old["messages"]
        assert [entry.data for entry in record.parse_history()] == record.parse_messages()

    @pytest.mark.parametrize("id", UNSAFE_IDS)
    def test_an_id_that_is_no_plain_name_is_refused(self, store: SessionStorePort, id: str) -> None:
        with pytest.raises(ValidationError):
            store.save({**make_record("s1"), "id": id})
        with pytest.raises(ValidationError):
            store.load(id)
        with pytest.raises(ValidationError):
            store.delete(id)

    @pytest.mark.parametrize(
        "id", ["session_1772368200123_k3j9x0a1b", "0b9d1c1e-5c0e-4a63-9a51-7ad1ad6e9f3c"]
    )
    def test_ids_of_both_generations_are_taken(self, store: SessionStorePort, id: str) -> None:
        store.save(make_record(id))
        assert _load(store, id).id == id

    # --- many records -----------------------------------------------------------------------------------

    def test_a_store_nobody_used_lists_nothing(self, store: SessionStorePort) -> None:
        assert list(store.list()) == []

    def test_the_list_begins_with_what_changed_last(self, store: SessionStorePort) -> None:
        for id, updated_at in (
            ("b", "2026-03-01T12:00:00.000Z"),
            ("d", "2026-03-01T12:00:00.500Z"),
            ("a", "2026-02-28T23:00:00Z"),
            ("c", "2026-03-02T00:30:00+02:00"),
        ):
            store.save(make_record(id, updated_at=updated_at))
        assert _ids(store) == ["c", "d", "b", "a"]

    def test_the_list_says_what_a_session_is_about(self, store: SessionStorePort) -> None:
        store.save(make_record("s1"))
        (summary,) = store.list()
        assert (summary.id, summary.cwd, summary.name, summary.model) == (
            "s1",
            "/srv/project",
            "sums",
            "some-model",
        )
        assert (summary.created_at, summary.updated_at) == (
            "2026-03-01T11:00:00.000Z",
            "2026-03-01T12:00:00.000Z",
        )
        assert (summary.message_count, summary.first_prompt) == (2, "What is 1 + 2, 🐢?")
        assert not summary.damaged

    def test_a_deleted_session_is_gone(self, store: SessionStorePort, directory: Path) -> None:
        store.save(make_record("s1"))
        store.save(make_record("s2"))
        store.delete("s1")
        assert store.load("s1") is None
        assert _ids(self.make_store(directory)) == ["s2"]

    def test_deleting_what_does_not_exist_is_silent(self, store: SessionStorePort) -> None:
        store.delete("nobody")
        store.save(make_record("s1"))
        store.delete("nobody")
        assert _ids(store) == ["s1"]

    def test_sessions_are_saved_and_listed_at_the_same_time(self, directory: Path) -> None:
        def work(number: int) -> Sequence[str]:
            store = self.make_store(directory)
            for _ in range(5):
                store.save(make_record(f"s{number}"))
                store.list()
            return _ids(store)

        with ThreadPoolExecutor(4) as pool:
            seen = list(pool.map(work, range(4)))
        assert all(f"s{number}" in ids for number, ids in enumerate(seen))
        assert sorted(_ids(self.make_store(directory))) == ["s0", "s1", "s2", "s3"]

    def test_one_session_saved_from_two_sides_is_one_of_the_two(self, directory: Path) -> None:
        def work(name: str) -> None:
            store = self.make_store(directory)
            for _ in range(10):
                store.save({**make_record("s1"), "name": name, "systemPrompt": name})
                record = _load(store, "s1")
                assert record.name == record.system_prompt

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, ("one", "two")))


def _load(store: SessionStorePort, id: str) -> SessionRecord:
    record = store.load(id)
    assert record is not None
    return record


def _ids(store: SessionStorePort) -> list[str]:
    return [summary.id for summary in store.list()]
