"""A recorded session runs again: the same code, the recorded world, the same events."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from tests.sessions.recorded_session import (
    RecordedSession,
    add,
    assert_replays,
    scripted,
    served,
)

from robota.core.errors import AbortError, NetworkError, ProviderError
from robota.core.events import (
    AssistantMessageCommitted,
    Event,
    HookExecuted,
    ProviderRequest,
    RunStarted,
    TextDelta,
    ToolBatchStarted,
    ToolEnded,
    ToolStarted,
)
from robota.core.messages import HistoryEntry, ImagePart, TextPart, TokenUsage
from robota.core.provider import (
    ChatRequest,
    MetadataChunk,
    ReasoningChunk,
    RetryNotice,
    ServerToolChunk,
    StopChunk,
    ToolInputChunk,
)
from robota.core.questions import PermissionAnswer, PermissionQuestion
from robota.core.tool import ToolContext, ToolResult
from robota.sessions.compaction.kept_state import CompactionSection
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.testing import Fail, HttpError, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

ASKING = PermissionRules(ask=("add",))


def run_command(command: str, matcher: str = "") -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, "timeout": 30}]}


# --- the model ---------------------------------------------------------------------------------------------


async def test_many_rounds_over_the_wire(tmp_path: Path) -> None:
    rounds = [[f"step {at}. ", call("add", f"c{at}", a=at, b=1), TokenUsage(10 + at, 3)] for at in range(12)]
    async with served(tmp_path, *rounds, ["all ", "done"], "again") as recorded:
        await recorded.run("go", [TextPart("look"), ImagePart("aGk=")])
        await recorded.session.shutdown()

    await assert_replays(recorded)


REPLIES: dict[str, list[Any]] = {
    "thinking": [[ReasoningChunk("I "), ReasoningChunk("think"), "so"]],
    "arguments as they are written": [
        [
            ToolInputChunk(0, '{"a":1', "c", "add"),
            ToolInputChunk(0, ',"b":2}'),
            call("add", "c", a=1, b=2),
        ],
        "3",
    ],
    "tools of the provider": [[ServerToolChunk("web_search", {"query": "x"}), "found"]],
    "retries": [["a", RetryNotice(attempt=1, max_attempts=3, delay=0.0, message="busy"), "b"]],
    "facts about the reply": [
        ["x", MetadataChunk({"id": "r"}), TokenUsage(5, 2, 1), StopChunk("max_tokens", "length")]
    ],
    "a pause": [["x", StopChunk("pause")], "y"],
    "an empty reply": [[], "after all"],
    "empty replies": [[], [], "asked to"],
    "a failing forced summary": [[], [], [Fail(ProviderError("no"))]],
    "an error in mid-stream": [
        ["half ", StopChunk("other", "cut"), Fail(NetworkError("dead line"))],
        "again",
    ],
    "an error at once": [[Fail(ProviderError("no"))], "again"],
    "a foreign error": [[Fail(ValueError("boom"))], "again"],
    "unknown tools": [[call("nope", x=1)], [call("nope", x=1)], "sorry"],
    "arguments that do not fit": [[call("add", a="x")], "sorry"],
    "a refusal": [[StopChunk("refusal", "not that")]],
    "the same call id in every round": [
        [call("add", "0", a=1, b=1)],
        [call("add", "0", a=2, b=2)],
        "4",
    ],
    "calls without an id": [[call("add", "", a=1, b=1), call("add", "", a=2, b=2)], "4"],
    "long texts": [["x" * 50_000, "y" * 50_000]],
}


@pytest.mark.parametrize("name", REPLIES)
async def test_replies_of_every_kind(tmp_path: Path, name: str) -> None:
    recorded = scripted(tmp_path, *REPLIES[name])
    await recorded.run("go", "on")

    await assert_replays(recorded)


async def test_errors_of_the_service(tmp_path: Path) -> None:
    async with served(tmp_path, HttpError(401), HttpError(500), HttpError.html(), "at last") as recorded:
        await recorded.run("a", "b", "c", "d")

    await assert_replays(recorded)


async def test_a_limit_of_rounds_with_its_forced_summary(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, [call("add", a=1, b=2)], "so far", max_rounds=1)
    await recorded.run("go")

    await assert_replays(recorded)


# --- tools -------------------------------------------------------------------------------------------------


class Relay:
    """Tools that end in the order of their names, whatever the order of the calls."""

    def __init__(self, names: str) -> None:
        self.done = {name: asyncio.Event() for name in names}
        self.before = dict(zip(sorted(names)[1:], sorted(names), strict=False))

    def tool(self) -> Any:
        @tool
        async def relay(name: str, ctx: ToolContext) -> str:
            """Wait for the one before."""
            ctx.progress(f"{name} waits")
            if name in self.before:
                await self.done[self.before[name]].wait()
            self.done[name].set()
            return name.upper()

        return relay


@pytest.mark.parametrize("limit", [None, 3])
async def test_parallel_calls_that_end_in_another_order(tmp_path: Path, limit: int | None) -> None:
    names = "cabed" if limit else "edcab"
    calls = [call("relay", name, name=name) for name in names]
    replies = (calls, "done")
    async with served(tmp_path, *replies, tools=(Relay(names).tool(),), max_parallel_tools=limit) as recorded:
        await recorded.run("go")

    assert [event.tool_call_id for event in recorded.told(ToolEnded)] == sorted(names)
    await assert_replays(recorded)


async def test_results_of_every_kind(tmp_path: Path) -> None:
    @tool
    async def give(kind: str) -> ToolResult:
        """Give something."""
        if kind == "raise":
            raise RuntimeError("it broke")
        results = {
            "parts": ToolResult(content="a picture", parts=(ImagePart("aGk="),), metadata={"width": 1}),
            "error": ToolResult.failure("no such file", "not_found", path="x"),
            "half": ToolResult(content="half", ok=False, error="cut"),
            "long": ToolResult(content="é" * 100_000),
            "empty": ToolResult(),
        }
        return results[kind]

    kinds = ("parts", "error", "half", "long", "empty", "raise")
    recorded = scripted(tmp_path, [call("give", kind, kind=kind) for kind in kinds], "ok", tools=(give,))
    await recorded.run("go")

    await assert_replays(recorded)


async def test_tools_that_ask_the_user(tmp_path: Path) -> None:
    @tool
    async def ask(what: str, ctx: ToolContext) -> str:
        """Ask."""
        assert ctx.ask is not None
        return str(await ctx.ask({"question": what}))

    async def user(question: Any) -> str:
        return "blue"

    recorded = scripted(tmp_path, [call("ask", what="colour?")], "blue it is", tools=(ask,), ask=user)
    await recorded.run("go")

    await assert_replays(recorded)


# --- hooks -------------------------------------------------------------------------------------------------

CHANGE_INPUT = (
    """echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"a":40,"b":2}}}'"""
)
ADD_CONTEXT = (
    """echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"well done"}}'"""
)


async def test_hooks_that_change_what_happens(tmp_path: Path) -> None:
    once = f"test -e {tmp_path}/asked || {{ touch {tmp_path}/asked; echo 'go on' >&2; exit 2; }}"
    hooks = {
        "SessionStart": [run_command("echo the day is sunny")],
        "UserPromptSubmit": [run_command("echo mind the gap")],
        "PreToolUse": [run_command(CHANGE_INPUT, "add")],
        "PostToolUse": [run_command(ADD_CONTEXT)],
        "Stop": [run_command(once)],
        "SessionEnd": [run_command("exit 1")],
    }
    async with served(tmp_path, [call("add", a=1, b=2)], "42", "went on", "more", hooks=hooks) as recorded:
        await recorded.run("go", "on")
        await recorded.session.shutdown()

    assert [event.content.split("\n")[0] for event in recorded.told(ToolEnded)] == ["42"]
    assert len(recorded.told(HookExecuted)) == 9
    await assert_replays(recorded)


async def test_hooks_that_refuse_warn_and_fail(tmp_path: Path) -> None:
    hooks = {
        "UserPromptSubmit": [run_command('grep -q forbidden && { echo "not that" >&2; exit 2; }; exit 0')],
        "PreToolUse": [
            run_command("echo no >&2; exit 2", "add"),
            run_command("echo odd >&2; exit 3", "other"),
        ],
        "PostToolUse": [run_command("exit 7")],
        "StopFailure": [run_command("exit 0")],
    }

    @tool
    async def other() -> str:
        """Do something else."""
        return "x"

    calls = [call("add", a=1, b=2), call("other", "o1"), call("other", "o2")]
    recorded = scripted(tmp_path, calls, "ok", [Fail(ProviderError("no"))], tools=(add, other), hooks=hooks)
    await recorded.run("go", "forbidden", "fail")

    await assert_replays(recorded)


async def test_a_hook_that_ends_the_run(tmp_path: Path) -> None:
    stop = """echo '{"continue":false,"stopReason":"enough"}'"""
    hooks = {"PostToolUse": [run_command(stop)]}
    recorded = scripted(tmp_path, [call("add", a=1, b=2)], "never", hooks=hooks)
    await recorded.run("go")

    await assert_replays(recorded)


# --- permissions -------------------------------------------------------------------------------------------

ANSWERS: dict[str, Any] = {
    "yes": True,
    "no": False,
    "for the session": "allow-session",
    "for the project": "allow-project",
    "no, with a word": PermissionAnswer(allow=False, message="use another"),
    "another input": PermissionAnswer(allow=True, updated_input={"a": 20, "b": 22}),
    "an input that does not fit": PermissionAnswer(allow=True, updated_input={"a": "x"}),
    "nobody there": None,
    "nonsense": 42,
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_answers_of_every_kind(tmp_path: Path, name: str) -> None:
    async def person(request: PermissionQuestion) -> Any:
        return ANSWERS[name]

    calls = [call("add", "x", a=1, b=2), call("add", "y", a=1, b=2)]
    recorded = scripted(tmp_path, calls, [call("add", a=1, b=2)], "ok", handler=person, rules=ASKING)
    await recorded.run("go")

    await assert_replays(recorded)


async def test_a_person_who_breaks_and_nobody_to_ask(tmp_path: Path) -> None:
    async def person(request: PermissionQuestion) -> bool:
        raise RuntimeError("the terminal is gone")

    recorded = scripted(tmp_path, [call("add", a=1, b=2)], "ok", handler=person, rules=ASKING)
    await recorded.run("go")
    await assert_replays(recorded)

    alone = scripted(tmp_path, [call("add", a=1, b=2)], "ok", rules=ASKING, session_id="s-2")
    await alone.run("go")
    await assert_replays(alone)


async def test_rules_that_could_not_be_saved(tmp_path: Path) -> None:
    async def person(request: PermissionQuestion) -> str:
        return "allow-project"

    def refuse(rule: str) -> None:
        raise OSError("read-only file system")

    recorded = scripted(
        tmp_path, [call("add", a=1, b=2)], "ok", handler=person, save_rule=refuse, rules=ASKING
    )
    await recorded.run("go")

    await assert_replays(recorded)


async def test_questions_that_wait_for_each_other_with_hooks_that_call_somebody(tmp_path: Path) -> None:
    hooks = {
        "PreToolUse": [run_command("echo odd >&2; exit 3")],
        "Notification": [run_command("exit 3")],
        "PermissionRequest": [run_command("exit 0")],
    }
    asked: list[str] = []

    async def person(request: PermissionQuestion) -> bool:
        asked.append(request.call_id)
        return len(asked) % 2 == 0

    calls = [call("add", f"c{at}", a=at, b=2) for at in range(4)]
    recorded = scripted(tmp_path, calls, "ok", handler=person, rules=ASKING, hooks=hooks)
    await recorded.run("go")

    assert len(asked) == 4
    await assert_replays(recorded)


# --- stopping ----------------------------------------------------------------------------------------------


def abort_on(recorded: RecordedSession, kind: Any, number: int = 1) -> None:
    """Stop the session at the n-th event of a kind."""

    def stop(event: Any) -> None:
        if len(recorded.told(kind)) == number:
            recorded.session.abort()

    recorded.session.events.on(kind, stop)


@tool
async def sleep(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


async def test_an_abort_in_mid_stream(tmp_path: Path) -> None:
    async with served(tmp_path, ["one ", "two ", Stall()], "more") as recorded:
        abort_on(recorded, TextDelta, 2)
        await recorded.run("go", "on")

    assert [m.content for m in recorded.session.messages][2:] == ["one two ", "on", "more"]
    await assert_replays(recorded)


async def test_an_abort_before_the_first_word(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, [Stall()], "more")
    abort_on(recorded, ProviderRequest)
    await recorded.run("go", "on")

    await assert_replays(recorded)


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_an_abort_while_tools_run(tmp_path: Path, number: int) -> None:
    calls = [
        call("sleep", "a", seconds=60),
        call("add", "b", a=1, b=2),
        call("sleep", "c", seconds=60),
    ]
    recorded = scripted(tmp_path, calls, "more", tools=(add, sleep))
    abort_on(recorded, ToolStarted, number)
    await recorded.run("go", "on")

    await assert_replays(recorded)


@pytest.mark.parametrize("kind", [RunStarted, ToolEnded, ToolBatchStarted, AssistantMessageCommitted])
@pytest.mark.parametrize("calls", [1, 2])
async def test_an_abort_between_two_things(tmp_path: Path, kind: type[Event], calls: int) -> None:
    reply = [call("add", f"c{at}", a=1, b=at) for at in range(calls)]
    recorded = scripted(tmp_path, reply, "more", "even more")
    abort_on(recorded, kind)
    await recorded.run("go", "on")

    await assert_replays(recorded)


async def test_an_abort_before_stop_hooks(tmp_path: Path) -> None:
    hooks = {"Stop": [run_command("exit 0")]}
    recorded = scripted(tmp_path, "one", "two", "three", hooks=hooks)
    abort_on(recorded, AssistantMessageCommitted, 2)
    await recorded.run("first", "second", "third")

    assert len(recorded.told(HookExecuted)) == 2
    await assert_replays(recorded)


@pytest.mark.parametrize("calls", [1, 3])
async def test_an_abort_while_a_question_is_open(tmp_path: Path, calls: int) -> None:
    async def person(request: PermissionQuestion) -> bool:
        recorded.session.abort()
        await asyncio.sleep(60)
        return True

    reply = [call("add", f"c{at}", a=1, b=at) for at in range(calls)]
    recorded = scripted(tmp_path, reply, "more", handler=person, rules=ASKING)
    await recorded.run("go", "on")

    await assert_replays(recorded)


async def exists(path: Path) -> None:
    """Wait for a file that another process makes."""
    while not await to_thread.run_sync(path.exists):  # noqa: ASYNC110 - no event reaches us from there
        await asyncio.sleep(0.005)


HOOK_EVENTS = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]


@pytest.mark.parametrize("event", HOOK_EVENTS)
@pytest.mark.parametrize("calls", [1, 2])
async def test_an_abort_while_a_hook_runs(tmp_path: Path, event: str, calls: int) -> None:
    started = tmp_path / "started"
    hooks = {event: [run_command(f"test -e {started} && exit 0; touch {started}; sleep 60")]}
    reply = [call("add", f"c{at}", a=1, b=at) for at in range(calls)]
    recorded = scripted(tmp_path, reply, "more", "even more", hooks=hooks)
    running = asyncio.create_task(recorded.run("go"))
    await exists(started)
    recorded.session.abort()
    await running
    await recorded.run("on")

    await assert_replays(recorded)


# --- the conversation --------------------------------------------------------------------------------------


async def test_compactions_by_hand_by_themselves_and_in_vain(tmp_path: Path) -> None:
    def sections() -> list[CompactionSection]:
        return [CompactionSection("Open todos", "- [ ] write <kept-state-1> tests")]

    long = "word " * 400
    replies = ["one", "a summary", long, "another summary", "two", [Fail(ProviderError("no"))], [""], "three"]
    recorded = scripted(tmp_path, *replies, context_window=1_000, compaction_sections=sections)
    session = recorded.session
    await recorded.run("first")
    await session.compact("mind the todos")
    await recorded.run("second", "third")
    for _ in range(2):
        with pytest.raises(Exception, match="not summarised"):
            await session.compact()
    await recorded.run("fourth")

    await assert_replays(recorded)


async def test_a_conversation_that_turns_out_too_long(tmp_path: Path) -> None:
    too_long = Fail(ProviderError("too much", status=413))
    recorded = scripted(tmp_path, "one", [too_long], [too_long], "a summary", "went on")
    await recorded.run("first", "second")

    await assert_replays(recorded)


async def test_an_abort_of_a_compaction(tmp_path: Path) -> None:
    def stop(request: ChatRequest) -> list[Any]:
        recorded.session.abort()
        return [Stall()]

    recorded = scripted(tmp_path, "one", stop, "two")
    await recorded.run("first")
    with pytest.raises(AbortError, match="stopped"):
        await recorded.session.compact()
    await recorded.run("second")

    await assert_replays(recorded)


async def test_everything_else_that_is_done_to_a_session(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, "one", "two", "three")
    session = recorded.session
    session.inject_message("user", "by the way")
    session.inject_message("assistant", "noted")
    await recorded.run("first")
    session.permission_mode = "plan"
    session.name = "a name"
    session.auto_compact_threshold = 0.5
    session.add_history_entry(HistoryEntry(category="event", type="note", data={"n": 1}))
    session.clear_history()
    await recorded.run("second")
    session.model = "another"
    session.agent.system_message = "You are verbose."
    session.agent.tools = (add, sleep)
    await recorded.run("third")
    await session.shutdown("logout")

    report = await assert_replays(recorded)
    assert [entry["event"] for entry in report.entries][-1] == "session_shutdown"


async def test_tools_that_come_and_go_in_the_middle_of_a_run(tmp_path: Path) -> None:
    wait = call("sleep", "s", seconds=0)
    recorded = scripted(tmp_path, [wait], [call("add", "a", a=1, b=2), wait], "done", tools=(sleep,))
    agent = recorded.session.agent
    offers = [(add, sleep), (add,)]

    def offer(event: object) -> None:
        if offers:
            agent.tools = offers.pop(0)

    recorded.session.events.on(ToolStarted, offer)
    await recorded.run("go")

    report = await assert_replays(recorded)
    offered = [entry["tools"] for entry in report.entries if entry["event"] == "provider_request"]
    assert [[tool["name"] for tool in tools] for tools in offered] == [["sleep"], ["add", "sleep"], ["add"]]


async def test_changes_in_the_middle_of_a_run(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, ["a", "b", call("sleep", "s", seconds=0)], ["c", "d"], tools=(add, sleep))
    session = recorded.session

    def change(event: TextDelta) -> None:
        session.name = event.text
        session.add_history_entry(HistoryEntry(category="event", type="note", data=event.text))

    def switch(event: object) -> None:
        session.permission_mode = "acceptEdits"

    session.events.on(TextDelta, change)
    session.events.on(ToolStarted, switch)
    await recorded.run("go")

    await assert_replays(recorded)


async def test_a_session_that_was_resumed(tmp_path: Path) -> None:
    first = scripted(tmp_path, [call("add", a=1, b=2)], "3")
    await first.run("first")
    await first.session.shutdown()
    second = scripted(
        tmp_path, [call("sleep", seconds=0)], "and on", tools=(sleep,), system="You are verbose."
    )
    await second.run("second")
    await second.session.shutdown()
    third = scripted(tmp_path, "end", tools=(sleep,), system="You are verbose.")
    await third.run("third")

    await assert_replays(third, first, second)


async def test_secrets_are_gone_from_the_recording_and_from_its_replay(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "Ab1" * 30
    recorded = scripted(
        tmp_path,
        ["the key is ", secret[:20], secret[20:], call("add", a=1, b=2)],
        "yes",
        system=f"Key: {secret}",
    )
    await recorded.run(f"my key is {secret}")
    report = await replay_session(recorded.path)

    assert report.divergence is None, str(report.divergence)
    assert secret.encode() not in recorded.path.read_bytes()
    assert secret not in str(report.messages)
