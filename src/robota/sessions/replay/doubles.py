"""The recorded model, tools, hooks, permissions and journal, in the places of the real ones."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert

from robota.core.bus import EventBus
from robota.core.errors import ValidationError
from robota.core.hooks import HookOutcome
from robota.core.messages import Json, JsonObject
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativePayload,
    NativeWebTool,
    Provider,
    TextChunk,
)
from robota.core.questions import PermissionQuestion, Question, read_answer
from robota.core.structured import OutputType
from robota.core.tool import Tool, ToolClass, ToolContext, ToolResult
from robota.sessions.journal.decoding import decode_line, split_record
from robota.sessions.journal.port import MemoryJournal, Position
from robota.sessions.journal.records import Record, RunContinued, SessionChange, Verdict
from robota.sessions.permissions.consultation import Fault
from robota.sessions.permissions.judgement import Judgement
from robota.sessions.questions import Questions, Settled
from robota.sessions.replay.recorded import ASKED, CLOSED, DECISION, Action
from robota.sessions.replay.recording import INTERRUPTED
from robota.sessions.replay.world import ReplayWorld

if TYPE_CHECKING:
    from robota.core.hooks.runner import MatchesRule
    from robota.core.tool_call import PreparedCall
    from robota.sessions.permissions.judgement import Terms
    from robota.sessions.replay.session_replay import SegmentReplay
    from robota.sessions.session import Session


class ReplayProvider(Struct, eq=False):
    """A recorded session as a provider: each call gets the next reply on record."""

    _world: ReplayWorld
    name: str
    capabilities: Capabilities

    @classmethod
    def first(cls, world: ReplayWorld) -> ReplayProvider:
        """The provider that the session began with."""
        web = world.facts.web_tools
        search, fetch = (convert(web.get(name) or {}, NativeWebTool) for name in ("webSearch", "webFetch"))
        capabilities = Capabilities(web_search=search, web_fetch=fetch)
        return cls(world, world.facts.provider or "replay", capabilities)

    def next(self, change: SessionChange) -> ReplayProvider:
        """The one that it was exchanged for."""
        capabilities = convert(change.capabilities or {}, Capabilities)
        return ReplayProvider(self._world, change.provider or "", capabilities)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        world = self._world
        replies = world.action.replies
        limited = world.session.admission.budget is not None  # then it has refused them again
        while limited and replies and replies[0].was_refused:
            replies.popleft()
        if not replies:
            await world.stop_here("reply of the model")
        reply = replies.popleft()
        world.action.complaint = reply.complaint
        world.replay.offer_tools(world.action)  # the next request has what it had
        for piece in reply.pieces:
            if isinstance(piece, Record):
                world.clock.do(piece)
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


class ReplayOutput(OutputType):
    """A form of answers whose verdicts are on record: types may check more than their schemas say."""

    def __init__(self, schema: JsonObject, action: Action) -> None:
        self.schema = schema
        self.retries = 2
        self._action = action

    def must_be_told(self, provider: Provider) -> bool:
        return self._action.form_was_told

    def parse(self, text: str) -> None:
        if self._action.complaint is not None:
            raise ValidationError(self._action.complaint)


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

    @property
    def tool_class(self) -> ToolClass | None:
        """Known where it matters: which calls were made again in a run that went on after a crash."""
        action = self._world.action.record
        return "inspect" if isinstance(action, RunContinued) and self.name in action.looking else None

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        world, call_id, result = self._world, context.call_id, None
        world.note_call(call_id)
        if self._real is not None:
            result = await self._real.run(arguments, context)
        else:
            world.tell_again(context)
        await world.take_turn(call_id)
        return world.action.result_of(call_id) if result is None else result


class ReplayHooks:
    """Hooks whose outcomes are on record."""

    def __init__(self, world: ReplayWorld) -> None:
        self._world = world
        self._events = frozenset(world.facts.hook_events or ())

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
            await world.order_of(call_id).wait(call_id, event)
        if not outcomes:
            if call_id:
                await world.interrupt(call_id, f"outcome of {event} hooks")
            await world.stop_here(f"outcome of {event} hooks", after_end=True)
        outcome = convert(outcomes.popleft(), HookOutcome)
        world.session.log.record_hooks(outcome, call_id)
        if call_id:
            world.order_of(call_id).passed(call_id, event)
        return outcome


NOT_SAVED = "The rule {rule} counts for this session only, it could not be saved: "


class RecordedJudge:
    """Judge and keeper of rules in one."""

    def __init__(self, world: ReplayWorld) -> None:
        self._world = world
        self._judged: set[str] = set()

    async def judge(self, call: PreparedCall, terms: Terms) -> Judgement:
        call_id = call.call_id
        decision = self._world.action.decisions.get(call_id)
        first = call_id not in self._judged
        if first:  # later ones may hold what others wait for
            self._judged.add(call_id)
            await self._world.order_of(call_id).wait(call_id)
        action = self._world.action
        if decision is None and (
            action.had(call_id, "PermissionRequest", "Notification") or call_id in action.questions
        ):
            # The recording ends while somebody is asked; with a rule, so that no hook answers for them.
            return Judgement(decision="approve", rule="")
        if decision is None or not decision.judged:
            await self._world.interrupt(call_id, f"decision about the call {call_id}")
        next_one, *decision.judged = decision.judged
        verdict = convert(next_one, Judgement)
        if first and not decision.judged and _is_cut(decision):
            self._world.interrupt_soon()  # it may have to wait for others, and was stopped there
        return verdict

    def offer(self, call: PreparedCall, terms: Terms) -> Sequence[str]:
        decision = self._world.action.decisions.get(call.call_id)
        return () if decision is None else decision.rules

    def remember(self, call: PreparedCall, directory: str) -> None:
        """What followed from it is on record."""

    def save_rule(self, rule: str) -> Any:
        """Saving a rule fails again in the same words."""
        complaint = NOT_SAVED.format(rule=rule)
        failed = next((said for said in self._world.action.notices if said.startswith(complaint)), None)
        return None if failed is None else Fault(failed.removeprefix(complaint))


class RecordedQuestions(Questions):
    """Answers as they were given: the same question has the same id again."""

    def __init__(self, world: ReplayWorld) -> None:
        super().__init__(EventBus())
        self._world = world

    @property
    def attended(self) -> bool:
        return self._world.facts.can_ask

    def follow(self, session: Session) -> None:
        """Tell what is asked where this session tells what happens."""
        self._events = session.events

    async def settle(self, question: Question, *, wait: bool = False) -> Settled:
        if not isinstance(question, PermissionQuestion):
            return await super().settle(question, wait=wait)
        call_id, world = question.call_id, self._world
        order, decision = world.order_of(call_id), world.action.decisions.get(call_id)
        await order.wait(call_id, ASKED)
        try:
            settled = await super().settle(question, wait=wait)
        finally:
            order.passed(call_id, CLOSED)
            if decision is not None:  # others may have gone on before that
                await order.wait(call_id, DECISION)
        if decision is not None and _is_cut(decision):  # stopped between the answer and the decision
            await world.interrupt(call_id, f"decision about the call {call_id}")
        return settled

    async def find_answer(self, question: Question, *, wait: bool) -> Settled:
        call_id, world = question.call_id, self._world
        decision, closed = world.action.decisions.get(call_id), world.action.answers.get(question.id)
        if isinstance(question, PermissionQuestion):
            world.order_of(call_id).passed(call_id, ASKED)
            await world.order_of(call_id).wait(call_id, CLOSED)
            if closed is None or closed.reason == "aborted":
                await world.interrupt(call_id, f"answer about the call {call_id}")
        if closed is None:
            await world.stop_here("answer of the user")
        fault = str(((decision and decision.answer) or {}).get("error", ""))
        answer = read_answer(question, closed.answer)
        return Settled(answer=answer, by=closed.by, reason=closed.reason, fault=fault)


def _is_cut(decision: Verdict) -> bool:
    """Whether the session was stopped before anybody decided."""
    return bool((decision.answer or {}).get(INTERRUPTED))


class ReplayJournal(MemoryJournal):
    """Takes records, each for itself, if the replay accepts them, and says so."""

    def __init__(self, session_id: str, before: Position, replay: SegmentReplay) -> None:
        """`before` is where the recording was when this part of it began."""
        super().__init__(session_id, first=before.record + 1)
        self._before = before
        self._replay = replay
        self.closed_for_more = False
        """What comes now is no part of the journal."""

    @property
    def last(self) -> Position:
        return super().last if self.records else self._before

    def append(self, body: bytes, *, event: int, hold: bool = False) -> int:
        for record in split_record(decode_line(self.make_line(body))):
            if self.closed_for_more or not self._replay.accept(record.name):
                continue
            record.seq = self.saved + 1
            self.keep(record, event)
            self._replay.note_record(record.name)
        return self.saved
