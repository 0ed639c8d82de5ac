"""A log says whether it has everything that a replay needs, and gives its conversation back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.recorded_session import RecordedSession, add, scripted, served

from robota.core.errors import ProviderError
from robota.core.events import TextDelta
from robota.core.messages import HistoryEntry, JsonObject
from robota.sessions.journal.entries import SessionLogEntries, load_session_log_entries
from robota.sessions.replay.log_entries import (
    replay_session_log_entries,
    validate_session_replay_log_entries,
)
from robota.testing import Fail, HttpError, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


async def record(home: Path) -> SessionLogEntries:
    """Two rounds over the wire; the model uses one call id twice."""
    replies = (["adding", call("add", "c", a=1, b=2)], [call("add", "c", a=3, b=4)], "7")
    async with served(home, *replies) as recorded:
        await recorded.run("go")
    return recorded.log()


def without(entries: SessionLogEntries, event: str, **fields: Any) -> list[JsonObject]:
    """The entries without those of an event that have these fields."""
    return [
        entry
        for entry in entries
        if entry["event"] != event or any(entry.get(name) != value for name, value in fields.items())
    ]


def issues_of(entries: list[JsonObject]) -> list[tuple[str, str, str]]:
    validation = validate_session_replay_log_entries(entries)
    assert validation.ok == (not validation.issues)
    assert all(issue.message.endswith(".") for issue in validation.issues)
    return [(issue.code, issue.event, issue.key.rpartition(":")[2]) for issue in validation.issues]


async def test_a_whole_log_has_no_issues(tmp_path: Path) -> None:
    assert issues_of(await record(tmp_path)) == []


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ("provider_response_raw", "PROVIDER_RESPONSE_RAW_MISSING"),
        ("provider_response_normalized", "PROVIDER_RESPONSE_NORMALIZED_MISSING"),
        ("provider_native_raw_payload", "PROVIDER_NATIVE_RAW_PAYLOAD_MISSING"),
    ],
)
async def test_a_part_of_a_model_call_that_is_missing_is_named(tmp_path: Path, event: str, code: str) -> None:
    entries = await record(tmp_path)

    assert issues_of(without(entries, event, round=2)) == [(code, "provider_request", "2")]
    assert [key for *_, key in issues_of(without(entries, event))] == ["1", "2", "3"]


async def test_the_request_alone_is_no_native_payload_of_an_answer(tmp_path: Path) -> None:
    entries = await record(tmp_path)
    native = "provider_native_raw_payload"

    assert issues_of(without(entries, native, payloadKind="request")) == []
    assert len(issues_of(without(entries, native, payloadKind="stream_event"))) == 3


async def test_a_call_without_a_result_and_a_result_without_a_call_are_named(tmp_path: Path) -> None:
    entries = await record(tmp_path)

    results = without(entries, "tool_execution_result", round=1)
    requests = without(entries, "tool_execution_request", round=2)

    assert issues_of(results) == [("TOOL_RESULT_MISSING", "tool_execution_request", "c")]
    assert issues_of(requests) == [("TOOL_REQUEST_MISSING", "tool_execution_result", "c")]


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_text('"other"')])
async def test_a_payload_that_is_gone_or_changed_is_named(
    tmp_path: Path, harm: Callable[[Path], Any]
) -> None:
    @tool
    async def fetch() -> str:
        """Get a page."""
        return "ä" * 20_000

    recorded = scripted(tmp_path, [call("fetch")], "x" * 40_000, tools=(fetch,))
    await recorded.run("go")
    payloads = sorted((tmp_path / "sessions" / "s-1.payloads").iterdir())
    assert len(payloads) == 3  # the piece of the stream, the answer, the result
    assert validate_session_replay_log_entries(recorded.log()).ok
    for path in payloads:
        harm(path)

    entries = recorded.log()

    codes = [issue.code for issue in validate_session_replay_log_entries(entries).issues]
    assert codes.count("PAYLOAD_REFERENCE_INVALID") == 3
    assert len(entries.problems) >= 3


async def test_calls_that_failed_or_were_stopped_before_a_word_came_are_whole(tmp_path: Path) -> None:
    async with served(tmp_path, HttpError(500), ["half", Stall()]) as recorded:
        recorded.session.events.on(TextDelta, lambda event: recorded.session.abort())
        await recorded.run("go", "on")
    assert issues_of(recorded.log()) == []

    failing = scripted(tmp_path, [Fail(ProviderError("no"))], [], [], "x", session_id="s-2")
    await failing.run("go", "on")
    assert issues_of(failing.log()) == []


async def test_a_log_that_ends_in_the_middle_lacks_what_had_not_come_yet(tmp_path: Path) -> None:
    entries = await record(tmp_path)
    last = max(at for at, entry in enumerate(entries) if entry["event"] == "provider_stream_raw_delta")

    assert [code for code, *_ in issues_of(entries[: last + 1])] == [
        "PROVIDER_RESPONSE_RAW_MISSING",
        "PROVIDER_RESPONSE_NORMALIZED_MISSING",
    ]


# --- the conversation ------------------------------------------------------------------------------------


async def test_the_conversation_of_a_log_is_the_conversation_of_its_session(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, "gone", [call("add", a=1, b=2)], "3", "a summary", "on", tools=(add,))
    session = recorded.session
    await recorded.run("first")
    session.clear_history()
    await recorded.run("second")
    session.add_history_entry(HistoryEntry(category="event", type="note", data={"n": 1}))
    await session.compact()
    await recorded.run("third")

    replayed = replay_session_log_entries(recorded.log())

    assert replayed.session_id == "s-1"
    assert list(replayed.messages) == session.messages
    assert list(replayed.history) == session.history
    assert list(replayed.model_view) == list(session.agent.conversation.messages_for_api())
    assert replayed.problems == ()


def original_log(path: Path) -> Path:
    """Lines as the TypeScript original writes them."""
    ids = {"executionId": "e", "conversationId": "k", "round": 1}
    answer = {
        "role": "assistant",
        "content": None,
        "toolCalls": [{"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}],
    }
    lines: list[JsonObject] = [
        {"event": "session_init", "systemPrompt": "Be brief.", "provider": "anthropic"},
        {"event": "history_mutation", "mutation": "append", "message": {"role": "user", "content": "hi"}},
        {"event": "provider_request", **ids},
        {"event": "provider_native_raw_payload", "payloadKind": "response", "payload": {}, **ids},
        {"event": "provider_response_raw", "response": {}, **ids},
        {"event": "provider_response_normalized", "message": answer, **ids},
        {"event": "history_mutation", "message": answer, **ids},
        {"event": "tool_execution_request", "toolName": "add", "toolCallId": "c", **ids},
        {"event": "tool_execution_result", "toolName": "add", "toolCallId": "c", "success": True, **ids},
        {
            "event": "history_mutation",
            "message": {"role": "tool", "content": "1", "toolCallId": "c", "name": "add"},
        },
        {"event": "history_mutation", "message": {"role": "alien", "content": "?"}},
    ]
    stamp = {"timestamp": "2025-01-02T03:04:05.678Z", "sessionId": "session_1_abc"}
    path.write_text("".join(json.dumps({**stamp, **line}) + "\n" for line in lines))
    return path


def test_a_log_of_the_original_is_read_as_it_is(tmp_path: Path) -> None:
    entries = load_session_log_entries(original_log(tmp_path / "session_1_abc.jsonl"))

    replayed = replay_session_log_entries(entries)

    assert [(message.role, message.content) for message in replayed.messages] == [
        ("user", "hi"),
        ("assistant", ""),
        ("tool", "1"),
    ]
    assert {message.timestamp.year for message in replayed.messages} == {2025}
    assert len({message.id for message in replayed.messages}) == 3
    assert validate_session_replay_log_entries(entries).ok
    assert ["alien" in problem for problem in (*entries.problems, *replayed.problems)] == [True, True]


def test_nothing_is_made_of_nothing() -> None:
    assert replay_session_log_entries([]).messages == ()
    assert validate_session_replay_log_entries([]).ok


async def test_a_scripted_session_is_whole_too(tmp_path: Path) -> None:
    recorded: RecordedSession = scripted(tmp_path, "a", [call("add", a=1, b=2)], "b")
    await recorded.run("go", "on")

    assert issues_of(recorded.log()) == []
