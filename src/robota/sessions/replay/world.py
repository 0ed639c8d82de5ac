"""The recorded world: whatever a session asks of the outside, it gets what it got the first time.

When the recording has no more to give, that is where the user stopped the session, so it is stopped again;
unless nobody had stopped it: then the code asks for something it did not ask for before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import convert

from robota.core.errors import RobotaError
from robota.core.events import ToolEnded, ToolStarted
from robota.core.hooks import HookOutcome
from robota.core.messages import Json, JsonObject
from robota.core.ports import Ports
from robota.core.provider import Capabilities, ChatRequest, Chunk, NativePayload, NativeWebTool, TextChunk
from robota.core.tool import ToolContext, ToolResult
from robota.sessions.permissions.approval import ApprovalRequest, PermissionAnswer, answer_from_record
from robota.sessions.permissions.judgement import Judgement
from robota.sessions.replay.recording import Action

if TYPE_CHECKING:
    from robota.core.hooks.matching import MatchesRule
    from robota.core.tool_batch import PreparedCall
    from robota.sessions.permissions.judgement import Terms
    from robota.sessions.session import Session

INTERRUPTED = "interrupted"


class ReplayMismatch(RobotaError):
    """The session asks for something that it did not ask for when it was recorded."""

    code = "REPLAY_MISMATCH"


class ReplayWorld:
    """Holds the action being replayed; every port answers from it."""

    def __init__(self, init: Mapping[str, Json], start: Action) -> None:
        self.init = init
        self.action = start
        self.session: Session | None = None
        self.mismatch: str = ""
        self._spare = 0
        self._timed: dict[Any, str] = {}
        self._ended: dict[str, asyncio.Event] = {}

    def begin(self, action: Action) -> None:
        self.action = action
        self._ended.clear()

    def follow(self, session: Session) -> None:
        self.session = session
        session.events.on(ToolStarted, self.note_start)
        session.events.on(ToolEnded, self.note_end)

    async def stop_here(self, what: str) -> NoReturn:
        """There is nothing more on record."""
        if not self.action.interrupted:
            self.mismatch = self.mismatch or what
            raise ReplayMismatch(f"The recording has no {what} at this point.")
        await self.abort()

    async def abort(self) -> NoReturn:
        """Stop the session where the user stopped it."""
        assert self.session is not None
        self.session.abort()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing sets this future")

    # --- clock and ids ------------------------------------------------------------------------------------

    def ports(self) -> Ports:
        return Ports(now=self.now, monotonic=self.monotonic, new_id=self.new_id, random=lambda: 0.5)

    def new_id(self) -> str:
        if self.action.ids:
            return self.action.ids.popleft()
        self._spare += 1
        return f"replay-{self._spare}"

    def now(self) -> float:
        return self.action.times.popleft() if self.action.times else 0.0

    def monotonic(self) -> float:
        """Zero, except at the end of a call: then what the call took."""
        call_id = self._timed.pop(asyncio.current_task(), "")
        return float(self.action.results.get(call_id, {}).get("duration", 0.0))

    def note_start(self, event: ToolStarted) -> None:
        self._timed[asyncio.current_task()] = event.call_id

    def note_end(self, event: ToolEnded) -> None:
        self.ended(event.call_id).set()

    def ended(self, call_id: str) -> asyncio.Event:
        return self._ended.setdefault(call_id, asyncio.Event())

    # --- tools --------------------------------------------------------------------------------------------

    async def result(self, call_id: str) -> ToolResult:
        """What a call gave, when it is its turn to end."""
        recorded = self.action.results.get(call_id)
        if recorded is None:
            await self.stop_here(f"result of the call {call_id}")
        order = self.action.batches[call_id.rpartition("-")[0]]
        for earlier in order[: order.index(call_id)]:
            if self.action.results[earlier].get("errorCode") != INTERRUPTED:
                await self.ended(earlier).wait()
        if recorded.get("errorCode") == INTERRUPTED and self.action.interrupted:
            for other in order:
                if self.action.results[other].get("errorCode") != INTERRUPTED:
                    await self.ended(other).wait()
            await self.abort()
        original = self.action.originals.get(call_id)
        if original is not None:
            return convert(original, ToolResult)
        outcome = recorded.get("outcome", "success")
        return convert(
            {
                "content": recorded.get("content", ""),
                "ok": outcome == "success",
                "denied": outcome == "denied",
                "error": recorded.get("error"),
                "error_code": recorded.get("errorCode"),
                "metadata": recorded.get("metadata", {}),
                "parts": self.action.parts.get(call_id, ()),
            },
            ToolResult,
        )

    # --- permissions --------------------------------------------------------------------------------------

    async def judge(self, call: PreparedCall, terms: Terms) -> Judgement:
        judged = self.action.decisions.get(call.call_id, {}).get("judged")
        if not judged:
            await self.stop_here(f"decision about the call {call.call_id}")
        return convert(judged.pop(0), Judgement)

    def offer(self, call: PreparedCall, terms: Terms) -> Sequence[str]:
        rules: list[str] = self.action.decisions.get(call.call_id, {}).get("rules", [])
        return rules

    def remember(self, call: PreparedCall, directory: str) -> None:
        """What followed from it is on record."""

    async def approve(self, request: ApprovalRequest) -> bool | str | PermissionAnswer | None:
        """What the user, or nobody, answered."""
        answer = self.action.decisions.get(request.call_id, {}).get("answer")
        if answer is None:
            return None
        if answer.get("interrupted"):
            await self.abort()
        if "error" in answer:
            wrong: str = _wrong_answer(str(answer["error"]))
            return wrong
        return answer_from_record(answer)


class ReplayProvider:
    """A recorded session as a provider: each call gets the next reply on record."""

    def __init__(self, world: ReplayWorld) -> None:
        self._world = world
        self.name = str(world.init.get("provider") or "replay")
        web = world.init.get("webTools") or {}
        self.capabilities = Capabilities(
            web_search=_web_tool(web.get("webSearch")), web_fetch=_web_tool(web.get("webFetch"))
        )

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        world = self._world
        replies = world.action.replies
        if not replies:
            await world.stop_here("reply of the model")
        reply = replies.popleft()
        for chunk in reply.chunks:
            if request.want_raw or not isinstance(chunk, NativePayload | TextChunk):
                yield chunk
            elif isinstance(chunk, TextChunk):
                yield TextChunk(chunk.text)
        if reply.interrupted:
            await world.abort()
        failure = reply.failure()
        if failure is not None:
            raise failure


class ReplayTool:
    """A tool whose results are on record."""

    def __init__(self, schema: JsonObject, world: ReplayWorld, *, validates_arguments: bool) -> None:
        self.name: str = schema["name"]
        self.description: str = schema.get("description", "")
        self.parameters: JsonObject = schema.get("parameters", {"type": "object"})
        self.validates_arguments = validates_arguments
        self._world = world

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return await self._world.result(context.call_id)


class ReplayHooks:
    """Hooks whose outcomes are on record."""

    def __init__(self, world: ReplayWorld) -> None:
        self._world = world
        self._events = frozenset(world.init.get("hookEvents") or ())

    def has(self, event: str) -> bool:
        return event in self._events

    async def fire(
        self,
        event: str,
        hook_input: Mapping[str, Json],
        *,
        call_id: str = "",
        matches_rule: MatchesRule | None = None,
    ) -> HookOutcome:
        if not self.has(event):
            return HookOutcome(event=event)
        world = self._world
        outcomes: deque[JsonObject] = world.action.hooks.get((event, call_id)) or deque()
        if not outcomes:
            await world.stop_here(f"outcome of {event} hooks")
        outcome = convert(outcomes.popleft(), HookOutcome)
        assert world.session is not None
        world.session.life.scribe.report_hooks(outcome, call_id)
        return outcome


def _web_tool(described: Json) -> NativeWebTool:
    said = described or {}
    return NativeWebTool(supported=bool(said.get("supported")), enabled=bool(said.get("enabled")))


def _wrong_answer(error: str) -> Any:
    """A handler that broke or answered nonsense breaks again in the same words."""
    odd = error.removeprefix("it answered with ")
    if odd != error:
        return type(odd, (), {})()
    name, _, text = error.partition(": ")
    raise type(name or "RuntimeError", (Exception,), {})(text)
