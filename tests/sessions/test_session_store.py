from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sessions.stored_sessions import ANSWER, QUESTION, records_of

from robota.core.errors import StorageError, ValidationError
from robota.sessions.redaction import Redactor
from robota.sessions.store.session_record import RECORD_VERSION, SessionRecord
from robota.sessions.store.session_store import SessionStore
from robota.testing.store_conformance import make_record

EVERY_OPTIONAL_LIST = (
    "toolSchemas", "backgroundTasks", "backgroundTaskEvents", "backgroundJobGroups",
    "backgroundJobGroupEvents", "memoryEvents", "usedMemoryReferences", "contextReferences",
)  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def store(directory: Path) -> SessionStore:
    return SessionStore(directory)


def load(store: SessionStore, id: str) -> SessionRecord:
    record = store.load(id)
    assert record is not None
    return record


def write_file(directory: Path, name: str, content: bytes | str | object) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    text = content if isinstance(content, bytes | str) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- the file -------------------------------------------------------------------------------------------


def test_a_record_is_json_with_two_spaces_in_camel_case(store: SessionStore, directory: Path) -> None:
    store.save(make_record("s1"))
    text = (directory / "s1.json").read_text()
    assert text.startswith('{\n  "id": "s1",\n  "cwd": "/srv/project",\n  "createdAt": "2026-')
    written = json.loads(text)
    assert len(written.pop("checksum")) == 8
    assert written == make_record("s1")


def test_files_are_private_whatever_the_umask_says(store: SessionStore, directory: Path) -> None:
    old = os.umask(0)
    try:
        store.save(make_record("s1"))
        store.list()
    finally:
        os.umask(old)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (directory, *directory.iterdir())}
    assert modes == {"sessions": 0o700, "s1.json": 0o600, "index.sqlite3": 0o600}


def test_nothing_but_the_record_is_left_after_saving(store: SessionStore, directory: Path) -> None:
    for _ in range(3):
        store.save(make_record("s1"))
    assert os.listdir(directory) == ["s1.json"]


def test_the_home_directory_is_read_when_the_store_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SessionStore()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ROBOTA_HOME", raising=False)
    assert store.base_dir == str(tmp_path / "home/.robota/sessions")
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "elsewhere"))
    store.save(make_record("s1"))
    assert (tmp_path / "elsewhere/sessions/s1.json").exists()


def test_secrets_are_not_written(directory: Path) -> None:
    own = "tr0ub4dor-and-three-more"
    store = SessionStore(directory, redactor=Redactor([own]))
    key = "sk-ant-api03-" + "a1B2c3D4e5" * 9
    record = {**make_record("s1"), "systemPrompt": f"Use {key} and {own}.", "goal": {"apiKey": "abc"}}
    store.save(record)
    store.list()
    store.search("use")
    written = b"".join(path.read_bytes() for path in directory.iterdir())
    assert key.encode() not in written
    assert own.encode() not in written
    assert load(store, "s1").extra["goal"] == {"apiKey": "[REDACTED]"}


def test_half_characters_do_not_keep_a_record_from_being_saved(store: SessionStore) -> None:
    store.save({**make_record("s1"), "name": "half \ud83d"})
    store.save({"id": "s1", "model": "\udcff"})
    assert (load(store, "s1").name, load(store, "s1").model) == ("half ?", "?")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"messages": None}, "messages"),
        ({"messages": "none", "history": []}, "messages"),
        ({"goal": {1, 2}.__iter__()}, "goal"),
    ],
)
def test_a_record_that_is_none_is_refused_by_field(
    store: SessionStore, directory: Path, fields: dict[str, object], named: str
) -> None:
    record = {**make_record("s1"), "history": None, **fields}
    with pytest.raises(ValidationError, match=named):
        store.save(record)
    assert not directory.exists()


def test_a_record_nested_beyond_reason_is_refused(store: SessionStore) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValidationError, match="goal"):
        store.save({**make_record("s1"), "goal": deep})


# --- what the inventory names ---------------------------------------------------------------------------


def test_line_97_the_list_is_sorted_by_update_and_deleting_a_missing_id_is_silent(
    store: SessionStore,
) -> None:
    store.save(make_record("old", updated_at="2026-03-01T12:00:00.000Z"))
    store.save(make_record("new", updated_at="2026-03-02T12:00:00.000Z"))
    store.delete("missing")
    assert [summary.id for summary in store.list()] == ["new", "old"]


def test_line_101_a_record_keeps_prompt_and_tools_beside_the_messages(store: SessionStore) -> None:
    store.save(
        SessionRecord(
            id="s1",
            cwd="/w",
            messages=records_of(QUESTION),
            system_prompt="Be brief.",
            tool_schemas=[{"name": "robota_command_skills"}],
        )
    )
    record = load(store, "s1")
    assert (record.system_prompt, record.tool_schemas) == ("Be brief.", [{"name": "robota_command_skills"}])


def test_line_102_migration_adds_the_history_and_can_be_repeated(directory: Path) -> None:
    old = make_record("s1")
    del old["history"]
    before = write_file(directory, "s1.json", old).read_bytes()
    write_file(directory, "s2.json", make_record("s2"))
    write_file(directory, "broken.json", b"{")
    first = SessionStore(directory).migrate()
    migrated = (directory / "s1.json").read_bytes()
    assert (first.migrated, first.unchanged) == (("s1",), 1)
    assert len(first.problems) == 1
    assert "broken.json was left as it is" in first.problems[0]
    assert [entry["data"] for entry in json.loads(migrated)["history"]] == old["messages"]
    assert json.loads(migrated)["updatedAt"] == old["updatedAt"]
    assert (directory / "s1.json.old-1").read_bytes() == before
    second = SessionStore(directory).migrate()
    assert (second.migrated, second.unchanged) == ((), 2)
    assert (directory / "s1.json").read_bytes() == migrated
    assert sorted(os.listdir(directory)) == ["broken.json", "s1.json", "s1.json.old-1", "s2.json"]


def test_line_103_memory_fields_are_kept_and_never_acted_upon(store: SessionStore, directory: Path) -> None:
    hostile = [
        {"command": "rm -rf /"},
        "/init",
        {"type": "saved", "permissions": {"allow": ["Bash"]}},
        7,
        None,
    ]
    store.save({**make_record("s1"), "memoryEvents": hostile, "usedMemoryReferences": hostile})
    record = load(store, "s1")
    assert (record.memory_events, record.used_memory_references) == (hostile, hostile)
    assert len(record.parse_messages()) == len(record.messages) == 2
    (summary,) = store.list()
    assert summary == next(iter(SessionStore(directory).list()))
    assert not store.search("rm -rf")


# --- records of others ----------------------------------------------------------------------------------


def test_a_record_of_the_original_loads(store: SessionStore, directory: Path) -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "toolCalls": [call]},
        {"role": "tool", "content": "text", "toolCallId": "call_0", "name": "Read"},
    ]
    id = "session_1772368200123_k3j9x0a1b"
    times = {"createdAt": "2026-03-01T11:00:00.000Z", "updatedAt": "2026-03-01T12:00:00.000Z"}
    write_file(directory, f"{id}.json", {"id": id, "cwd": "/w", **times, "messages": messages})
    record = load(store, id)
    assert record.problems == ()
    assert record.messages == messages
    read = record.parse_messages()
    assert [message.role for message in read] == ["user", "assistant", "tool"]
    assert [entry.data for entry in record.parse_history()] == read


@pytest.mark.parametrize("key", EVERY_OPTIONAL_LIST)
def test_values_of_a_strange_type_survive(store: SessionStore, directory: Path, key: str) -> None:
    write_file(directory, "s1.json", {**make_record("s1"), key: {"next": "version"}, "name": 7})
    store.save(load(store, "s1"))
    written = json.loads((directory / "s1.json").read_text())
    assert (written[key], written["name"]) == ({"next": "version"}, 7)


def test_numbers_beyond_our_own_survive_in_fields_we_do_not_know(
    store: SessionStore, directory: Path
) -> None:
    text = json.dumps(make_record("s1"))[:-1] + ', "later": [123456789012345678901234567890, 1.50, 1e-7]}'
    write_file(directory, "s1.json", text)
    store.save({"id": "s1", "name": "renamed"})
    written = "".join((directory / "s1.json").read_text().split())
    assert '"later":[123456789012345678901234567890,1.50,1e-7]' in written


def test_half_characters_of_javascript_load_and_are_told(store: SessionStore, directory: Path) -> None:
    text = json.dumps({**make_record("s1"), "name": "cut \ud83d"})
    write_file(directory, "s1.json", text)
    record = load(store, "s1")
    assert record.name == "cut \ufffd"
    assert len(record.problems) == 1


@pytest.mark.parametrize("version", [RECORD_VERSION + 1, "2.0", "2.5.1", 2.5, "vNext", {"major": 1}])
def test_a_newer_version_is_read_but_never_overwritten(
    store: SessionStore, directory: Path, version: object
) -> None:
    path = write_file(directory, "s1.json", {**make_record("s1"), "version": version})
    before = path.read_bytes()
    record = load(store, "s1")
    assert record.read_only
    assert "newer robota" in record.problems[0]
    for attempt in (record, make_record("s1"), {"id": "s1", "name": "x"}):
        with pytest.raises(StorageError, match="newer robota"):
            store.save(attempt)
    assert path.read_bytes() == before
    record.version, record.id = RECORD_VERSION, "fork"
    store.save(record)
    assert load(store, "fork").messages == record.messages


@pytest.mark.parametrize("version", [RECORD_VERSION, f"{RECORD_VERSION}.7", None])
def test_the_same_major_version_is_written(store: SessionStore, directory: Path, version: object) -> None:
    write_file(directory, "s1.json", {**make_record("s1"), "version": version})
    store.save(load(store, "s1"))
    assert json.loads((directory / "s1.json").read_text())["version"] == (version or RECORD_VERSION)


def test_a_record_copied_to_another_name_is_that_session(store: SessionStore, directory: Path) -> None:
    write_file(directory, "copy.json", make_record("s1"))
    record = load(store, "copy")
    assert record.id == "copy"
    assert "'s1'" in record.problems[0]


def test_a_record_with_a_history_alone_has_its_messages(store: SessionStore, directory: Path) -> None:
    record = make_record("s1")
    messages = record.pop("messages")
    write_file(directory, "s1.json", record)
    assert load(store, "s1").messages == messages


# --- damage ---------------------------------------------------------------------------------------------

DAMAGED = {
    "cut": json.dumps(make_record("s1"))[:200].encode(),
    "empty": b"",
    "zero-filled": bytes(4096),
    "no object": b"[1, 2]",
    "no messages": b'{"id": "s1"}',
    "messages of a strange type": b'{"id": "s1", "messages": {}}',
    "no text": b'{"id": "s1", "messages": ["\xff"]}',
    "two records": json.dumps(make_record("s1")).encode() * 2,
    "nested": b'{"messages": [' + b"[" * 100_000,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_record_is_an_error_and_never_lost(
    store: SessionStore, directory: Path, content: bytes
) -> None:
    path = write_file(directory, "s1.json", content)
    with pytest.raises(StorageError, match=r"s1\.json cannot be read: .*no journal") as told:
        store.load("s1")
    assert "Traceback" not in str(told.value)
    assert path.read_bytes() == content
    store.save(make_record("s1"))
    assert (directory / "s1.json.damaged-1").read_bytes() == content
    assert load(store, "s1").to_mapping() == make_record("s1")


def test_copies_of_damaged_records_do_not_replace_each_other(store: SessionStore, directory: Path) -> None:
    for content in (b"{", b"{", b"["):
        write_file(directory, "s1.json", content)
        store.save(make_record("s1"))
    copies = sorted(path.name for path in directory.glob("*.damaged-*"))
    assert [(directory / name).read_bytes() for name in copies] == [b"{", b"["]


def test_a_file_that_is_no_file_is_an_error(store: SessionStore, directory: Path) -> None:
    (directory / "s1.json").mkdir(parents=True)
    os.mkfifo(directory / "s2.json")
    for id in ("s1", "s2"):
        with pytest.raises(StorageError, match=f"{id}.json cannot be read"):
            store.load(id)
        with pytest.raises(StorageError, match="was not saved"):
            store.save(make_record(id))


def test_a_file_beyond_reason_is_not_read(store: SessionStore, directory: Path) -> None:
    path = write_file(directory, "s1.json", json.dumps(make_record("s1")))
    os.truncate(path, 10**9)
    with pytest.raises(StorageError, match="1,000,000,000 bytes"):
        store.load("s1")
    with pytest.raises(StorageError, match=r"was not overwritten.*Move it away"):
        store.save(make_record("s1"))
    (summary,) = store.list()
    assert (summary.damaged, summary.size) == (True, 10**9)


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = SessionStore(tmp_path / "file" / "sessions")
    with pytest.raises(StorageError, match="file/sessions"):
        store.save(make_record("s1"))


# --- two at once ----------------------------------------------------------------------------------------

WORKER = """
import sys
from robota.sessions.store.session_store import SessionStore
from robota.testing.store_conformance import make_record
store = SessionStore(sys.argv[1])
for turn in range(20):
    store.save(make_record(f"{sys.argv[2]}-{turn % 5}"))
    store.list()
    store.search("turtle")
    store.delete(f"{sys.argv[2]}-{(turn + 3) % 5}")
print(len([s for s in store.list() if s.id.startswith(sys.argv[2])]))
"""


def test_two_processes_save_list_search_and_delete_at_the_same_time(directory: Path) -> None:
    command = [sys.executable, "-c", WORKER, str(directory)]
    workers = [
        subprocess.Popen([*command, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    results = [worker.communicate(timeout=100) for worker in workers]
    assert results == [("2\n", ""), ("2\n", "")]
    assert len(SessionStore(directory).list()) == 4


def test_an_answer_given_as_a_message_is_written_like_a_record(store: SessionStore, directory: Path) -> None:
    store.save(SessionRecord(id="s1", cwd="/w", messages=[QUESTION, ANSWER]))
    assert json.loads((directory / "s1.json").read_text())["messages"] == records_of(QUESTION, ANSWER)
