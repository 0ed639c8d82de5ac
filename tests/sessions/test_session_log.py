"""The log that is read back is the log of what happened: every event, with every field."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from tests.sessions.recorded_session import RecordedSession, add, assert_replays, scripted, served

from robota.core.errors import NetworkError
from robota.core.event_names import event_to_wire
from robota.core.events import (
    Compacted,
    CompactionMarked,
    ContextUpdated,
    Event,
    PayloadKind,
    PreRun,
    ProviderNativeRawPayload,
    ProviderStreamRawDelta,
    ReasoningDelta,
    RunCompleted,
    RunInterrupted,
    RunStarted,
    TextDelta,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
)
from robota.core.jsontext import encode
from robota.core.messages import ImagePart, Json, JsonObject, TextPart, TokenUsage
from robota.core.provider import (
    MetadataChunk,
    NativePayload,
    ReasoningChunk,
    RetryNotice,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.core.tool import ToolResult
from robota.sessions.journal.entries import SessionLogReader
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.start import restore_journal
from robota.testing import Fail, Gate, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

RENAMED = {ContextUpdated: "context", RunCompleted: "assistant"}
TOLD_OTHERWISE = (ToolStarted, ToolEnded, ToolProgressed, RunStarted, ProviderStreamRawDelta)
"""Events for front ends whose facts other entries carry."""
WITHOUT_EVENT = {
    *("user", "compact", "tool_original", "history_cleared", "history_rewound", "history_entry"),
    *("session_change", "error", "interrupted"),
}
"""What a session writes without telling anybody else."""
LISTS = frozenset(("messages", "history"))


def plain(value: object) -> Json:
    return msgspec.json.decode(encode(value))


def expected(event: Event) -> Iterator[tuple[str, JsonObject]]:
    """The entries that tell of an event: name and fields."""
    wire = event_to_wire(event)
    name = RENAMED.get(type(event)) or str(wire["event"])
    for dropped in ("event", "seq"):
        wire.pop(dropped, None)
    data = wire.pop("data", {})
    fields: JsonObject = {key: value for key, value in {**wire, **data}.items() if value not in (None, "")}
    if not event.execution_id:
        fields.pop("round", None)
    if isinstance(event, TextDelta):
        fields["delta"] = fields.pop("text", "")
        raw = fields.pop("raw", None)
        if raw is not None:
            yield "provider_native_raw_payload", {"payload": msgspec.json.decode(event.raw or b"")}
        if event.sequence:
            yield "provider_stream_raw_delta", fields
    elif isinstance(event, ReasoningDelta):
        fields["delta"] = fields.pop("text", "")
    elif isinstance(event, RunCompleted | RunInterrupted):
        fields["content"] = fields.pop("text", "")
    elif isinstance(event, ProviderNativeRawPayload):
        payload = event.payload if isinstance(event.payload, bytes) else encode(event.payload)
        fields["payload"] = msgspec.json.decode(payload)
        if event.payload_kind == "request":
            fields["payload"] = {"byteLength": len(payload)}
        fields.pop("metadata")
    elif isinstance(event, PreRun):
        fields.pop("context", None)
    yield name, plain(fields)


def assert_complete(recorded: RecordedSession) -> None:
    """Every event is an entry with all its fields, and nothing is an entry that was no event."""
    entries = recorded.log()
    assert entries.problems == ()
    for entry in entries:
        assert entry["sessionId"] == "s-1"
        assert entry["timestamp"].endswith("Z")
    wanted = [
        made for event in recorded.events if not isinstance(event, TOLD_OTHERWISE) for made in expected(event)
    ]
    found = [
        entry
        for entry in entries
        if entry["event"] != "run_start" and ("executionId" in entry or entry["event"] not in WITHOUT_EVENT)
    ]
    assert [entry["event"] for entry in found] == [name for name, _ in wanted]
    for entry, (name, fields) in zip(found, wanted, strict=True):
        told = {
            key: plain(list(entry[key]) if key in LISTS else entry[key]) for key in fields if key in entry
        }
        assert (name, told) == (name, fields)


@tool
async def fetch(url: str) -> ToolResult:
    """Get a page."""
    return ToolResult(
        content="é" * 40_000 if url == "long" else url, parts=(ImagePart("aGk="),), metadata={"n": 1}
    )


async def test_a_conversation_over_the_wire_comes_back_with_the_bytes_of_the_provider(tmp_path: Path) -> None:
    replies = (
        ["Let me ", "add.", ReasoningChunk("hm"), call("add", a=1, b=2), TokenUsage(10, 5)],
        ["It is ", "3 – ", "drei 🎉"],
        "And done.",
    )
    async with served(tmp_path, *replies) as recorded:
        await recorded.run("1 + 2?", [TextPart("look"), ImagePart("aGk=")])

    assert_complete(recorded)
    kinds = {
        entry["payloadKind"] for entry in recorded.log() if entry["event"] == "provider_native_raw_payload"
    }
    assert kinds == {"request", "stream_event"}


async def test_native_payloads_keep_their_number_and_what_is_said_about_them(tmp_path: Path) -> None:
    def native(kind: PayloadKind, sequence: int | None = None, **metadata: str) -> NativePayload:
        return NativePayload(kind=kind, payload={}, sequence=sequence, metadata=metadata)

    event: PayloadKind = "stream_event"
    replies = (
        [native("request", model="m"), native(event), TextChunk("a", b"{}"), native(event, 7),
         native(event, 8), native("response", status="200"), native("response", 30),
         native(event, 9, region="eu")],
        [native("request"), native(event), native(event), "b"],
    )  # fmt: skip
    recorded = scripted(tmp_path, *replies)
    seen: list[ProviderNativeRawPayload] = []
    recorded.session.events.on(ProviderNativeRawPayload, seen.append)
    await recorded.run("1", "2")

    logged = [
        (entry["payloadKind"], entry["sequence"], entry.get("metadata", {}))
        for entry in recorded.log()
        if entry["event"] == "provider_native_raw_payload"
    ]
    told = [(each.payload_kind, each.sequence, dict(each.metadata)) for each in seen]
    del logged[2]  # the one that came with its text
    assert logged == told
    await assert_replays(recorded)


REPLIES: dict[str, list[Any]] = {
    "rounds": [["a", "b"], [call("add", a=1, b=2)], [call("add", a=1, b=2)], "end"],
    "reasoning": [[ReasoningChunk("I "), ReasoningChunk("think"), "so"]],
    "inputs": [
        [
            ToolInputChunk(0, '{"a":1', "c", "add"),
            ToolInputChunk(0, ',"b":2}'),
            call("add", "c", a=1, b=2),
        ],
        "3",
    ],
    "server tools": [[ServerToolChunk("web_search", {"query": "x"}), "found"]],
    "retries": [[RetryNotice(attempt=1, max_attempts=3, delay=0.0, message="busy"), "at last"]],
    "natives": [
        [
            NativePayload(kind="request", payload={"model": "m"}, api_surface="chat"),
            NativePayload(kind="stream_event", payload={"n": 1}, api_surface="chat", sequence=1),
            NativePayload(kind="stream_event", payload=b'{"n":2}', api_surface="chat", sequence=2),
            NativePayload(kind="response", payload={"whole": True}, api_surface="chat"),
            "x",
        ]
    ],
    "facts": [
        ["x", MetadataChunk({"responseId": "r-1"}), TokenUsage(5, 2, 1), StopChunk("max_tokens", "length")]
    ],
    "empty replies": [[], "something after all"],
    "only empty replies": [[], [], "said because asked to"],
    "an error": [["half ", Fail(NetworkError("The line went dead."))], "again"],
    "unknown tools": [[call("nope", x=1)], [call("nope", x=1)], "sorry"],
    "invalid arguments": [[call("add", a="x")], "sorry"],
    "a refusal": [[StopChunk("refusal", "not that")]],
    "unicode": [["ünï\u2028\x00", 'code \\ " \x7f']],
    "large payloads": [[call("fetch", url="long")], ["x" * 50_000], "y"],
    "parts": [[call("fetch", url="short")], "seen"],
}


@pytest.mark.parametrize("name", REPLIES)
async def test_what_happened_comes_back_as_it_happened(tmp_path: Path, name: str) -> None:
    recorded = scripted(tmp_path, *REPLIES[name], tools=(add, fetch))
    await recorded.run("go", "on")
    await recorded.session.shutdown()

    assert_complete(recorded)


async def test_a_forced_summary_is_a_request_with_a_last_word(tmp_path: Path) -> None:
    recorded = scripted(
        tmp_path, [call("add", a=1, b=2)], [call("add", a=2, b=2)], "that is all", max_rounds=2
    )
    await recorded.run("go")

    assert_complete(recorded)
    last = [entry for entry in recorded.log() if entry["event"] == "provider_request"][-1]
    assert last["tools"] == []
    assert last["messages"][-1]["role"] == "user"


async def test_parallel_calls_keep_the_order_in_which_they_ended(tmp_path: Path) -> None:
    gates = {name: asyncio.Event() for name in "abc"}
    after = {"c": "a", "a": "b"}

    @tool
    async def wait(name: str) -> str:
        """Wait for another."""
        if name != "c":
            await gates[name].wait()
        if name in after:
            gates[after[name]].set()
        return name

    calls = [call("wait", name, name=name) for name in "abc"]
    recorded = scripted(tmp_path, calls, "done", tools=(wait,))
    await recorded.run("go")

    assert_complete(recorded)
    ended = [entry for entry in recorded.log() if entry["event"] == "tool_execution_result"]
    assert [entry["toolCallId"] for entry in ended] == ["c", "a", "b"]
    assert [entry["finished"] for entry in ended] == [1, 2, 3]


async def test_an_abort_in_mid_stream_is_an_interrupted_message(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, ["half", Stall()], "more")
    recorded.session.events.on(TextDelta, lambda event: recorded.session.abort())
    await recorded.run("go")
    await recorded.run("again")

    assert_complete(recorded)
    assert [e["content"] for e in recorded.log() if e["event"] == "interrupted"] == ["half", "more"]


async def test_decisions_and_hooks_come_back_with_everything_they_said(tmp_path: Path) -> None:
    async def no(request: Any) -> bool:
        return False

    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo mind the gap"}]}]}
    recorded = scripted(
        tmp_path, [call("add", a=1, b=2)], "ok", handler=no, rules=PermissionRules(ask=("add",)), hooks=hooks
    )
    await recorded.run("go")

    assert_complete(recorded)
    entries = recorded.log()
    decided = next(entry for entry in entries if entry["event"] == "permission_decided")
    assert (decided["decision"], decided["by"], decided["answer"]) == (
        "deny",
        "user",
        {"allow": False},
    )
    before = next(entry for entry in entries if entry["event"] == "pre_run")
    assert before["input"].endswith("go")
    assert "mind the gap" in before["input"]


async def test_a_compaction_comes_back_and_begins_the_view_anew(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, "one", "a summary", "two")
    await recorded.run("first")
    await recorded.session.compact()
    await recorded.run("second")

    assert_complete(recorded)
    request = [entry for entry in recorded.log() if entry["event"] == "provider_request"][-1]
    assert [message["role"] for message in request["messages"]] == ["system", "assistant", "user"]
    assert request["messages"][1]["content"].startswith("[Context Summary]")
    assert len(recorded.told(Compacted)) == len(recorded.told(CompactionMarked)) == 1


async def test_the_answer_lists_the_whole_history_and_its_structure(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, [call("add", a=1, b=2)], "3")
    await recorded.run("go")

    answer = next(entry for entry in recorded.log() if entry["event"] == "assistant")
    assert [message["role"] for message in answer["history"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert answer["historyStructure"][2] == {
        "role": "assistant",
        "contentLength": 0,
        "hasToolCalls": True,
        "toolCallNames": ["add"],
        "metadata": {"stopReason": "tool_use"},
    }


async def test_reading_needs_memory_for_the_conversation_not_for_the_log(tmp_path: Path) -> None:
    native = NativePayload(kind="stream_event", payload={"filler": "x" * 1_000})
    recorded = scripted(tmp_path, *[[*["word "] * 20, *[native] * 20] for _ in range(100)])
    await recorded.run(*["go"] * 100)
    size = recorded.path.stat().st_size
    assert size > 2_000_000

    def restore() -> int:
        return len(restore_journal(str(recorded.path)).messages)

    def read() -> int:
        return sum(
            1 for entry in SessionLogReader(str(recorded.path)) if entry["event"] == "history_mutation"
        )

    for way in (restore, read):
        way()  # what is loaded once does not count
        tracemalloc.start()
        assert way() == 201
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < size / 2


async def test_the_words_of_an_answer_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    gate = Gate()
    pieces = [f"piece {at} of the answer. " for at in range(40)]
    async with served(tmp_path, [*pieces, gate, "the end"]) as recorded:
        running = asyncio.create_task(recorded.run("go"))
        await gate.reached.wait()
        words: list[str] = []
        with anyio.fail_after(30):
            while (
                len(words) < 20
            ):  # the end of the text may be held back until it is clear that it is no secret
                await anyio.sleep(0.01)
                words = [entry["delta"] for entry in recorded.log() if entry["event"] == "text_delta"]
        assert not running.done()
        gate.open()
        await running

    assert words == pieces[: len(words)]
