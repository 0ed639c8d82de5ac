"""What is not as it was recorded is reported, at the step and with the field where it shows first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sessions.recorded_session import RecordedSession, add, rewrite, served

from robota.core.errors import StorageError
from robota.core.events import TurnEvent
from robota.core.messages import JsonObject, ToolCall
from robota.core.plugin import Plugin
from robota.core.tool import ToolResult
from robota.sessions.replay.comparison import Divergence
from robota.sessions.replay.session_replay import Changes, replay_session
from robota.testing import call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

HOOKS = {
    "PostToolUse": [
        {"hooks": [{"type": "command", "command": """echo '{"systemMessage":"seen","decision":null}'"""}]}
    ],
    "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo mind the gap"}]}],
}


async def record(home: Path) -> RecordedSession:
    """Messages: 0 system, 1 user, 2 assistant with two calls, 3 and 4 results, 5 assistant, 6 user, 7 …"""
    calls = [call("add", "x", a=1, b=2), call("add", "y", a=3, b=4)]
    async with served(home, ["let me ", "add", *calls], ["3 ", "and 7"], "bye", hooks=HOOKS) as recorded:
        await recorded.run("go", "thanks")
        await recorded.session.shutdown()
    return recorded


async def plant(home: Path, change: Any) -> Divergence:
    """The report about a recording in which every record went through `change`."""
    recorded = await record(home)
    report = await replay_session(rewrite(recorded.path, home / "planted" / "s-1.jsonl", change))
    assert report.divergence is not None
    assert not report.identical
    assert str(report.divergence).startswith(f"Step {report.divergence.step}: ")
    return report.divergence


def on(event: str, nth: int, edit: Any) -> Any:
    """Changes the n-th record of an event; `None` from `edit` removes it."""
    seen: list[JsonObject] = []

    def change(entry: JsonObject) -> JsonObject | None:
        if entry["event"] != event:
            return entry
        seen.append(entry)
        if len(seen) != nth:
            return entry
        edited: JsonObject | None = edit(entry)
        return edited

    return change


async def test_another_word_in_a_reply(tmp_path: Path) -> None:
    def edit(entry: JsonObject) -> JsonObject:
        rest = entry.get("rest", {})
        texts = ["4 " if text == "3 " else text for text in rest.get("texts", ())]
        return {**entry, "rest": {**rest, "texts": texts}} if texts else entry

    found = await plant(tmp_path, edit)

    assert (found.step, found.event, found.field) == (5, "provider_response_raw", "response.content")
    assert (found.recorded, found.replayed) == ("3 and 7", "4 and 7")


async def test_another_decision(tmp_path: Path) -> None:
    def edit(entry: JsonObject) -> JsonObject:
        judged = [{"decision": "deny", "by": "rule", "reason": "No."}]
        return {**entry, "verdict": {**entry["verdict"], "judged": judged}}

    found = await plant(tmp_path, on("tool_start", 2, edit))

    assert (found.step, found.event, found.field) == (3, "permission_decided", "decision")
    assert (found.recorded, found.replayed) == ("allow", "deny")


async def test_another_outcome_of_a_hook(tmp_path: Path) -> None:
    def edit(entry: JsonObject) -> JsonObject:
        outcome = {**entry["outcome"], "blocked": True, "reason": "no"}
        return {**entry, "outcome": outcome}

    found = await plant(tmp_path, on("hook_executed", 1, edit))

    assert (found.step, found.event, found.field) == (0, "pre_run", "")
    assert (found.recorded, found.replayed) == ("pre_run", "error")


async def test_another_prompt(tmp_path: Path) -> None:
    found = await plant(tmp_path, on("user", 2, lambda entry: {**entry, "input": "no thanks"}))

    assert (found.step, found.event) == (6, "history_mutation")


async def test_another_time_or_id_of_a_message_is_no_difference(tmp_path: Path) -> None:
    recorded = await record(tmp_path)

    def edit(entry: JsonObject) -> JsonObject:
        return {**entry, "timestamp": "2001-01-01T00:00:00.000Z"}

    report = await replay_session(rewrite(recorded.path, tmp_path / "planted" / "s-1.jsonl", edit))
    assert report.identical


@pytest.mark.parametrize(
    ("event", "nth", "step"),
    [
        ("tool_result", 1, 3),
        ("tool_start", 1, 3),
        ("hook_executed", 2, 3),
        ("provider_request", 2, 5),
        ("message", 3, 2),
        ("message", 4, 5),
        ("tool_message", 2, 4),
        ("run_start", 2, 6),
        ("run_end", 1, 6),
    ],
)
async def test_a_record_that_is_missing(tmp_path: Path, event: str, nth: int, step: int) -> None:
    found = await plant(tmp_path, on(event, nth, lambda entry: None))

    assert found.step == step


# --- other code ------------------------------------------------------------------------------------------


async def changed(home: Path, **changes: Any) -> Divergence:
    recorded = await record(home)
    report = await replay_session(recorded.path, changes=Changes(**changes))
    assert report.divergence is not None
    return report.divergence


async def test_another_system_message(tmp_path: Path) -> None:
    found = await changed(tmp_path, system_message="You are verbose.")

    assert (found.step, found.event, found.field) == (0, "session_init", "systemPrompt")


async def test_other_code_of_a_tool(tmp_path: Path) -> None:
    @tool(name="add")
    async def adds_wrong(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b + (a == 3)

    found = await changed(tmp_path, tools=(adds_wrong,))

    assert (found.step, found.event, found.field) == (3, "tool_execution_result", "result")
    assert (found.recorded, found.replayed) == ("7", "8")
    recorded = await record(tmp_path / "again")
    same = await replay_session(recorded.path, changes=Changes(tools=(add,)))
    assert same.identical


async def test_another_limit_of_rounds(tmp_path: Path) -> None:
    found = await changed(tmp_path, options=lambda options: replace(options, max_rounds=1))

    assert (found.step, found.event) == (5, "provider_request")  # the last one, without tools


class Rounds(Plugin):
    """Code around the agent that was not there when the session was recorded."""

    async def after_tool_execution(self, call: ToolCall, result: ToolResult) -> ToolResult:
        return replace(result, content=f"{result.content}.0")


async def test_other_code_around_the_agent(tmp_path: Path) -> None:
    found = await changed(tmp_path, options=lambda options: replace(options, plugins=(Rounds(),)))

    assert (found.step, found.event, found.field) == (3, "tool_execution_result", "result")
    assert found.replayed == f"{found.recorded}.0"


# --- stopping on the way ---------------------------------------------------------------------------------


@pytest.mark.parametrize("step", range(9))
async def test_a_replay_stops_at_a_step(tmp_path: Path, step: int) -> None:
    recorded = await record(tmp_path)
    heard: list[TurnEvent] = []

    report = await replay_session(recorded.path, until=step, on_event=heard.append)

    assert (report.stopped, report.divergence) == (True, None)
    assert list(report.messages) == recorded.session.messages[:step]
    known = [entry["event"] for entry in recorded.log() if entry["event"] != "notice"]
    told = [entry["event"] for entry in report.entries if entry["event"] != "notice"]
    assert told == known[: len(told)]
    assert len(heard) <= len([event for event in recorded.events if isinstance(event, TurnEvent)])


async def test_a_step_beyond_the_end_is_the_end(tmp_path: Path) -> None:
    recorded = await record(tmp_path)

    report = await replay_session(recorded.path, until=100)

    assert (report.stopped, report.divergence) == (False, None)
    assert list(report.messages) == recorded.session.messages


async def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere\.jsonl"):
        await replay_session(tmp_path / "nowhere.jsonl")
    path = tmp_path / "s-1.jsonl"
    path.write_bytes(b"")
    with pytest.raises(StorageError, match="It is empty"):
        await replay_session(path)
    path.write_bytes(b"\x00" * 200 + b"\n")
    with pytest.raises(StorageError, match="no session that can be replayed"):
        await replay_session(path)
    original = {"timestamp": "2025-01-02T03:04:05.678Z", "sessionId": "s-1", "event": "session_init"}
    path.write_text(json.dumps(original) + "\n")
    with pytest.raises(StorageError, match="not of our making"):
        await replay_session(path)


async def test_damage_is_named_beside_the_difference_it_makes(tmp_path: Path) -> None:
    recorded = await record(tmp_path)
    lines = recorded.path.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b'"content":"3"' in line)
    lines[at] = lines[at].replace(b'"content":"3"', b'"content":"4"')
    recorded.path.write_bytes(b"".join(lines))

    report = await replay_session(recorded.path)

    assert not report.identical
    assert len(report.problems) >= 1
