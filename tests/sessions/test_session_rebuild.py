"""What `SessionStore.load` makes of a snapshot and a journal together."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.sessions.stored_sessions import (
    ANSWER,
    QUESTION,
    SESSION_INIT,
    THANKS,
    message_event,
    records_of,
    write_journal,
)

from robota.core.errors import StorageError
from robota.core.jsontext import decode, encode
from robota.core.messages import AssistantMessage, ToolCall
from robota.sessions.store.session_record import SessionRecord
from robota.sessions.store.session_store import SessionStore
from robota.testing.store_conformance import make_record

FIRST = message_event(0, QUESTION)
SECOND = message_event(1, ANSWER)
THIRD = message_event(2, THANKS)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def store(directory: Path) -> SessionStore:
    return SessionStore(directory)


def load(store: SessionStore) -> SessionRecord:
    record = store.load("s1")
    assert record is not None
    return record


def save_snapshot(store: SessionStore, *, journal_seq: int | None) -> None:
    """A snapshot of question and answer, with a field that only the SDK knows."""
    store.save(
        SessionRecord(
            id="s1",
            cwd="/srv/project",
            messages=records_of(QUESTION, ANSWER),
            journal_seq=journal_seq,
            background_tasks=[{"taskId": "t1"}],
            extra={"goal": "later"},
        )
    )


def test_a_session_without_a_snapshot_is_loaded_from_its_journal(
    store: SessionStore, directory: Path
) -> None:
    write_journal(directory, "s1", SESSION_INIT, FIRST)
    write_journal(directory, "s1", SECOND, {"event": "session_shutdown"}, now=1_772_370_000.0)
    record = load(store)
    assert record.parse_messages() == [QUESTION, ANSWER]
    assert [entry.data for entry in record.parse_history()] == [QUESTION, ANSWER]
    assert (record.cwd, record.model, record.name) == ("/srv/project", "some-model", "parsing")
    assert (record.system_prompt, record.tool_schemas) == ("Be brief.", [{"name": "Read"}])
    assert record.created_at == "2026-03-01T12:00:00.000Z"
    assert record.updated_at == "2026-03-01T13:00:00.000Z"
    assert record.problems == ()


def test_a_journal_that_went_on_completes_the_snapshot(store: SessionStore, directory: Path) -> None:
    write_journal(directory, "s1", SESSION_INIT, FIRST, SECOND)
    save_snapshot(store, journal_seq=3)
    write_journal(directory, "s1", {"event": "run_end", "run": 1}, THIRD, now=1_900_000_000.0)
    record = load(store)
    assert record.parse_messages() == [QUESTION, ANSWER, THANKS]
    assert (record.background_tasks, record.extra) == ([{"taskId": "t1"}], {"goal": "later"})
    assert (record.journal_seq, record.updated_at[:4], record.problems) == (5, "2030", ())


def test_a_snapshot_that_contradicts_the_journal_never_wins_silently(
    store: SessionStore, directory: Path
) -> None:
    write_journal(directory, "s1", SESSION_INIT, FIRST, SECOND)
    changed = records_of(QUESTION, replace(ANSWER, content="In evil.py."))
    store.save(SessionRecord(id="s1", cwd="/srv/project", messages=changed, journal_seq=3))
    record = load(store)
    assert record.parse_messages() == [QUESTION, ANSWER]
    assert record.problems == ("Message 2 of the snapshot differs from the journal, which counts.",)

    foreign = records_of(QUESTION, replace(ANSWER, id="other", content="In evil.py."))
    store.save(SessionRecord(id="s1", cwd="/srv/project", messages=foreign, journal_seq=3))
    record = load(store)
    assert record.parse_messages() == [QUESTION, ANSWER]
    assert record.problems == ("The snapshot has another message 2 than the journal: it was not used.",)


def test_an_answer_cut_by_a_crash_is_part_of_the_session(store: SessionStore, directory: Path) -> None:
    write_journal(directory, "s1", SESSION_INIT, FIRST)
    save_snapshot(store, journal_seq=1)
    write_journal(
        directory, "s1", {"event": "stream", "run": 1, "round": 1, "pieces": {"texts": ["In par", "ser"]}}
    )
    record = load(store)
    last = record.parse_messages()[-1]
    assert (last.content, last.state) == ("In parser", "interrupted")
    assert any("cut" in problem for problem in record.problems)


@pytest.mark.parametrize("damaged", [b"", b"{", bytes(100), b"[]"])
def test_a_damaged_snapshot_is_rebuilt_from_the_journal_and_told(
    store: SessionStore, directory: Path, damaged: bytes
) -> None:
    write_journal(directory, "s1", SESSION_INIT, FIRST, SECOND)
    (directory / "s1.json").write_bytes(damaged)
    record = load(store)
    assert record.parse_messages() == [QUESTION, ANSWER]
    assert "s1.json cannot be read" in record.problems[0]
    assert "rebuilt from the journal" in record.problems[0]
    assert (directory / "s1.json").read_bytes() == damaged
    store.save(record)
    assert load(store).problems == ()
    assert (directory / "s1.json.damaged-1").read_bytes() == damaged


@pytest.mark.parametrize("journal", [b"", bytes(500), b"no journal at all\n"])
def test_a_journal_with_nothing_in_it_is_no_empty_session(
    store: SessionStore, directory: Path, journal: bytes
) -> None:
    directory.mkdir()
    (directory / "s1.jsonl").write_bytes(journal)
    with pytest.raises(StorageError, match=r"s1\.jsonl"):
        store.load("s1")
    (directory / "s1.json").write_bytes(b"{")
    with pytest.raises(StorageError, match=r"s1\.json cannot be read.*s1\.jsonl"):
        store.load("s1")
    assert (directory / "s1.jsonl").read_bytes() == journal


def test_a_journal_that_cannot_be_read_leaves_the_snapshot(store: SessionStore, directory: Path) -> None:
    save_snapshot(store, journal_seq=3)
    (directory / "s1.jsonl").mkdir()
    record = load(store)
    assert record.parse_messages() == [QUESTION, ANSWER]
    assert "The snapshot is used" in record.problems[0]


def test_messages_that_only_the_snapshot_has_left_are_kept(store: SessionStore, directory: Path) -> None:
    journal = write_journal(directory, "s1", SESSION_INIT, FIRST, SECOND)
    save_snapshot(store, journal_seq=3)
    write_journal(directory, "s1", THIRD)
    lines = journal.read_bytes().split(b"\n")
    lines[1] = bytes(len(lines[1]))
    journal.write_bytes(b"\n".join(lines))
    record = load(store)
    assert record.parse_messages() == [QUESTION, ANSWER, THANKS]
    assert [entry.data for entry in record.parse_history()] == [QUESTION, ANSWER, THANKS]
    assert record.problems


def test_a_history_that_was_cleared_stays_cleared(store: SessionStore, directory: Path) -> None:
    write_journal(directory, "s1", SESSION_INIT, FIRST, SECOND)
    save_snapshot(store, journal_seq=3)
    write_journal(directory, "s1", {"event": "history_cleared"}, message_event(0, THANKS))
    assert load(store).parse_messages() == [THANKS]


def test_without_a_number_in_the_snapshot_the_longer_of_the_two_counts(
    store: SessionStore, directory: Path
) -> None:
    write_journal(directory, "s1", SESSION_INIT, FIRST)
    save_snapshot(store, journal_seq=None)
    assert load(store).parse_messages() == [QUESTION, ANSWER]
    write_journal(directory, "s1", SECOND, THIRD)
    assert load(store).parse_messages() == [QUESTION, ANSWER, THANKS]


def test_a_snapshot_ahead_of_what_is_left_of_the_journal_is_used(
    store: SessionStore, directory: Path
) -> None:
    write_journal(directory, "s1", SESSION_INIT)
    save_snapshot(store, journal_seq=3)
    assert load(store).parse_messages() == [QUESTION, ANSWER]


def test_a_name_given_in_the_session_wins_over_the_older_snapshot(
    store: SessionStore, directory: Path
) -> None:
    write_journal(directory, "s1", SESSION_INIT, FIRST, SECOND)
    save_snapshot(store, journal_seq=3)
    store.save({"id": "s1", "name": "from outside"})
    assert load(store).name == "from outside"
    write_journal(directory, "s1", THIRD)
    assert load(store).name == "from outside"
    write_journal(directory, "s1", {"event": "session_change", "change": "name", "value": "renamed"})
    assert load(store).name == "renamed"


def test_a_call_without_a_result_is_repaired_and_told(store: SessionStore, directory: Path) -> None:
    asked = AssistantMessage("", (ToolCall("call_0", "Bash", "{}"),), id="m2")
    write_journal(directory, "s1", SESSION_INIT, FIRST, message_event(1, asked))
    record = load(store)
    assert [message.role for message in record.parse_messages()] == ["user", "assistant", "tool"]
    assert any("effects are unknown" in problem for problem in record.problems)


def test_a_session_of_the_original_with_its_log_loads(store: SessionStore, directory: Path) -> None:
    store.save({**make_record("s1"), "journalSeq": None})
    lines = [
        {
            "timestamp": "2026-03-01T12:00:00.000Z",
            "sessionId": "s1",
            "event": "history_mutation",
            "message": message,
        }
        for message in records_of(QUESTION, ANSWER, THANKS)
    ]
    (directory / "s1.jsonl").write_bytes(b"".join(encode(line) + b"\n" for line in lines))
    assert load(store).parse_messages() == [QUESTION, ANSWER, THANKS]


def test_loading_changes_no_file(store: SessionStore, directory: Path) -> None:
    write_journal(directory, "s1", SESSION_INIT, FIRST, SECOND)
    save_snapshot(store, journal_seq=2)
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    load(store)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
    assert decode(before["s1.json"])["journalSeq"] == 2
