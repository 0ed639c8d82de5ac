"""What was done to a session, and what the world answered while it was carried out."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

from msgspec import convert

from robota.core.messages import Json, JsonObject, Message
from robota.core.tool import ToolResult
from robota.sessions.replay.recorded_reply import RecordedReply
from robota.sessions.replay.turnstile import Turnstile

Aside: TypeAlias = tuple[str, Mapping[str, Json]]
"""Event and fields of something done from outside in the middle of an action."""


class RecordedRun:
    """One run of the agent, as far as it matters for where it was stopped."""

    __slots__ = ("cut_in_reply", "interrupted", "marks", "stopped_late")

    def __init__(self) -> None:
        self.marks = 0
        """Its beginning, messages, replies, summaries, batches, results, hooks: between two of them it can be
        stopped."""
        self.interrupted = False
        self.cut_in_reply = False
        """The last reply shows the interruption."""
        self.stopped_late = False
        """It was told to stop when it was over: what would have followed it did not."""

    @property
    def ends_after_marks(self) -> bool:
        """It was stopped while tools ran or nothing was awaited: it ends after the last of its marks."""
        return self.interrupted and not self.cut_in_reply


class Action:
    """One thing done to the session from outside: a prompt, a compaction, an injected message."""

    __slots__ = (
        "answers", "asides", "clock", "data", "decisions", "event", "finished", "hooks", "ids", "interrupted",
        "last_notices", "message", "notices", "originals", "parts", "replies", "results", "runs", "sections",
        "starts", "system", "times", "tools", "turnstiles",
    )  # fmt: skip

    def __init__(self, event: str, data: Mapping[str, Json], message: Message | None = None) -> None:
        self.event = event
        self.data = data
        self.message = message
        """Of an injected message."""
        self.clock = 0
        """Records so far, those aside whose number depends on timing."""
        self.last_notices = 0
        """Notices since the clock was moved for the last time."""
        self.asides: dict[int, list[tuple[int, Aside]]] = {}
        """By the state of the clock when they happened, with the number of notices since."""
        self.ids: deque[str] = deque()
        self.times: deque[float] = deque()
        self.runs: deque[RecordedRun] = deque()
        self.replies: deque[RecordedReply] = deque()
        self.hooks: dict[tuple[str, str], deque[JsonObject]] = {}
        self.decisions: dict[str, JsonObject] = {}
        self.answers: deque[JsonObject] = deque()
        self.results: dict[str, JsonObject] = {}
        """Call id -> fields of the `tool_result` record."""
        self.turnstiles: dict[str, Turnstile] = {}
        """Batch id -> the order of what its calls did."""
        self.starts: dict[str, int] = {}
        """Batch id -> how many of its calls were begun."""
        self.originals: dict[str, JsonObject] = {}
        self.parts: dict[str, Json] = {}
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

    def draw(self, message_id: str, moment: datetime | str) -> None:
        """An id and a time were taken for a message."""
        stamp = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
        self.ids.append(message_id)
        self.times.append(stamp.timestamp())

    def had(self, call_id: str, *hooks: str) -> bool:
        """Whether one of these hooks heard of the call."""
        return any((hook, call_id) in self.hooks for hook in hooks)

    def result_of(self, call_id: str) -> ToolResult:
        """What a call gave, before hooks had their say."""
        original = self.originals.get(call_id)
        if original is not None:
            return convert(original, ToolResult)
        failed = self.had(call_id, "PostToolUseFailure")  # all that is known where a recording ends
        recorded = self.results.get(call_id, {"outcome": "error"} if failed else {})
        outcome = recorded.get("outcome", "success")
        fields = {
            "content": recorded.get("content", ""),
            "ok": outcome == "success",
            "denied": outcome == "denied",
            "error": recorded.get("error"),
            "error_code": recorded.get("errorCode"),
            "metadata": recorded.get("metadata", {}),
            "parts": self.parts.get(call_id, ()),
        }
        return convert(fields, ToolResult)

    def take_late_swaps(self, model: str) -> list[Aside]:
        """What was done since this model was asked for a summary; the record of the call comes behind it."""
        waiting = self.asides.get(self.clock, [])
        swaps = {
            at: fields.get("value")
            for at, (_, (_, fields)) in enumerate(waiting)
            if fields.get("change") == "model"
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

    __slots__ = ("actions", "closed", "first_seq", "init", "max_parallel", "start")

    def __init__(self, init: Mapping[str, Json], first_seq: int) -> None:
        self.init = init
        self.first_seq = first_seq
        self.start = Action("session_init", {})
        """What the session learnt before its first action."""
        self.actions: list[Action] = []
        self.max_parallel: int | None = None
        self.closed = False
        """The session was shut down; without that, the record may end anywhere."""
