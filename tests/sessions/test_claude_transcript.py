from __future__ import annotations

import errno
import json
import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.history import assert_valid_for_a_request

from robota.core.conversation import ConversationStore
from robota.core.errors import ValidationError
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Message,
    ReasoningBlock,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.sessions.files import Files
from robota.sessions.transcripts import lines as transcript_lines
from robota.sessions.transcripts.claude_transcript import (
    NO_RESULT,
    ImportedTranscript,
    TranscriptError,
    read_claude_transcript,
)
from robota.sessions.transcripts.files import SubagentTranscript

PROJECT = Path(__file__).parent / "data" / "claude" / "projects" / "-home-ada-shop"
SESSION = "5f0c1d2e-0000-4000-8000-00000000c0de"
SAMPLE = PROJECT / f"{SESSION}.jsonl"


def line(kind: str, uuid: str, parent: str | None, content: Any = "", **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content} | ({"id": f"msg-{uuid}"} if kind == "assistant" else {})
    message |= more.pop("message", {})
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **more}


def call(id: str, name: str = "Read") -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {}}


def result(id: str, content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def write(path: Path, lines: Sequence[dict[str, Any] | str | bytes]) -> str:
    raw = [
        item if isinstance(item, bytes) else (item if isinstance(item, str) else json.dumps(item)).encode()
        for item in lines
    ]
    path.write_bytes(b"".join(one + b"\n" for one in raw))
    return str(path)


def read(tmp_path: Path, *lines: dict[str, Any] | str | bytes) -> ImportedTranscript:
    return read_claude_transcript(write(tmp_path / "t.jsonl", lines))


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages]


def assert_can_go_on(imported: ImportedTranscript) -> None:
    """What a conversation of ours would send is valid: of all messages, and from the last compaction on."""
    for messages in (imported.messages, imported.view):
        store = ConversationStore()
        for message in messages:
            store.append(message)
        assert_valid_for_a_request(store.messages_for_api())


# --- a whole session ------------------------------------------------------------------------------------


def test_a_session_is_imported_with_its_facts() -> None:
    imported = read_claude_transcript(str(SAMPLE))

    assert (imported.id, imported.cwd, imported.name) == (SESSION, "/home/ada/shop", "Prices for the shop")
    assert imported.model == "claude-opus-5"
    assert imported.created_at == datetime(2026, 3, 1, 9, 0, 1, tzinfo=UTC)
    assert imported.updated_at == datetime(2026, 3, 1, 9, 11, 5, tzinfo=UTC)
    assert imported.origin == {
        "format": "claude-code",
        "path": str(SAMPLE),
        "sessionId": SESSION,
        "version": "2.1.82",
        "gitBranch": "prices",
        "tag": "shop",
    }
    assert imported.problems == ("The call of Bash on line 24 has no result; its effects are unknown.",)
    assert_can_go_on(imported)


def test_a_reply_written_in_several_lines_is_one_message() -> None:
    reply = read_claude_transcript(str(SAMPLE)).messages[1]

    assert reply == AssistantMessage(
        "I will read two files.",
        (
            ToolCall("toolu_1", "Read", '{"file_path":"/home/ada/shop/goods.txt"}'),
            ToolCall("toolu_2", "Read", '{"file_path":"/home/ada/shop/logo.png"}'),
        ),
        reasoning=(ReasoningBlock("Look at the files first.", "c2lnbmVk"),),
        id="a1",
        timestamp=datetime(2026, 3, 1, 9, 0, 3, tzinfo=UTC),
        metadata={
            "model": "claude-opus-5",
            "responseId": "msg_1",
            "stopReason": "tool_use",
            "inputTokens": 1504,
            "outputTokens": 61,
            "cacheReadTokens": 500,
            "cacheWriteTokens": 1000,
        },
    )


def test_results_of_parallel_calls_follow_in_the_order_of_the_calls() -> None:
    first, second = read_claude_transcript(str(SAMPLE)).messages[2:4]

    assert isinstance(first, ToolMessage)
    assert isinstance(second, ToolMessage)
    assert (first.tool_call_id, first.name, first.content) == ("toolu_1", "Read", "1\ttea\n2\tcups")
    assert first.metadata["toolUseResult"] == {
        "type": "text",
        "file": {"filePath": "/home/ada/shop/goods.txt", "numLines": 2},
    }
    assert (second.tool_call_id, second.parts) == ("toolu_2", (ImagePart("iVBORw0KGgo=", "image/png"),))


def test_what_was_rewound_and_what_a_subagent_said_is_not_part_of_the_conversation() -> None:
    said = texts(read_claude_transcript(str(SAMPLE)).messages)

    assert "Delete everything." not in said
    assert "Are you sure?" not in said
    assert "Count the goods." not in said


def test_a_compaction_becomes_a_marked_summary_and_nothing_before_it_is_lost() -> None:
    imported = read_claude_transcript(str(SAMPLE))
    summary = next(message for message in imported.messages if message.metadata.get("compaction"))

    assert isinstance(summary, AssistantMessage)
    assert summary.content == "[Context Summary]\nThe user wants prices in goods.txt and refused one edit."
    assert summary.metadata == {"compaction": True, "replaces": 10}
    assert imported.messages.index(summary) == 10
    assert texts(imported.view) == [summary.content, "Go on, run the tests.", "Running them.", NO_RESULT]
    assert [entry.type for entry in imported.history if entry.category == "event"] == [
        "attachment",
        "context_compact",
    ]


def test_documents_and_what_was_added_without_the_user_are_kept_apart() -> None:
    prompt, reminder = read_claude_transcript(str(SAMPLE)).messages[5:7]

    assert isinstance(prompt, UserMessage)
    assert prompt.parts == (
        TextPart("Add prices from this list."),
        FilePart("JVBERi0=", "application/pdf", "prices.pdf"),
    )
    assert reminder.metadata == {"isMeta": True}


def test_a_refused_call_keeps_its_error() -> None:
    refused = read_claude_transcript(str(SAMPLE)).messages[8]

    assert isinstance(refused, ToolMessage)
    assert refused.metadata["success"] is False
    assert refused.content == "The user doesn't want to proceed with this tool use."


def test_subagents_are_listed_and_can_be_imported_themselves() -> None:
    path = str(PROJECT / SESSION / "subagents" / "agent-b7e1.jsonl")

    assert read_claude_transcript(str(SAMPLE)).subagents == (SubagentTranscript("b7e1", path),)
    assert texts(read_claude_transcript(path).messages) == ["Count the goods.", "Two."]
    assert read_claude_transcript(path).id == "agent-b7e1"


def test_the_record_is_in_the_spelling_used_on_disk() -> None:
    from robota.sessions.store.message_codec import history_entry_from_record, message_from_record

    imported = read_claude_transcript(str(SAMPLE))
    record = json.loads(json.dumps(imported.record))

    assert [message_from_record(message) for message in record["messages"]] == imported.messages
    assert [history_entry_from_record(entry) for entry in record["history"]] == imported.history
    assert record["createdAt"] == "2026-03-01T09:00:01Z"
    assert record["importedFrom"]["format"] == "claude-code"
    assert {"id", "cwd", "createdAt", "updatedAt", "name", "model"} <= record.keys()


# --- the tree -------------------------------------------------------------------------------------------


def test_the_newest_branch_of_a_fork_is_the_conversation(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u1", None, "one"),
        line("assistant", "a1", "u1", "old"),
        line("user", "u2", "a1", "old question"),
        line("assistant", "b1", "u1", "new"),
    )

    assert texts(imported.messages) == ["one", "new"]
    assert imported.problems == ()


def test_a_note_without_the_user_does_not_make_an_old_branch_current(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u1", None, "one"),
        line("assistant", "a1", "u1", "old"),
        line("assistant", "b1", "u1", "new"),
        line("user", "m1", "a1", "note", isMeta=True),
    )

    assert texts(imported.messages) == ["one", "new"]


def test_a_circle_is_named_and_the_lines_before_it_are_kept(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u0", None, "before"),
        line("assistant", "a1", "u2", "answer"),
        line("user", "u2", "a1", "prompt"),
    )

    assert texts(imported.messages) == ["before", "answer", "prompt"]
    assert imported.problems == (
        "The entry that line 2 follows follows it in turn (a circle); line 1 is taken instead.",
    )


def test_a_missing_parent_is_named_and_the_entry_before_is_taken(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u1", None, "one"),
        line("assistant", "a1", "u1", "two"),
        '{"type":"user","uuid":"torn',
        line("assistant", "a2", "torn", "three"),
    )

    assert texts(imported.messages) == ["one", "two", "three"]
    assert imported.problems == (
        "Line 3 is not one JSON record; it was skipped.",
        "The entry that line 4 follows is not in the file; line 2 is taken instead.",
    )


def test_a_session_that_goes_on_from_another_file_begins_where_it_begins(tmp_path: Path) -> None:
    imported = read(tmp_path, line("user", "u1", "elsewhere", "one"))

    assert texts(imported.messages) == ["one"]
    assert imported.problems == ("The entry that line 1 follows is not in the file; nothing is before it.",)


def test_of_a_repeated_entry_the_last_counts(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u1", None, "first"),
        line("user", "u1", None, "second"),
        line("assistant", "a1", "u1", "answer"),
    )

    assert texts(imported.messages) == ["second", "answer"]
    assert imported.problems == ("Line 1 has the same uuid as line 2, which counts.",)


def test_messages_kept_by_a_compaction_stand_behind_its_summary(tmp_path: Path) -> None:
    kept = {"preservedSegment": {"headUuid": "u2", "anchorUuid": "c2", "tailUuid": "a2"}}
    imported = read(
        tmp_path,
        line("user", "u1", None, "old"),
        line("assistant", "a1", "u1", "old answer"),
        line("user", "u2", "a1", "kept"),
        line("assistant", "a2", "u2", "kept answer"),
        line("system", "c1", None, logicalParentUuid="a2", subtype="compact_boundary", compactMetadata=kept),
        line("user", "c2", "c1", "summary", isCompactSummary=True),
        line("user", "u3", "c2", "next"),
    )

    assert texts(imported.view) == ["[Context Summary]\nsummary", "kept", "kept answer", "next"]
    assert imported.view[0].metadata["replaces"] == 2


def test_a_real_compaction_is_imported_with_its_summary(tmp_path: Path) -> None:
    """The first prompt behind it follows the last message that was kept, not the summary."""
    kept = {"preservedSegment": {"headUuid": "u2", "anchorUuid": "c2", "tailUuid": "a2"}}
    again = {"preservedSegment": {"headUuid": "u3", "anchorUuid": "d2", "tailUuid": "a3"}}
    boundary = {"subtype": "compact_boundary", "content": "Conversation compacted"}
    imported = read(
        tmp_path,
        line("user", "u1", None, "old"),
        line("assistant", "a1", "u1", "old answer"),
        line("user", "u2", "a1", "kept"),
        line("assistant", "a2", "u2", "kept answer"),
        line("system", "c1", None, logicalParentUuid="a2", compactMetadata=kept, **boundary),
        line("user", "c2", "c1", "summary", isCompactSummary=True),
        line("user", "u3", "a2", "next"),
        line("assistant", "a3", "u3", "next answer"),
        line("system", "d1", None, logicalParentUuid="a3", compactMetadata=again, **boundary),
        line("user", "d2", "d1", "second summary", isCompactSummary=True),
        line("user", "u4", "a3", "last"),
    )

    assert texts(imported.messages) == [
        "old", "old answer", "[Context Summary]\nsummary", "kept", "kept answer",
        "[Context Summary]\nsecond summary", "next", "next answer", "last",
    ]  # fmt: skip
    assert texts(imported.view) == ["[Context Summary]\nsecond summary", "next", "next answer", "last"]
    assert imported.problems == ()


def test_a_compaction_that_follows_nothing_loses_nothing_before_it(tmp_path: Path) -> None:
    """Older versions wrote no boundary."""
    imported = read(
        tmp_path,
        line("user", "u1", None, "old"),
        line("assistant", "a1", "u1", "old answer"),
        line("user", "s1", None, "a subagent's task", isSidechain=True),
        line("user", "c1", None, "summary", isCompactSummary=True),
        line("assistant", "a2", "c1", "new answer"),
    )

    assert texts(imported.messages) == ["old", "old answer", "[Context Summary]\nsummary", "new answer"]
    assert texts(imported.view) == ["[Context Summary]\nsummary", "new answer"]
    assert imported.problems == ()


def test_lines_that_all_follow_nothing_are_read_in_their_order(tmp_path: Path) -> None:
    imported = read(tmp_path, line("user", "u1", None, "one"), line("assistant", "a1", None, "two"))

    assert texts(imported.messages) == ["one", "two"]
    assert imported.problems == ()


def test_what_stands_before_a_new_beginning_is_named(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u1", None, "first thought"),
        line("assistant", "a1", "u1", "answer"),
        line("user", "u2", None, "second thought"),
        line("assistant", "a2", "u2", "another answer"),
    )

    assert texts(imported.messages) == ["second thought", "another answer"]
    assert imported.problems == ("Line 3 begins anew; 2 messages before it were left out.",)


@pytest.mark.parametrize(
    "said",
    ["<bash-input>make test</bash-input>", "<command-name>/doctor</command-name>\n<command-message>doctor"],
)
def test_a_local_command_beside_the_conversation_does_not_end_it(tmp_path: Path, said: str) -> None:
    talk = (
        line("user", "u0", None, "Caveat", isMeta=True),
        line("user", "u1", "u0", "question"),
        line("assistant", "a1", "u1", "answer"),
    )
    beside = read(tmp_path, *talk, line("user", "u2", "u0", said))
    behind = read(tmp_path, *talk, line("user", "u2", "a1", said))

    assert texts(beside.messages) == ["Caveat", "question", "answer"]
    assert texts(behind.messages) == ["Caveat", "question", "answer", said]


def test_the_leader_of_a_team_goes_on_with_its_own_conversation(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u1", None, "start a team"),
        line("assistant", "a1", "u1", "started", teamName="t"),
        line("user", "u2", "a1", "go on", teamName="t", agentName="team-lead"),
        line("assistant", "a2", "u2", "done", teamName="t"),
        line("user", "m1", None, "a mate's task", teamName="t", agentName="mate"),
    )

    assert texts(imported.messages) == ["start a team", "started", "go on", "done"]


# --- content --------------------------------------------------------------------------------------------


def test_pieces_of_a_reply_with_results_between_them_are_one_message(tmp_path: Path) -> None:
    same = {"id": "msg"}
    imported = read(
        tmp_path,
        line("user", "u1", None, "go"),
        line("assistant", "a1", "u1", [call("1")], message=same),
        line("user", "r1", "a1", [result("1")]),
        line("assistant", "a2", "r1", [call("2")], message=same),
        line("user", "r2", "a2", [result("2")]),
        line("assistant", "a3", "r2", [{"type": "text", "text": "end"}]),
    )

    assert [message.role for message in imported.messages] == [
        "user", "assistant", "tool", "tool", "assistant",
    ]  # fmt: skip
    assert_can_go_on(imported)


def test_a_call_id_that_comes_again_in_a_later_reply_is_another_call(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u1", None, "go"),
        line("assistant", "a1", "u1", [call("1")]),
        line("user", "u2", "a1", "never mind, again"),
        line("assistant", "a2", "u2", [call("1")]),
        line("user", "r2", "a2", [result("1", "the second")]),
    )

    assert texts(imported.messages) == ["go", "", NO_RESULT, "never mind, again", "", "the second"]
    assert_can_go_on(imported)


def test_text_beside_a_result_follows_the_results(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "u1", None, "go"),
        line("assistant", "a1", "u1", [call("1"), call("2")]),
        line("user", "r1", "a1", [{"type": "text", "text": "stop"}, result("2", "b"), result("1", "a")]),
    )

    assert texts(imported.messages) == ["go", "", "a", "b", "stop"]
    assert len({message.id for message in imported.messages}) == 5
    assert_can_go_on(imported)


def test_a_result_without_a_call_and_a_second_result_are_left_out_by_name(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        line("user", "r0", None, [result("nobody")]),
        line("user", "u1", "r0", "go"),
        line("assistant", "a1", "u1", [call("1")]),
        line("user", "r1", "a1", [result("1", "first")]),
        line("user", "r2", "r1", [result("1", "second")]),
    )

    assert texts(imported.messages) == ["go", "", "first"]
    assert imported.problems == (
        "Line 1 has a tool result, but there is no call that it answers; it was left out.",
        "Line 5 has a tool result, but there is an earlier result for the same call; it was left out.",
    )


def test_result_blocks_of_every_kind_become_parts_or_words(tmp_path: Path) -> None:
    blocks = [
        {"type": "text", "text": "seen"},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "tool_reference", "tool_name": "Grep"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "as text"}},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        {"type": "hologram"},
    ]
    imported = read(
        tmp_path,
        line("user", "u1", None, "go"),
        line("assistant", "a1", "u1", [call("1")]),
        line("user", "r1", "a1", [result("1", blocks)]),
    )

    answer = imported.messages[2]
    assert isinstance(answer, ToolMessage)
    assert answer.parts == (
        TextPart("seen"),
        ImageUriPart("https://example.com/a.png"),
        TextPart("[Tool: Grep]"),
        TextPart("as text"),
        TextPart("[Document: https://example.com/a.pdf]"),
        TextPart("[Content of the kind 'hologram' was not imported]"),
    )
    assert imported.problems == ("Line 3 has content of the kind 'hologram', which is not imported.",)


def test_large_fields_of_a_tools_own_result_are_left_out_by_name(tmp_path: Path) -> None:
    own = {"filePath": "a", "originalFile": "x" * 40_000}
    imported = read(
        tmp_path,
        line("user", "u1", None, "go"),
        line("assistant", "a1", "u1", [call("1")]),
        line("user", "r1", "a1", [result("1")], toolUseResult=own),
    )

    assert imported.messages[2].metadata == {
        "success": True,
        "toolName": "Read",
        "toolUseResult": {"filePath": "a"},
        "toolUseResultLeftOut": ["originalFile"],
    }


def test_encrypted_thinking_and_what_the_provider_ran_are_kept(tmp_path: Path) -> None:
    hidden = {"type": "redacted_thinking", "data": "ZW5j"}
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "tea"}}
    said = [{"type": "text", "text": "before"}, search, {"type": "text", "text": "after"}]
    imported = read(tmp_path, line("user", "u1", None, "go"), line("assistant", "a1", "u1", [hidden, *said]))

    reply = imported.messages[1]
    assert isinstance(reply, AssistantMessage)
    assert reply.reasoning == (ReasoningBlock(data=hidden),)
    assert reply.content == "before\n\nafter"
    assert reply.metadata["serverTools"] == [search]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("end_turn", {"stopReason": "end_turn"}),
        ("max_tokens", {"stopReason": "max_tokens"}),
        ("pause_turn", {"stopReason": "pause", "stopDetail": "pause_turn"}),
        ("stop_sequence", {"stopReason": "end_turn", "stopDetail": "stop_sequence"}),
        ("something_new", {"stopReason": "other", "stopDetail": "something_new"}),
        (None, {}),
    ],
)
def test_stop_reasons_are_ours(tmp_path: Path, theirs: str | None, ours: dict[str, str]) -> None:
    ended = line("assistant", "a1", None, "x", message={"stop_reason": theirs, "id": None})

    assert read(tmp_path, ended).messages[0].metadata == ours


def test_an_error_of_the_service_is_marked_and_names_no_model(tmp_path: Path) -> None:
    failed = line(
        "assistant",
        "a1",
        None,
        "API Error: 529",
        isApiErrorMessage=True,
        error="overloaded",
        message={"model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}},
    )
    imported = read(tmp_path, failed)

    assert imported.model is None
    assert imported.messages[0].metadata == {"responseId": "msg-a1", "providerError": "overloaded"}


def test_the_name_the_user_gave_is_preferred(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        {"type": "summary", "summary": "of this one", "leafUuid": "u1"},
        {"type": "custom-title", "customTitle": "mine"},
        {"type": "ai-title", "aiTitle": "the model's"},
        line("user", "u1", None, "hello"),
    )

    assert imported.name == "mine"


def test_the_summary_of_another_session_is_not_the_name(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        {"type": "summary", "summary": "of another", "leafUuid": "other"},
        line("user", "u1", None, "hello"),
    )

    assert imported.name is None


# --- ids ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theirs", ["../../etc/passwd", ".hidden", "", "a/b", "x" * 200, 7, None])
def test_a_session_id_that_cannot_name_a_file_is_replaced(tmp_path: Path, theirs: object) -> None:
    imported = read(tmp_path, line("user", "u1", None, "hello", sessionId=theirs))

    assert len(imported.id) == 36
    assert imported.id != theirs


def test_the_caller_may_choose_the_id_but_not_an_unsafe_one() -> None:
    assert read_claude_transcript(str(SAMPLE), session_id="mine").id == "mine"
    with pytest.raises(ValidationError, match="cannot be a session id"):
        read_claude_transcript(str(SAMPLE), session_id="../mine")


# --- damage ---------------------------------------------------------------------------------------------


def test_two_records_on_one_line_and_runs_of_zeros_are_recovered(tmp_path: Path) -> None:
    one = json.dumps(line("user", "u1", None, "one"), separators=(",", ":"))
    two = json.dumps(line("assistant", "a1", "u1", "zwei → 2"), separators=(",", ":"), ensure_ascii=False)
    three = json.dumps(line("user", "u2", "a1", "three"))
    imported = read(tmp_path, one + two, b"\0" * 50, b"\0" * 9 + three.encode())

    assert texts(imported.messages) == ["one", "zwei → 2", "three"]
    assert imported.problems == (
        "Line 1 is not one JSON record; 2 whole record(s) on it were kept.",
        "Line 3 is not one JSON record; 1 whole record(s) on it were kept.",
    )


def test_a_torn_record_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    next_one = '{"parentUuid":null,"type":"user","uuid":"u1","message":{"role":"user","content":"kept"}}'
    imported = read(tmp_path, '{"parentUuid":null,"type":"user","mess' + next_one)

    assert texts(imported.messages) == ["kept"]


def test_lines_of_unexpected_shape_do_no_harm(tmp_path: Path) -> None:
    imported = read(
        tmp_path,
        "null",
        "[1,2]",
        '{"type":"user","uuid":5,"parentUuid":[]}',
        '{"type":"assistant","uuid":"odd","message":"no object"}',
        '{"type":["user"],"uuid":"odder","parentUuid":"odd"}',
        b'{"type":"user","uuid":"bad-utf8","parentUuid":"odder","message":{"content":"caf\xe9"}}',
        line("assistant", "a1", "bad-utf8", [3, {"type": "text"}, {"type": "text", "text": "fine"}]),
        line("user", "u9", "a1", None, timestamp="yesterday"),
        line("user", "u10", "u9", [result("x", None), {"type": "tool_use"}]),
        line("user", "u11", "u10", "end", timestamp="0001-01-01T00:00:00+14:00"),
    )

    assert texts(imported.messages)[:2] == ["caf\ufffd", "fine"]
    assert texts(imported.messages)[-1] == "end"
    assert_can_go_on(imported)


def test_a_line_beyond_every_measure_is_skipped_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_lines, "LINE_LIMIT", 1 << 20)
    imported = read(
        tmp_path,
        line("user", "u1", None, "one"),
        line("user", "u2", "u1", "x" * (5 << 20)),
        line("assistant", "a1", "u1", "two"),
    )

    assert texts(imported.messages) == ["one", "two"]
    assert imported.problems == ("Line 2 is longer than 1 MiB and was skipped.",)


def test_many_problems_are_counted_not_listed(tmp_path: Path) -> None:
    imported = read(tmp_path, *["{"] * 300, line("user", "u1", None, "one"))

    assert len(imported.problems) == 101
    assert imported.problems[-1] == "200 more problems."


def test_a_file_without_a_conversation_is_refused_with_what_was_wrong(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"holds no conversation: none of its 2 lines .* Line 2 is not"):
        read(tmp_path, {"type": "summary", "summary": "x"}, "{torn")


def test_a_file_that_is_not_there_is_said_to_be_unreadable(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"none\.jsonl cannot be read: No such file"):
        read_claude_transcript(str(tmp_path / "none.jsonl"))


def test_a_disk_that_fails_is_named_and_the_file_closed_again() -> None:
    class Failing(Files):
        closed = 0

        def read(self, fd: int, size: int) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

        def close(self, fd: int) -> None:
            super().close(fd)
            self.closed += 1

    files = Failing()
    with pytest.raises(TranscriptError, match=r"cannot be read: Input/output error\."):
        read_claude_transcript(str(SAMPLE), files=files)
    assert files.closed == 1


def test_a_line_that_changes_while_it_is_read_is_named(tmp_path: Path) -> None:
    class Truncating(Files):
        def read_at(self, fd: int, size: int, offset: int) -> bytes:
            return b"" if offset == 0 else super().read_at(fd, size, offset)

    path = write(
        tmp_path / "t.jsonl", [line("user", "u1", None, "one"), line("assistant", "a1", "u1", "two")]
    )
    imported = read_claude_transcript(path, files=Truncating())

    assert texts(imported.messages) == ["two"]
    assert imported.problems == ("Line 1 changed while it was read and was skipped.",)


def test_reading_changes_nothing() -> None:
    before = SAMPLE.read_bytes()
    read_claude_transcript(str(SAMPLE))

    assert SAMPLE.read_bytes() == before


def test_a_transcript_much_larger_than_its_conversation_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    noise = json.dumps({"type": "progress", "uuid": "p", "data": {"output": "x" * 1_000_000}}).encode()
    with path.open("wb") as file:
        file.write(json.dumps(line("user", "u1", None, "one")).encode() + b"\n")
        for _ in range(60):
            file.write(noise + b"\n")
        file.write(json.dumps(line("assistant", "a1", "u1", "two")).encode() + b"\n")

    tracemalloc.start()
    imported = read_claude_transcript(str(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert texts(imported.messages) == ["one", "two"]
    assert peak < 12_000_000


UUIDS = st.sampled_from(["a", "b", "c", "d", "e"])
BLOCKS = st.one_of(
    st.builds(call, st.sampled_from(["1", "2", ""])),
    st.builds(result, st.sampled_from(["1", "2", "3"])),
    st.builds(lambda text: {"type": "text", "text": text}, st.sampled_from(["", "x"])),
)
LINES = st.builds(
    line,
    st.sampled_from(["user", "assistant", "system", "progress", "other"]),
    UUIDS,
    st.one_of(st.none(), UUIDS),
    st.lists(BLOCKS, max_size=3),
    message=st.builds(lambda id: {"id": id}, st.sampled_from(["m1", "m2", None])),
    isSidechain=st.booleans(),
    isCompactSummary=st.booleans(),
)


@given(st.lists(st.one_of(LINES, st.sampled_from(["{", "", "null"])), min_size=1, max_size=12))
@settings(max_examples=300, deadline=None)
def test_whatever_the_tree_looks_like_the_conversation_can_go_on(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any] | str]
) -> None:
    path = write(tmp_path_factory.getbasetemp() / "fuzz.jsonl", lines)
    try:
        imported = read_claude_transcript(path)
    except TranscriptError:
        return
    assert_can_go_on(imported)
