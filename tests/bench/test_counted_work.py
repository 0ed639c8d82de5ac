"""Speed guarded by counting: calls, encodings, allocations and loaded modules do not depend on the machine.

The ceilings are what was counted when they were written, with a little air for rounds. A change that needs
more has to say so here.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from asyncio import BaseEventLoop
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import CodeType, FrameType

import pytest
from bench.verdicts import read_questions

from robota import InteractiveSession, Robota, Session, tool
from robota.core import (
    ChatRequest,
    Chunk,
    HistoryMutation,
    StopChunk,
    TextChunk,
    ToolCall,
    TurnEvent,
)
from robota.core.bus import EventBus
from robota.core.context import ContextWindowState
from robota.core.permissions import command_reading, evaluate_permission
from robota.core.tool_round import ToolRound
from robota.providers.chat.reply import ChatContent
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.scripted import ScriptedProvider
from robota.providers.wire.errors import Peer
from robota.providers.wire.reply import ReplyReader
from robota.sessions import JournalOptions, PermissionRules, SessionOptions, SessionStore
from robota.sessions.context_window_tracker import ContextWindowTracker
from robota.testing.model_server import ModelServer

pytestmark = pytest.mark.anyio

CALLS_PER_ROUND = 168
CALLS_TO_REQUEST = 184
CALLS_PER_SESSION = 64
CALLS_PER_CALL_IN_SESSION = 226
CALLS_PER_VERDICT = 92
CALLS_PER_DELTA = 3
CALLS_PER_STREAMED_DELTA = 7
CALLS_PER_DECODED_DELTA = 5


class Burst(ScriptedProvider):
    """Says everything at once: the turns of the loop between two pieces are not what is counted here."""

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        calls = False
        reply = self._next_reply(request)
        while callable(reply):
            reply = reply(request)
        for step in reply:
            calls = calls or isinstance(step, ToolCall)
            yield TextChunk(step) if isinstance(step, str) else step  # type: ignore[misc]  # no other steps here
        yield StopChunk("tool_use" if calls else "end_turn")


class CallCount:
    """How often each Python function was entered; resuming a coroutine or generator counts as well."""

    def __init__(self) -> None:
        self.total = 0
        self.by_code: Counter[CodeType] = Counter()

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            self.total += 1
            self.by_code[frame.f_code] += 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        gc.disable()  # tools that watch collections would be counted, too
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            gc.enable()


@tool
async def double(number: int) -> int:
    """Double a number."""
    return number * 2


def rounds_of_tools(rounds: int, seen: Callable[[int], object] = lambda number: None) -> ScriptedProvider:
    """A model that calls a tool so many times, then answers; `seen` is told when each request arrives."""

    def reply(number: int) -> Callable[[ChatRequest], list[ToolCall | str]]:
        def play(request: ChatRequest) -> list[ToolCall | str]:
            seen(number)
            return [ToolCall(f"call_{number}", "double", '{"number":2}')] if number < rounds else ["done"]

        return play

    return Burst(*map(reply, range(rounds + 1)))


def agent_of(provider: ScriptedProvider | OpenAICompatibleProvider) -> Robota:
    return Robota(provider, model="any", tools=[double], system_message="Be brief.", max_rounds=0)


async def test_every_group_of_messages_is_encoded_once_in_a_long_run() -> None:
    replies = [[ToolCall(f"call_{number}", "double", '{"number":2}')] for number in range(50)]
    async with (
        ModelServer(*replies, "done") as server,
        OpenAICompatibleProvider("key", f"{server.url}/v1", "any") as provider,
    ):
        agent = agent_of(provider)
        assert (await agent.run("Go.")).success
    assert len(server.requests) == 51
    assert agent.conversation.encoded.encodings == len(agent.messages) - 1  # the last answer was not sent


async def test_a_round_takes_the_same_calls_however_long_the_history_is() -> None:
    count, marks = CallCount(), list[int]()
    agent = agent_of(rounds_of_tools(210, lambda number: marks.append(count.total)))
    with count.watching():
        await agent.run("Go.")
    early, late = marks[11] - marks[10], marks[201] - marks[200]
    assert abs(late - early) <= 3  # one more per message would be 380
    assert late <= CALLS_PER_ROUND


async def test_a_single_tool_takes_no_turn_of_the_loop() -> None:
    async def count_turns(rounds: int) -> int:
        count = CallCount()
        agent = agent_of(rounds_of_tools(rounds))
        with count.watching():
            await agent.run("Go.")
        return count.by_code[BaseEventLoop._run_once.__code__]

    # With a turn per round, sessions that run together make their pool look at all of its idle connections.
    assert await count_turns(30) == await count_turns(10)


async def test_a_round_allocates_the_same_however_long_the_history_is() -> None:
    allocated, before = list[int](), 0

    def next_round(number: int) -> None:
        nonlocal before
        now, peak = tracemalloc.get_traced_memory()
        allocated.append(peak - before)
        before = now
        tracemalloc.reset_peak()

    agent = agent_of(rounds_of_tools(420, next_round))
    tracemalloc.start()
    try:
        await agent.run("Go.")
    finally:
        tracemalloc.stop()
    early, late = median(allocated[20:40]), median(allocated[400:420])
    assert late - early < 1_000  # a copy of 800 references to messages would be 6,400


async def count_calls(deltas: int, listen: Callable[[Robota], Awaitable[object]]) -> int:
    count = CallCount()
    agent = Robota(Burst(["word "] * deltas))
    with count.watching():
        await listen(agent)
    return count.total


async def wait_for(agent: Robota) -> None:
    await agent.run("Go.")


async def iterate_over(agent: Robota) -> None:
    async for _ in agent.stream("Go."):
        pass


@pytest.mark.parametrize(
    ("listen", "ceiling"), [(wait_for, CALLS_PER_DELTA), (iterate_over, CALLS_PER_STREAMED_DELTA)]
)
async def test_a_delta_takes_few_calls(listen: Callable[[Robota], Awaitable[object]], ceiling: int) -> None:
    await count_calls(1, listen)  # the first run of a process loads modules
    few = await count_calls(500, listen)
    assert (await count_calls(1_500, listen) - few) / 1_000 <= ceiling


def test_reading_a_delta_from_the_wire_takes_few_calls() -> None:
    event = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"word"},"finish_reason":null}]}\n\n'
    reader = ReplyReader(ChatContent(), Peer("any"))
    reader.feed(event)
    count = CallCount()
    with count.watching():
        for _ in range(1_000):
            reader.feed(event)
    assert count.total // 1_000 <= CALLS_PER_DECODED_DELTA


async def test_without_listeners_no_event_is_made_but_the_delta() -> None:
    count = CallCount()
    agent = agent_of(rounds_of_tools(3))
    with count.watching():
        await agent.run("Go.")
    assert count.by_code[EventBus.emit.__code__] <= 1
    assert count.by_code[ToolRound.owner_path.__code__] == 0


async def test_a_listener_to_turn_events_does_not_switch_replay_events_on() -> None:
    count, events = CallCount(), list[TurnEvent]()
    agent = agent_of(rounds_of_tools(3))
    agent.events.subscribe(events.append)
    with count.watching():
        await agent.run("Go.")
    assert events
    assert count.by_code[EventBus.emit.__code__] == len(events)


async def test_a_replay_event_is_made_for_the_one_who_asked_and_no_other() -> None:
    count, mutations = CallCount(), list[HistoryMutation]()
    agent = agent_of(rounds_of_tools(3))
    agent.events.on(HistoryMutation, mutations.append)
    with count.watching():
        await agent.run("Go.")
    assert [event.index for event in mutations] == list(range(len(agent.messages)))
    assert count.by_code[EventBus.emit.__code__] <= len(mutations) + 1


async def count_to_request(tmp_path: Path, prepare: Callable[[InteractiveSession], object]) -> CallCount:
    """The calls from the third `submit` of a session to its request."""
    count = CallCount()

    def answer(request: ChatRequest) -> list[str]:
        sys.setprofile(None)
        return ["done"]

    session = InteractiveSession(
        cwd=tmp_path, provider=Burst(answer, answer, answer), environment={"HOME": str(tmp_path / "home")}
    )
    prepare(session)
    await session.submit("Go.")
    await session.submit("Go.")
    with count.watching():
        await session.submit("Go.")
    await session.shutdown()
    return count


async def test_a_prompt_takes_few_calls_to_its_request(tmp_path: Path) -> None:
    count = await count_to_request(tmp_path, lambda session: None)
    assert 0 < count.total <= CALLS_TO_REQUEST
    assert count.by_code[ContextWindowTracker.measure.__code__] == 0


async def test_the_window_is_measured_for_those_who_hear_of_it(tmp_path: Path) -> None:
    states: list[ContextWindowState] = []
    count = await count_to_request(tmp_path, lambda session: session.on("context_update", states.append))
    assert count.by_code[ContextWindowTracker.measure.__code__] == 1
    assert len(states) == 9  # before each request, after each answer, and at the end of each turn


PERMITTED = SessionOptions(
    permissions=PermissionRules(allow=("double",)), journal=JournalOptions(durable=False)
)


def session_of(provider: ScriptedProvider, store: SessionStore) -> Session:
    return Session(provider=provider, model="any", tools=[double], store=store, options=PERMITTED)


def test_a_session_takes_few_calls_to_make(tmp_path: Path) -> None:
    store, count = SessionStore(str(tmp_path)), CallCount()
    session_of(Burst(), store)  # the first one loads modules
    with count.watching():
        session_of(Burst(), store)
    assert count.total <= CALLS_PER_SESSION


async def test_a_call_in_a_session_takes_few_calls(tmp_path: Path) -> None:
    """Judged, written down before it begins and when it has ended, and its message."""
    store = SessionStore(str(tmp_path))

    async def count_calls_of(number: int) -> int:
        calls = [ToolCall(f"call_{at}", "double", '{"number":2}') for at in range(number)]
        async with session_of(Burst(calls, "done"), store) as session:
            count = CallCount()
            with count.watching():
                assert await session.run("Go.") == "done"
        return count.total

    await count_calls_of(2)  # the first run of a process loads modules
    few = await count_calls_of(10)
    assert (await count_calls_of(110) - few) / 100 <= CALLS_PER_CALL_IN_SESSION


def test_a_verdict_about_a_new_command_takes_few_calls(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    questions = read_questions(tmp_path)

    def judge() -> None:
        for call, terms in questions:
            command_reading.read_again.cache_clear()
            assert evaluate_permission("Bash", call, **terms) == "auto"

    judge()  # loads the tables of programs and reads the rules
    count = CallCount()
    with count.watching():
        judge()
    assert count.total / len(questions) <= CALLS_PER_VERDICT


def modules_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded because of the statement."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_robota_loads_next_to_nothing() -> None:
    heavy = {
        "pydantic", "httpx2", "rich", "prompt_toolkit", "tree_sitter", "asyncio", "anyio", "msgspec",
        "typing", "collections", "dataclasses", "logging", "re", "ssl",
    }  # fmt: skip
    loaded = modules_after("import robota")
    assert "robota" in loaded
    assert not loaded & heavy


def test_the_engine_loads_no_client_and_no_front_end() -> None:
    heavy = {"pydantic", "httpx2", "rich", "prompt_toolkit", "tree_sitter", "click", "yaml"}
    loaded = modules_after("import robota.core.robota")
    assert "msgspec" in loaded
    assert not loaded & heavy
