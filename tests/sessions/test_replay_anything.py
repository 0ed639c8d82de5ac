"""Sessions put together at random: whatever happens in them, they replay identically."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.recorded_session import RecordedSession, add, assert_replays, scripted
from tests.support.forms import some_of

from robota.core.errors import NetworkError, ProviderError, RobotaError
from robota.core.events import (
    Event,
    PermissionDecided,
    ProviderRequest,
    ProviderRetried,
    ReasoningDelta,
    RunStarted,
    TextDelta,
    ToolBatchStarted,
    ToolEnded,
    ToolExecutionRequest,
    ToolExecutionResult,
    ToolStarted,
)
from robota.core.hooks import HookOutcome
from robota.core.messages import HistoryEntry, TokenUsage
from robota.core.provider import MetadataChunk, ReasoningChunk, RetryNotice, StopChunk
from robota.core.questions import PermissionAnswer, PermissionQuestion
from robota.core.tool import ToolContext, ToolResult
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.session import Session
from robota.testing import Delay, Fail, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

SEEDS = 60
INTERRUPTING: list[type[Event]] = [
    *(RunStarted, ProviderRequest, ProviderRetried, TextDelta, ReasoningDelta, ToolBatchStarted),
    *(ToolExecutionRequest, ToolStarted, PermissionDecided, ToolExecutionResult, ToolEnded),
]


HOOKED = [
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"),
    *("StopFailure", "PermissionRequest", "Notification", "PreCompact", "PostCompact", "SessionEnd"),
]


class Chance:
    """Everything about one session that is left to chance."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, probability: float) -> bool:
        return self.random.random() < probability

    def reply(self) -> list[Any]:
        pieces = ["word ", "ünï ", "", "long " * 200, ReasoningChunk("hm")]
        steps: list[Any] = self.random.choices(pieces, k=self.random.randrange(4))
        if self(0.1):
            steps.append(RetryNotice(attempt=1, max_attempts=2, delay=0.0, message="busy"))
        for at in range(self.random.choice([0, 0, 1, 1, 2, 4])):
            name = self.random.choice(["wait", "wait", "wait", "add", "add", "unknown"])
            arguments = {"a": at, "b": 1} if name == "add" else {"turns": self.random.randrange(6)}
            steps.append(call(name, f"c{at}", **arguments))
        if self(0.3):
            steps += [TokenUsage(self.random.randrange(1000), 5), MetadataChunk({"n": 1})]
        if self(0.05):
            steps.append(Stall())
        if self(0.1):
            steps.append(Fail(self.random.choice([NetworkError("gone"), ProviderError("no"), OSError("x")])))
        if self(0.1):
            steps.append(StopChunk(self.random.choice(["max_tokens", "refusal", "pause"]), "detail"))
        return [*steps, Delay(0)]

    def answer(self) -> Any:
        answers = [True, False, "allow-session", None, "nonsense", PermissionAnswer(allow=False, message="m")]
        return self.random.choice([*answers, PermissionAnswer(allow=True, updated_input={"turns": 1})])


class RandomHooks:
    """Hooks that take some turns of the loop and say anything."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.events = frozenset(chance.random.choices(HOOKED, k=chance.random.randrange(len(HOOKED))))
        self.session: Session | None = None

    def has(self, event: str) -> bool:
        return event in self.events

    async def fire(
        self, event: str, hook_input: Any, *, call_id: str = "", matches_rule: Any = None
    ) -> HookOutcome:
        if event not in self.events:
            return HookOutcome(event=event)
        for _ in range(self.chance.random.randrange(4)):
            await asyncio.sleep(0)
        outcome = HookOutcome(event=event, **self.say(event))
        assert self.session is not None
        self.session.log.record_hooks(outcome, call_id)
        return outcome

    def say(self, event: str) -> dict[str, Any]:
        said: dict[str, Any] = {}
        if self.chance(0.3):
            said["warnings"] = (f"{event} {self.chance.random.randrange(9)}",)
        if self.chance(0.3):
            said["additional_context"] = ("mind the gap",)
        if self.chance(0.1):
            said |= {"blocked": True, "reason": "no"}
        if self.chance(0.05):
            said |= {"stop": True, "stop_reason": "enough"}
        if event == "PreToolUse" and self.chance(0.3):
            said["permission_decision"] = self.chance.random.choice(["allow", "ask", "deny"])
        if event == "PreToolUse" and self.chance(0.2):
            said["updated_input"] = {"turns": 2}
        if event == "PostToolUse" and self.chance(0.2):
            said["updated_output"] = "something else"
        return said


def make_session(home: Path, chance: Chance) -> RecordedSession:
    @tool
    async def wait(turns: int, ctx: ToolContext) -> ToolResult:
        """Wait for some turns of the loop."""
        for _ in range(turns):
            await asyncio.sleep(0)
        if turns == 5:
            raise RuntimeError("five")
        return ToolResult(content=f"waited {turns}", metadata={"turns": turns})

    async def person(request: PermissionQuestion) -> Any:
        for _ in range(chance.random.randrange(3)):
            await asyncio.sleep(0)
        return chance.answer()

    asking, hooks = chance(0.5), RandomHooks(chance) if chance(0.5) else None
    recorded = scripted(
        home,
        *[chance.reply() for _ in range(60)],
        tools=(add, wait),
        handler=person if asking else None,
        rules=PermissionRules(ask=("wait",)) if asking else PermissionRules(mode="bypassPermissions"),
        max_parallel_tools=chance.random.choice([None, None, 1, 2]),
        max_rounds=chance.random.choice([0, 2]),
        context_window=chance.random.choice([3_000, 100_000]),
        hook_port=hooks,
    )
    if hooks is not None:
        hooks.session = recorded.session
    return recorded


def stop_somewhere(recorded: RecordedSession, chance: Chance) -> None:
    """Stop the prompt at some event of some kind; a stalled one is always stopped."""
    kind, number = chance.random.choice(INTERRUPTING), chance.random.randrange(1, 4)
    seen: list[Event] = []

    def stop(event: Event) -> None:
        seen.append(event)
        if len(seen) == number:
            recorded.session.abort()

    recorded.session.events.on(kind, stop)


async def do_something(recorded: RecordedSession, chance: Chance) -> None:
    session, what = recorded.session, chance.random.randrange(12)
    if what == 0:
        session.clear_history()
    elif what == 1:
        session.inject_message("user", "by the way")
    elif what == 2:
        session.name = f"name {chance.random.randrange(9)}"
    elif what == 3:
        session.add_history_entry(HistoryEntry(category="event", type="note", data={"n": 1}))
    elif what == 4:
        with suppress(RobotaError):
            await compact(recorded)
    else:
        await prompt(recorded, chance)


async def compact(recorded: RecordedSession) -> None:
    running = asyncio.create_task(recorded.session.compact())
    await stop_if_it_hangs(recorded, running)


async def prompt(recorded: RecordedSession, chance: Chance) -> None:
    if chance(0.5):
        stop_somewhere(recorded, chance)
    running = asyncio.create_task(recorded.session.run(f"prompt {chance.random.randrange(100)}"))
    await stop_if_it_hangs(recorded, running)


async def stop_if_it_hangs(recorded: RecordedSession, running: asyncio.Task[Any]) -> None:
    """A reply that stalls stays so: when nothing has been told for many turns, the user gives up."""
    known, quiet = -1, 0
    while not running.done() and quiet < 200:
        known, quiet = len(recorded.events), quiet + 1 if known == len(recorded.events) else 0
        await asyncio.sleep(0)
    recorded.session.abort()
    with suppress(RobotaError):
        await running


@pytest.mark.parametrize("seed", some_of(range(SEEDS)))
async def test_a_random_session_replays_identically(tmp_path: Path, seed: int) -> None:
    chance = Chance(seed)
    recorded = make_session(tmp_path, chance)
    for _ in range(10):
        await do_something(recorded, chance)
    if chance(0.5):
        await recorded.session.shutdown()

    await assert_replays(recorded)


@pytest.mark.parametrize("seed", some_of(range(SEEDS // 4)))
async def test_a_random_session_that_ended_anywhere_goes_on_and_replays(tmp_path: Path, seed: int) -> None:
    chance = Chance(seed)
    recorded = make_session(tmp_path, chance)
    for _ in range(6):
        await do_something(recorded, chance)
    await recorded.session.shutdown()
    lines = recorded.path.read_bytes().splitlines(keepends=True)

    for _ in range(4):
        end = chance.random.randrange(1, len(lines))
        recorded.path.write_bytes(b"".join(lines[:end]))
        cut = await replay_session(recorded.path)
        assert cut.divergence is None, f"{end}: {cut.divergence}"
        resumed = make_session(tmp_path, chance)
        await prompt(resumed, chance)
        await resumed.session.shutdown()
        whole = await replay_session(recorded.path)
        assert whole.divergence is None, f"{end}: {whole.divergence}"
        assert whole.messages == tuple(resumed.session.messages)
