"""What a journal says that the world answered while an action was carried out, ready to be given again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct, convert, field

from robota.core.context import normalize_usage
from robota.core.errors import (
    AuthenticationError,
    NetworkError,
    ProviderError,
    RateLimitError,
    RobotaError,
)
from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    Json,
    JsonObject,
    Message,
    Part,
    StopReason,
    TokenUsage,
)
from robota.core.provider import (
    Chunk,
    MetadataChunk,
    NativePayload,
    ReasoningChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.core.questions import Question
from robota.core.tool import ToolResult
from robota.sessions.journal import records
from robota.sessions.journal.pieces import (
    INPUT,
    NATIVE_KINDS,
    PROGRESS,
    TEXT,
    TEXT_WITH_BYTES,
    THOUGHT,
    NativeNumbers,
    Pieces,
)
from robota.sessions.journal.port import Position
from robota.sessions.usage.budget import BudgetExceededError, is_about_time

START, ASKED, CLOSED, DECISION, RESULT = "start", "asked", "closed", "decision", "result"
"""Kinds of steps; a hook's is the name of its event."""
PATIENCE = 30.0
"""Seconds after which calls that wait for each other are told so: other code may have another order."""


class ReplayMismatch(RobotaError):
    """The session asks for something that it did not ask for when it was recorded."""

    code = "REPLAY_MISMATCH"


class CallOrder(Struct, eq=False):
    """Lets each call go on when everything that came before its next step has happened."""

    _over: list[bool] = []
    """For each step whether it has happened."""
    _mine: dict[str, list[tuple[str, int]]] = {}
    """Call id -> kind and place of its steps that have not happened yet."""
    _head: int = 0
    _waiting: list[tuple[int, asyncio.Future[None]]] = []

    def add(self, call_id: str, kind: str) -> None:
        """The next step of the recording."""
        self._mine.setdefault(call_id, []).append((kind, len(self._over)))
        self._over.append(False)

    async def wait(self, call_id: str, kind: str = "") -> None:
        """Wait for the turn of a call's next step, or the next of a kind; without one, for all others.

        Being cancelled ends nothing here: the record says what was stopped, and where.
        """
        steps = self._mine.get(call_id, ())
        place = next((place for known, place in steps if known == kind or not kind), len(self._over))
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                return await self._reach(place, deadline)
            except asyncio.CancelledError:  # some scopes cancel again and again
                continue

    async def _reach(self, place: int, deadline: float) -> None:
        if self._head >= place:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, waiter))
        try:
            async with asyncio.timeout_at(deadline):
                await waiter
        except TimeoutError:
            message = "The calls wait for each other: they no longer end in their order."
            raise ReplayMismatch(message) from None

    def passed(self, call_id: str, kind: str = "") -> None:
        """The call's next step of that kind has happened; without a kind: it is over."""
        steps = self._mine.get(call_id, [])
        done = [step for step in steps if step[0] == kind][:1] if kind else list(steps)
        for step in done:
            steps.remove(step)
            self._over[step[1]] = True
        while self._head < len(self._over) and self._over[self._head]:
            self._head += 1
        ready = [waiter for place, waiter in self._waiting if place <= self._head]
        self._waiting = [(place, waiter) for place, waiter in self._waiting if place > self._head]
        for waiter in ready:
            if not waiter.done():
                waiter.set_result(None)


_ENGINE_KEYS = {
    *("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"),
    *("stopReason", "stopDetail", "providerError", "providerStatus", "incomplete"),
}
"""What the engine itself adds to a message's metadata."""
_SERVICE_ERRORS = {
    kind.code: kind for kind in (ProviderError, AuthenticationError, RateLimitError, NetworkError)
}
_TOO_LARGE = 413


RecordedPiece: TypeAlias = Chunk | records.Record
"""A record tells what was done to the session at this point of the reply."""


class RecordedReply(Struct, eq=False):
    pieces: list[RecordedPiece] = field(default_factory=list)
    error: JsonObject | None = None
    """Code and message of the failure that ended it."""
    interrupted: bool = False
    """The user stopped it, after the last of the pieces."""
    closed: bool = False
    """Its end is on record."""
    complaint: str | None = None
    """Why it did not fit the form that was wanted."""
    sums_up: bool = False
    """The last of a run, or a summary, in which calls are not taken."""
    tools: list[JsonObject] | None = None
    """The schemas of the tools that were offered, when they were others than before."""
    surface: str | None = None
    """Of the provider's own events."""
    natives: NativeNumbers = field(default_factory=NativeNumbers)

    def add_pieces(self, pieces: Pieces) -> None:
        self.surface = pieces.surface or self.surface
        self.natives.enter(pieces)
        for kind, text, beside in pieces.each():
            if kind == TEXT:
                self.pieces.append(TextChunk(text))
            elif kind == TEXT_WITH_BYTES:
                self.natives.take("stream_event")
                self.pieces.append(TextChunk(text, encode(beside)))
            elif kind == THOUGHT:
                self.pieces.append(ReasoningChunk(text))
            elif kind == INPUT:
                at, call_id, name = beside
                self.pieces.append(ToolInputChunk(at, text, call_id, name))
            elif kind != PROGRESS:
                number, facts = self.natives.take(NATIVE_KINDS[kind])
                self.pieces.append(
                    NativePayload(
                        kind=NATIVE_KINDS[kind],
                        payload=encode(beside),
                        api_surface=self.surface,
                        sequence=number,
                        metadata=facts,
                    )
                )

    def close(self, message: AssistantMessage, error: Mapping[str, Json] | None) -> None:
        """The message that became of it. What a reply has besides its text comes at its end, where the
        engine only collects it."""
        self.closed = True
        self.interrupted = message.state == "interrupted"
        self.error = None if error is None else dict(error)
        self.pieces += [*message.reasoning, *message.tool_calls]
        metadata = message.metadata
        if self.error is not None:
            self.error["status"] = metadata.get("providerStatus")
        own = {name: value for name, value in metadata.items() if name not in _ENGINE_KEYS}
        usage = normalize_usage(metadata)
        if usage is not None:
            self.pieces.append(usage)
        if own:
            self.pieces.append(MetadataChunk(own))
        reason, detail = metadata.get("stopReason"), metadata.get("stopDetail")
        if self.interrupted or self.error is not None:
            reason = "other" if detail else None  # the engine gives the reason, the provider its words
        if reason is not None:
            self.pieces.append(StopChunk(convert(reason, StopReason), detail))

    @property
    def may_lack_calls(self) -> bool:
        """It may have had calls that are not on record, and nobody said how many tokens it took."""
        dropped = (self.sums_up or self.error is not None) and not self.was_refused
        return dropped and not any(isinstance(piece, TokenUsage) for piece in self.pieces)

    @property
    def was_refused(self) -> bool:
        """The budget did not let the request pass, for another reason than its time."""
        error = self.error or {}
        return error.get("code") == BudgetExceededError.code and not is_about_time(str(error.get("message")))

    def failure(self) -> RobotaError | None:
        """The error that ended the call, with its code and its words."""
        if self.error is None:
            return None
        code = str(self.error["code"])
        kind: type[RobotaError] = _SERVICE_ERRORS.get(code, RobotaError)
        facts: JsonObject = {"code": code, "recoverable": bool(self.error.get("recoverable", False))}
        if status := self.error.get("status") or (_TOO_LARGE if self.error.get("overflow") else None):
            facts["status"] = status
        failure = kind(str(self.error["message"]))
        vars(failure).update(facts)
        return failure


class RecordedRun(Struct, eq=False):
    """One run of the agent, as far as it matters for where it was stopped."""

    marks: int = 1
    """Its beginning, messages, replies, summaries, batches, results, hooks: between two of them it can be
    stopped."""
    interrupted: bool = False
    cut_in_reply: bool = False
    """The last reply shows the interruption."""

    @property
    def ends_after_marks(self) -> bool:
        """It was stopped while tools ran or nothing was awaited: it ends after the last of its marks."""
        return self.interrupted and not self.cut_in_reply


class Action(Struct, eq=False):
    """One thing done to the session from outside: a prompt, a compaction, an injected message."""

    record: records.Record
    """That it was done."""
    message: Message | None = None
    """Of an injected message."""
    clock: int = 0
    """Records so far, those aside whose number depends on timing."""
    last_notices: int = 0
    """Notices since the clock was moved for the last time."""
    asides: dict[int, list[tuple[int, records.Record]]] = field(default_factory=dict)
    """What else was done meanwhile, by the state of the clock, with the number of notices since."""
    ids: deque[str] = field(default_factory=deque)
    times: deque[float] = field(default_factory=deque)
    run: RecordedRun | None = None
    replies: deque[RecordedReply] = field(default_factory=deque)
    hooks: dict[tuple[str, str], deque[JsonObject]] = field(default_factory=dict)
    decisions: dict[str, records.Verdict] = field(default_factory=dict)
    questions: dict[str, Question] = field(default_factory=dict)
    """By their ids, as are the answers."""
    answers: dict[str, records.ClosedRecord] = field(default_factory=dict)
    results: dict[str, records.CallEnded] = field(default_factory=dict)
    """By the id of the call, as are the next three."""
    originals: dict[str, ToolResult] = field(default_factory=dict)
    parts: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    told: dict[str, list[str | records.Record]] = field(default_factory=dict)
    """The progress of a call and the questions that its tool asked, in order."""
    orders: dict[str, CallOrder] = field(default_factory=dict)
    """Batch id -> the order of what its calls did."""
    starts: dict[str, int] = field(default_factory=dict)
    """Batch id -> how many of its calls were begun."""
    notices: list[str] = field(default_factory=list)
    sections: deque[str] = field(default_factory=deque)
    """Texts of the compaction marks, for what code wrote into them."""
    complaint: str | None = None
    """About the reply that was given last."""
    form_was_told: bool = False
    """The prompt asked for the form of the answer."""
    system: str | None = None
    """The system message that was new in this action."""
    interrupted: bool = False
    finished: bool = False
    """Its end is on record, too."""

    def draw(self, message: Message) -> None:
        """An id and a time were taken for a message."""
        self.ids.append(message.id)
        self.times.append(message.timestamp.timestamp())

    def had(self, call_id: str, *hooks: str) -> bool:
        """Whether one of these hooks heard of the call."""
        return any((hook, call_id) in self.hooks for hook in hooks)

    def result_of(self, call_id: str) -> ToolResult:
        """What a call gave, before hooks had their say."""
        original = self.originals.get(call_id)
        if original is not None:
            return original
        failed = self.had(call_id, "PostToolUseFailure")  # all that is known where a recording ends
        nothing = records.CallEnded(outcome="error" if failed else "success")
        return self.results.get(call_id, nothing).to_result(self.parts.get(call_id, ()))

    def take_late_swaps(self, model: str) -> list[records.Record]:
        """What was done since this model was asked for a summary; the record of the call comes behind it."""
        waiting = self.asides.get(self.clock, [])
        swaps = {
            at: aside.value
            for at, (_, aside) in enumerate(waiting)
            if isinstance(aside, records.SessionChange) and aside.change == "model"
        }
        if not swaps:
            return []
        before = [at for at, chosen in swaps.items() if chosen == model]
        start = before[-1] + 1 if before else min(swaps)
        late = [aside for _, aside in waiting[start:]]
        del waiting[start:]
        return late

    def order_of(self, batch: str) -> CallOrder:
        return self.orders.setdefault(batch, CallOrder())


class Segment(Struct, eq=False):
    """What one process did to the session: from its beginning, or from where it was resumed."""

    facts: records.SessionFacts
    """What the session was made of in the end."""
    before: Position
    """Where the journal was."""
    start: Action
    """What the session learnt before its first action."""
    actions: list[Action] = field(default_factory=list)
    max_parallel: int | None = None
    closed: bool = False
    """The session was shut down; without that, the record may end anywhere."""

    @property
    def first_seq(self) -> int:
        return self.before.record + 1
