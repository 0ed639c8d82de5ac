"""Lines 78 to 104 of the requirements that are easy to miss, each by its number."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path

import anyio
import pytest
from tests.sessions.live_session import Studio, add, all_bytes, listen_to, names_of, run

from robota.core.errors import AbortError, ProviderError, RobotaError
from robota.core.events import Compacted, ContextUpdated, TextDelta, ToolEnded
from robota.core.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from robota.core.tool import ToolContext, ToolResult
from robota.core.transport import SessionLike
from robota.sessions.files import Files
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.log_entries import validate_session_replay_log_entries
from robota.sessions.session import Session
from robota.sessions.store.session_record import SessionRecord
from robota.sessions.store.session_store import SessionStore
from robota.testing import Fail, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

ALLOWED = PermissionRules(mode="bypassPermissions")
ADDITION = [call("add", a=1, b=2)]
LONG = "x" * 13_000
BROKEN = [Fail(ProviderError("The service is on fire.", provider="scripted"))]


async def test_the_approval_handler_takes_the_terminals_place_and_without_one_the_answer_is_no(
    tmp_path: Path,
) -> None:  # §20.78
    parameters = inspect.signature(Session.__init__).parameters
    assert "terminal" not in parameters
    assert parameters["permission_handler"].default is None

    alone = Studio(tmp_path, ADDITION, "no")
    await alone.session.run("1+2?")
    assert "Permission denied" in alone.session.messages[-2].content

    asked: list[str] = []

    async def handler(request: object) -> bool:
        asked.append(request.tool_name)  # type: ignore[attr-defined]  # an PermissionQuestion
        return True

    attended = Studio(tmp_path, ADDITION, "yes", session_id="s-2", handler=handler)
    await attended.session.run("1+2?")
    assert (asked, attended.session.messages[-2].content) == (["add"], "3")


async def test_without_max_turns_a_run_has_no_limit_of_rounds(tmp_path: Path) -> None:  # §20.79
    replies = [[call("add", f"c{number}", a=number, b=1)] for number in range(25)]
    studio = Studio(tmp_path, *replies, "done", rules=ALLOWED)
    assert await studio.session.run("go") == "done"
    assert len(studio.provider.requests) == 26

    limited = Studio(tmp_path, *replies[:2], "out of rounds", session_id="s-2", rules=ALLOWED, max_rounds=2)
    assert await limited.session.run("go") == "out of rounds"


async def test_the_message_count_counts_finished_runs(tmp_path: Path) -> None:  # §20.80
    studio = Studio(tmp_path, ADDITION, "3", BROKEN, ["Hel", Stall()], rules=ALLOWED)
    assert studio.session.message_count == 0
    await studio.session.run("1+2?")
    assert studio.session.message_count == 1
    with pytest.raises(ProviderError):
        await studio.session.run("again")
    studio.session.events.on(TextDelta, lambda _: studio.session.abort())
    with pytest.raises(AbortError):
        await studio.session.run("again")
    assert studio.session.message_count == 1


async def test_the_context_is_refreshed_twice_per_prompt(tmp_path: Path) -> None:  # §20.81
    studio = Studio(tmp_path, ADDITION, "3", rules=ALLOWED)
    await studio.session.run("1+2?")
    estimate, exact = studio.told(ContextUpdated)
    assert estimate.used_tokens < exact.used_tokens == studio.session.context_state.used_tokens


async def test_the_threshold_is_a_fraction_or_false_and_may_change_while_running(
    tmp_path: Path,
) -> None:  # §20.82
    for wrong in (0, 1.1, -0.5, True, "half", None):
        with pytest.raises(RobotaError, match="hreshold"):
            Studio(tmp_path, auto_compact_threshold=wrong)

    @tool
    async def switch_off() -> str:
        """Change the policy from inside a run."""
        studio.session.auto_compact_threshold = False
        return "off"

    studio = Studio(
        tmp_path,
        [call("switch_off")],
        LONG,
        "two",
        tools=[switch_off],
        rules=ALLOWED,
        context_window=4_000,
    )
    assert studio.session.auto_compact_threshold == 0.835
    await studio.session.run("off")
    assert await studio.session.run("and now?") == "two"
    assert studio.told(Compacted) == []
    with pytest.raises(RobotaError):
        studio.session.auto_compact_threshold = 2


async def test_context_compact_says_why_and_how_much(tmp_path: Path) -> None:  # §20.83
    studio = Studio(tmp_path, LONG, "what was said", "two", context_window=4_000)
    await studio.session.run("tell me")
    await studio.session.run("and now?")
    [entry] = [entry for entry in studio.log() if entry["event"] == "context_compact"]
    assert entry["trigger"] == "auto"
    assert entry["before"]["usedTokens"] > 3_000 > entry["after"]["usedTokens"]


async def test_system_messages_are_not_summarised_and_come_first_again(tmp_path: Path) -> None:  # §20.84
    studio = Studio(tmp_path, "one", "what was said", "two", system="You sail the seven seas.")
    await studio.session.run("tell me")
    await studio.session.compact()
    await studio.session.run("and now?")
    assert "seven seas" not in "".join(m.content for m in studio.provider.requests[1].messages)
    assert studio.provider.requests[2].messages[0].content == "You sail the seven seas."
    assert isinstance(studio.provider.requests[2].messages[0], SystemMessage)


async def test_the_summary_is_what_the_assistant_said(tmp_path: Path) -> None:  # §20.85
    studio = Studio(tmp_path, "one", "what was said")
    await studio.session.run("tell me")
    await studio.session.compact()
    summary = studio.session.messages[-1]
    assert isinstance(summary, AssistantMessage)
    assert summary.content.startswith("[Context Summary]\nwhat was said")


async def test_an_automatic_compaction_comes_before_the_message(tmp_path: Path) -> None:  # §20.86
    studio = Studio(tmp_path, LONG, "what was said", "two", context_window=4_000)
    await studio.session.run("tell me")
    await studio.session.run("and now?")
    assert "and now?" not in studio.provider.requests[1].messages[-1].content
    assert [type(message) for message in studio.session.messages[-3:]] == [
        AssistantMessage, UserMessage, AssistantMessage,
    ]  # fmt: skip


async def test_a_summary_never_streams_into_the_answer(tmp_path: Path) -> None:  # §20.87
    studio = Studio(tmp_path, LONG, ["what ", "was said"], "two", context_window=4_000)
    await studio.session.run("tell me")
    studio.events.clear()
    await studio.session.run("and now?")
    assert [event.text for event in studio.told(TextDelta)] == ["two"]


async def test_two_sessions_on_one_provider_keep_their_deltas_apart(tmp_path: Path) -> None:  # §20.88
    provider = ScriptedProvider(["a1", "a2"], ["b1", "b2"])
    one = Studio(tmp_path, provider=provider, session_id="a")
    two = Studio(tmp_path, provider=provider, session_id="b")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(one.session.run("?"))
        tasks.create_task(two.session.run("?"))
    assert [event.text for event in one.told(TextDelta)] == ["a1", "a2"]
    assert [event.text for event in two.told(TextDelta)] == ["b1", "b2"]


async def test_what_breaks_around_a_tool_is_a_result(tmp_path: Path) -> None:  # §20.89
    async def broken(*_: object) -> ToolResult:
        raise RuntimeError("no process")

    studio = Studio(tmp_path, ADDITION, "sorry", rules=ALLOWED, run_tool=broken)
    assert await studio.session.run("1+2?") == "sorry"
    assert "no process" in studio.session.messages[-2].content


async def test_the_end_of_a_tool_says_denied_and_carries_its_result(tmp_path: Path) -> None:  # §20.90
    studio = Studio(tmp_path, ADDITION, ADDITION, "done")
    stop = studio.session.events.on(
        ToolEnded, lambda _: setattr(studio.session, "permission_mode", "bypassPermissions")
    )
    await studio.session.run("1+2?")
    stop()
    denied, allowed = studio.told(ToolEnded)
    assert denied.outcome == "denied"
    assert (allowed.outcome, allowed.content) == ("success", "3")


async def test_an_unknown_tool_is_told_once_with_its_code(tmp_path: Path) -> None:  # §20.91
    studio = Studio(tmp_path, [call("subtract", a=1)], "sorry")
    await studio.session.run("2-1?")
    [ended] = studio.told(ToolEnded)
    assert (ended.outcome, ended.error_code) == ("error", "unknown_tool")


async def test_session_end_fires_once_and_after_saving(tmp_path: Path) -> None:  # §20.92
    saved = f"test -s {tmp_path}/sessions/s-1.json && echo saved > {tmp_path}/state"
    studio = Studio(tmp_path, "one", hooks=listen_to(tmp_path, "SessionEnd", then=saved))
    async with studio.session:
        await studio.session.run("hi")
        await studio.session.shutdown()
    assert names_of(studio.fired) == ["SessionEnd"]
    assert (tmp_path / "state").read_text() == "saved\n"


async def test_stop_and_stop_failure_carry_their_fields(tmp_path: Path) -> None:  # §20.93
    studio = Studio(tmp_path, "one", BROKEN, hooks=listen_to(tmp_path, "Stop", "StopFailure"))
    await studio.session.run("hi")
    with pytest.raises(ProviderError):
        await studio.session.run("again")
    stop, failure = studio.fired
    assert (stop["response"], stop["last_assistant_message"], stop["stop_hook_active"]) == (
        "one",
        "one",
        False,
    )
    assert failure["reason"] == "The service is on fire."


async def test_what_a_prompt_hook_prints_is_part_of_the_prompt(tmp_path: Path) -> None:  # §20.94
    studio = Studio(tmp_path, "one", hooks={"UserPromptSubmit": [run("echo It is Monday.")]})
    await studio.session.run("hi")
    assert "It is Monday." in studio.provider.requests[0].messages[-1].content


async def test_after_an_error_everything_is_there_and_goes_on(tmp_path: Path) -> None:  # §20.95
    studio = Studio(tmp_path, "one", BROKEN, "three")
    await studio.session.run("1")
    with pytest.raises(ProviderError):
        await studio.session.run("2")
    assert [m.content for m in studio.session.messages[1:4]] == ["1", "one", "2"]
    assert [entry["message"] for entry in studio.log() if entry["event"] == "error"] == [
        "The service is on fire."
    ]
    assert await studio.session.run("3") == "three"


async def test_an_abort_is_raised_by_the_session_after_the_run(tmp_path: Path) -> None:  # §20.96
    studio = Studio(tmp_path, ["Hel", Stall()])
    stop = studio.session.events.on(TextDelta, lambda _: studio.session.abort())
    with pytest.raises(AbortError):
        await studio.session.run("hi")
    assert studio.session.messages[-1].content == "Hel"
    stop()

    agent = studio.session.agent
    agent.provider = ScriptedProvider(["Hel", Stall()])
    agent.events.on(TextDelta, lambda _: agent.abort())
    assert (await agent.run("hi")).interrupted  # the agent itself returns


async def test_sessions_are_listed_newest_first_and_deleting_none_is_silent(tmp_path: Path) -> None:  # §20.97
    for name in ("a", "b", "c"):
        async with Studio(tmp_path, "one", session_id=name).session as session:
            await session.run("hi")
    store = SessionStore(tmp_path / "sessions")
    assert [summary.id for summary in store.list()] == ["c", "b", "a"]
    store.delete("nobody")


async def test_text_deltas_are_on_the_disk_during_the_run(tmp_path: Path) -> None:  # §20.98
    written = anyio.Event()

    class Told(Files):
        def write(self, fd: int, data: bytes) -> int:
            size = super().write(fd, data)
            if b'"event":"stream"' in data:
                written.set()
            return size

    studio = Studio(tmp_path, ["0123456789"] * 50 + [Stall()], files=Told())
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(studio.session.run, "hi")
            await written.wait()
            assert "text_delta" in {entry["event"] for entry in studio.log()}
            tasks.cancel_scope.cancel()


async def test_secrets_are_redacted_and_large_fields_put_aside(tmp_path: Path) -> None:  # §20.99
    class Big:
        name = "big"
        description = ""
        parameters = {"type": "object"}  # noqa: RUF012 - the shape of a tool

        async def run(self, arguments: object, context: ToolContext) -> ToolResult:
            deep = {"a": [{"headers": {"Authorization": "opaque-value-17"}}]}
            return ToolResult(content="z" * 29_000, metadata={"deep": deep, "more": "y" * 40_000})

    studio = Studio(tmp_path, [call("big")], "done", tools=[Big()], rules=ALLOWED)
    await studio.session.run("hi")
    await studio.session.shutdown()
    assert b"opaque-value-17" not in all_bytes(studio.kept)
    payloads = list((studio.kept / "s-1.payloads").iterdir())
    assert payloads
    assert all(len(path.stem) == 64 for path in payloads)
    studio.log()


async def test_a_recorded_session_is_complete_and_what_is_taken_out_is_missed(
    tmp_path: Path,
) -> None:  # §20.100
    studio = Studio(tmp_path, ADDITION, "3", rules=ALLOWED)
    await studio.session.run("1+2?")
    cut = [entry for entry in studio.log() if entry["event"] != "tool_execution_result"]
    assert "TOOL_RESULT_MISSING" in {issue.code for issue in validate_session_replay_log_entries(cut).issues}


async def test_the_record_keeps_system_prompt_and_tool_schemas(tmp_path: Path) -> None:  # §20.101
    async with Studio(tmp_path, "one").session as session:
        await session.run("hi")
    record = SessionStore(tmp_path / "sessions").load("s-1")
    assert record is not None
    assert record.system_prompt == "You are terse."
    assert record.messages[0]["content"] == "You are terse."
    assert [schema["name"] for schema in record.tool_schemas or ()] == [add.name]


async def test_an_old_record_gets_its_history_once(tmp_path: Path) -> None:  # §20.102
    old = {
        "id": "session_1_abc", "cwd": "/", "createdAt": "2026-01-01T00:00:00.000Z",
        "updatedAt": "2026-01-01T00:00:00.000Z", "messages": [{"role": "user", "content": "hi"}],
    }  # fmt: skip
    path = tmp_path / "session_1_abc.json"
    path.write_text(json.dumps(old))
    store = SessionStore(tmp_path)
    assert store.migrate().migrated == ("session_1_abc",)
    once = path.read_bytes()
    assert store.migrate().migrated == ()
    assert path.read_bytes() == once


async def test_memory_in_a_record_is_kept_and_never_acted_upon(tmp_path: Path) -> None:  # §20.103
    store = SessionStore(tmp_path / "sessions")
    events = [{"type": "saved", "command": "rm -rf /"}]
    store.save(SessionRecord(id="s-1", cwd=str(tmp_path), messages=[], memory_events=events))
    studio = Studio(tmp_path, "one")
    await studio.session.run("hi")
    await studio.session.shutdown()
    record = store.load("s-1")
    assert record is not None
    assert record.memory_events == events
    assert not any(isinstance(message, ToolMessage) for message in studio.session.messages)
    assert "rm -rf" not in str(studio.provider.requests[0])


async def test_a_transport_needs_to_know_nothing_but_a_session_id(tmp_path: Path) -> None:  # §20.104
    assert isinstance(Studio(tmp_path).session, SessionLike)
