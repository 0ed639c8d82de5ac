from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.exported import HOSTILE, NOON, record_full_of, record_of

from robota.core.errors import ValidationError
from robota.core.messages import UserMessage
from robota.sessions.export.artifact import export_json, import_json
from robota.sessions.export.markdown import export_markdown
from robota.sessions.store.session_record import SessionRecord
from robota.sessions.transcripts.claude_transcript import read_claude_transcript

DATA = Path(__file__).parent / "data"
SESSION = json.loads((DATA / "export" / "session.json").read_text())


def test_a_session_comes_back_as_it_was() -> None:
    assert import_json(export_json(SESSION, redact=False)) == SESSION
    assert import_json(export_json(SESSION)) == SESSION  # there is no secret in it


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    record = record_full_of(text) | {"id": "s1"}

    assert import_json(export_json(record, redact=False)) == record


def test_fields_that_nobody_here_knows_come_along() -> None:
    record = SESSION | {"goal": {"text": "more tea"}, "plan": ["buy", "sell"]}

    assert import_json(export_json(record)) == record


def test_a_stored_record_and_an_imported_transcript_are_exported_alike() -> None:
    stored = SessionRecord(id="s1", cwd="/work", messages=[{"role": "user", "content": "hello"}])
    path = DATA / "claude" / "projects" / "-home-ada-shop" / "5f0c1d2e-0000-4000-8000-00000000c0de.jsonl"
    imported = read_claude_transcript(str(path))

    assert import_json(export_json(stored))["messages"] == [{"role": "user", "content": "hello"}]
    assert import_json(export_json(imported, redact=False)) == imported.record
    assert "Tea and cups." in export_markdown(imported)


def test_an_artifact_of_the_original_is_read() -> None:
    record = {"id": "session_1772355600000_abc123xyz", "cwd": "/", "messages": [], "history": []}

    assert import_json(json.dumps({"schemaVersion": 1, "record": record})) == record


def test_secrets_are_removed_and_the_artifact_says_so() -> None:
    key = "sk-ant-api03-" + "q" * 40
    record = record_of(UserMessage(f"my key is {key}", timestamp=NOON), apiKey=key)
    shared = export_json(record)

    assert key not in shared
    assert json.loads(shared)["redacted"] is True
    assert (
        "hello"
        not in export_json(record_of(UserMessage("hello", timestamp=NOON)), secrets=["hello-hello"])[:9]
    )
    assert import_json(export_json(record, redact=False))["apiKey"] == key


@pytest.mark.parametrize("version", [2, 0, "1", 1.0, True, [1]])
def test_another_version_is_refused_by_name(version: object) -> None:
    with pytest.raises(ValidationError, match="schemaVersion") as refused:
        import_json(json.dumps({"schemaVersion": version, "record": SESSION}))

    assert refused.value.field == "schemaVersion"


@pytest.mark.parametrize(
    ("artifact", "reason"),
    [
        ("", "not valid JSON"),
        ("[1]", "no schemaVersion"),
        ({"record": SESSION}, "no schemaVersion"),
        ({"schemaVersion": 1}, "holds no record"),
        ({"schemaVersion": 1, "record": []}, "holds no record"),
        ({"schemaVersion": 1, "record": {"id": "s1"}}, "has no messages"),
        ({"schemaVersion": 1, "record": {"id": 1, "messages": []}}, "has no id"),
        ({"schemaVersion": 1, "record": {"id": "../x", "messages": []}}, "cannot be a session id"),
    ],
)
def test_what_is_no_artifact_is_refused_with_the_reason(artifact: Any, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        import_json(artifact if isinstance(artifact, str) else json.dumps(artifact))
