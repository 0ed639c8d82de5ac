"""The recorded model, tools and hooks, in the places of the real ones."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

from msgspec import convert

from robota.core.hooks import HookOutcome
from robota.core.messages import Json, JsonObject
from robota.core.provider import Capabilities, ChatRequest, Chunk, NativePayload, NativeWebTool, TextChunk
from robota.core.tool import Tool, ToolContext, ToolResult
from robota.sessions.replay.recorded_reply import Meanwhile
from robota.sessions.replay.world import ReplayWorld

if TYPE_CHECKING:
    from robota.core.hooks.matching import MatchesRule


class ReplayProvider:
    """A recorded session as a provider: each call gets the next reply on record."""

    def __init__(self, world: ReplayWorld, name: str, capabilities: Capabilities) -> None:
        self._world = world
        self.name = name
        self.capabilities = capabilities

    @classmethod
    def first(cls, world: ReplayWorld) -> ReplayProvider:
        """The provider that the session began with."""
        web = world.init.get("webTools") or {}
        search, fetch = _web_tool(web.get("webSearch")), _web_tool(web.get("webFetch"))
        capabilities = Capabilities(web_search=search, web_fetch=fetch)
        return cls(world, str(world.init.get("provider") or "replay"), capabilities)

    def next(self, recorded: Mapping[str, Json]) -> ReplayProvider:
        """The one that it was exchanged for."""
        capabilities = convert(recorded.get("capabilities") or {}, Capabilities)
        return ReplayProvider(self._world, str(recorded["provider"]), capabilities)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        world = self._world
        if not world.action.replies:
            await world.stop_here("reply of the model")
        reply = world.action.replies.popleft()
        for piece in reply.pieces:
            if isinstance(piece, Meanwhile):
                world.clock.do((piece.event, piece.fields))
            elif request.want_raw or not isinstance(piece, NativePayload | TextChunk):
                yield piece
            elif isinstance(piece, TextChunk):
                yield TextChunk(piece.text)
        if reply.interrupted:
            await world.abort()
        if not reply.closed:
            await world.stop_here("end of this reply")
        failure = reply.failure()
        if failure is not None:
            raise failure


class ReplayTool:
    """A tool whose results are on record; with `real`, that tool runs in the place of the record."""

    def __init__(
        self, schema: JsonObject, world: ReplayWorld, *, validates_arguments: bool, real: Tool | None = None
    ) -> None:
        self.name: str = schema["name"]
        self.description: str = schema.get("description", "")
        self.parameters: JsonObject = schema.get("parameters", {"type": "object"})
        self.validates_arguments = validates_arguments
        self._world = world
        self._real = real

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        if self._real is None:
            await self._world.take_turn(context.call_id)
            return self._world.action.result_of(context.call_id)
        result = await self._real.run(arguments, context)
        await self._world.take_turn(context.call_id)
        return result


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
        if call_id and outcomes:
            await world.turnstile(call_id).wait(call_id, event)
        if not outcomes:
            if call_id:
                await world.interrupt(call_id, f"outcome of {event} hooks")
            await world.stop_here(f"outcome of {event} hooks", after_end=True)
        outcome = convert(outcomes.popleft(), HookOutcome)
        assert world.session is not None
        world.session.log.record_hooks(outcome, call_id)
        if call_id:
            world.turnstile(call_id).passed(call_id, event)
        return outcome


def _web_tool(described: Json) -> NativeWebTool:
    said = described or {}
    return NativeWebTool(supported=bool(said.get("supported")), enabled=bool(said.get("enabled")))
