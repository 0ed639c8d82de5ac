"""What was done to a session, and what the world answered while it was carried out."""

from __future__ import annotations

from collections import deque
from datetime import datetime

from robota.core.messages import Json, JsonObject, Message, Part
from robota.core.tool import ToolResult
from robota.sessions.journal.port import Position
from robota.sessions.journal.records import CallEnded, Record, SessionChange, SessionFacts, Verdict
from robota.sessions.replay.recorded_reply import RecordedReply
from robota.sessions.replay.turnstile import Turnstile


class RecordedRun:
    """One run of the agent, as far as it matters for where it was stopped."""

    __slots__ = ("cut_in_reply", "interrupted", "marks")

    def __init__(self) -> None:
        self.marks = 0
        """Its beginning, messages, replies, summaries, batches, results, hooks: between two of them it can be
        stopped."""
        self.interrupted = False
        self.cut_in_reply = False
        """The last reply shows the interruption."""

    @property
    def ends_after_marks(self) -> bool:
        """It was stopped while tools ran or nothing was awaited: it ends after the last of its marks."""
        return self.interrupted and not self.cut_in_reply


class Action:
    """One thing done to the session from outside: a prompt, a compaction, an injected message."""

    __slots__ = (
        "answers", "asides", "clock", "decisions", "finished", "hooks", "ids", "interrupted", "last_notices",
        "message", "notices", "originals", "parts", "progress", "record", "replies", "results", "run",
        "sections", "starts", "system", "times", "tools", "turnstiles",
    )  # fmt: skip

    def __init__(self, record: Record, message: Message | None = None) -> None:
        self.record = record
        """That it was done."""
        self.message = message
        """Of an injected message."""
        self.clock = 0
        """Records so far, those aside whose number depends on timing."""
        self.last_notices = 0
        """Notices since the clock was moved for the last time."""
        self.asides: dict[int, list[tuple[int, Record]]] = {}
        """What else was done meanwhile, by the state of the clock, with the number of notices since."""
        self.ids: deque[str] = deque()
        self.times: deque[float] = deque()
        self.run: RecordedRun | None = None
        self.replies: deque[RecordedReply] = deque()
        self.hooks: dict[tuple[str, str], deque[JsonObject]] = {}
        self.decisions: dict[str, Verdict] = {}
        self.answers: deque[Json] = deque()
        self.results: dict[str, CallEnded] = {}
        """By the id of the call, as are the next three."""
        self.originals: dict[str, ToolResult] = {}
        self.parts: dict[str, tuple[Part, ...]] = {}
        self.progress: dict[str, list[str]] = {}
        self.turnstiles: dict[str, Turnstile] = {}
        """Batch id -> the order of what its calls did."""
        self.starts: dict[str, int] = {}
        """Batch id -> how many of its calls were begun."""
        self.notices: list[str] = []
        self.sections: deque[str] = deque()
        """Texts of the compaction marks, for what code wrote into them."""
        self.system: str | None = None
        """The system message that was new in this action."""
        self.tools: list[JsonObject] | None = None
        """The schemas of the tools, when they were new in this action."""
        self.interrupted = False
        self.finished = False
        """Its end is on record, too."""

    def draw(self, message: Message) -> None:
        """An id and a time were taken for a message."""
        self.draw_as(message.id, message.timestamp)

    def draw_as(self, message_id: str, moment: datetime) -> None:
        self.ids.append(message_id)
        self.times.append(moment.timestamp())

    def had(self, call_id: str, *hooks: str) -> bool:
        """Whether one of these hooks heard of the call."""
        return any((hook, call_id) in self.hooks for hook in hooks)

    def result_of(self, call_id: str) -> ToolResult:
        """What a call gave, before hooks had their say."""
        original = self.originals.get(call_id)
        if original is not None:
            return original
        failed = self.had(call_id, "PostToolUseFailure")  # all that is known where a recording ends
        nothing = CallEnded(outcome="error" if failed else "success")
        return self.results.get(call_id, nothing).to_result(self.parts.get(call_id, ()))

    def take_late_swaps(self, model: str) -> list[Record]:
        """What was done since this model was asked for a summary; the record of the call comes behind it."""
        waiting = self.asides.get(self.clock, [])
        swaps = {
            at: aside.value
            for at, (_, aside) in enumerate(waiting)
            if isinstance(aside, SessionChange) and aside.change == "model"
        }
        if not swaps:
            return []
        before = [at for at, chosen in swaps.items() if chosen == model]
        start = before[-1] + 1 if before else min(swaps)
        late = [aside for _, aside in waiting[start:]]
        del waiting[start:]
        return late

    def turnstile(self, batch: str) -> Turnstile:
        return self.turnstiles.setdefault(batch, Turnstile())


class Segment:
    """What one process did to the session: from its beginning, or from where it was resumed."""

    __slots__ = ("actions", "before", "closed", "facts", "max_parallel", "start")

    def __init__(self, facts: SessionFacts, before: Position) -> None:
        self.facts = facts
        """What the session was made of in the end."""
        self.before = before
        """Where the journal was."""
        self.start = Action(facts)
        """What the session learnt before its first action."""
        self.actions: list[Action] = []
        self.max_parallel: int | None = None
        self.closed = False
        """The session was shut down; without that, the record may end anywhere."""

    @property
    def first_seq(self) -> int:
        return self.before.record + 1
