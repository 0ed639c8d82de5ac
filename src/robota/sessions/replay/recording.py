"""A journal taken apart into what was done to the session and what the world answered.

An *action* is something done to the session from outside: a prompt, a compaction, an injected message. All
that a session learns while it carries an action out is kept with it: replies of the model, results of tools,
outcomes of hooks, decisions, answers, ids and times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime

from robota.core.messages import Json, JsonObject, Message
from robota.sessions.conversation_builder import CONVERSATION_EVENTS, ConversationBuilder
from robota.sessions.journal_reader import JournalRecord
from robota.sessions.replay.recorded_reply import RecordedReply
from robota.sessions.session_log import SessionLogReader

_ACTIONS = frozenset(
    ("user", "compact", "history_cleared", "history_entry", "session_change", "session_shutdown")
)

_LONG = frozenset(("user", "compact"))
"""Actions that take time, so that a crash may fall into them."""


class Action:
    """One thing done to the session, with the answers of the world while it was carried out."""

    __slots__ = (
        "answers", "batches", "data", "decisions", "event", "finished", "hooks", "ids", "interrupted",
        "message", "originals", "parts", "replies", "results", "times",
    )  # fmt: skip

    def __init__(self, event: str, data: Mapping[str, Json], message: Message | None = None) -> None:
        self.event = event
        self.data = data
        self.message = message
        """Of an injected message."""
        self.ids: deque[str] = deque()
        self.times: deque[float] = deque()
        self.replies: deque[RecordedReply] = deque()
        self.hooks: dict[tuple[str, str], deque[JsonObject]] = {}
        self.decisions: dict[str, JsonObject] = {}
        self.answers: deque[Json] = deque()
        self.results: dict[str, JsonObject] = {}
        """Call id -> fields of the `tool_result` record."""
        self.batches: dict[str, list[str]] = {}
        """Batch id -> its calls in the order in which they ended."""
        self.originals: dict[str, JsonObject] = {}
        self.parts: dict[str, Json] = {}
        self.interrupted = False
        self.finished = False
        """Its end is on record, too."""

    def draw(self, message_id: str, moment: datetime | str) -> None:
        """An id and a time were taken for a message."""
        stamp = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
        self.ids.append(message_id)
        self.times.append(stamp.timestamp())


class Segment:
    """What one process did to the session: from its beginning, or from where it was resumed."""

    __slots__ = ("actions", "crashed", "first_seq", "init", "start")

    def __init__(self, init: Mapping[str, Json], first_seq: int) -> None:
        self.init = init
        self.first_seq = first_seq
        self.start = Action("session_init", {})
        """What the session learnt before its first action."""
        self.actions: list[Action] = []
        self.crashed = False
        """The process ended in the middle of an action."""


class Recording:
    """Everything a replay needs from one journal."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.segments: list[Segment] = []
        reader = SessionLogReader(path)
        taker = _Taker(self)
        for record, fields in reader.records():
            taker.take(record, fields)
        taker.end_segment()
        self.problems = tuple(reader.problems)


class _Taker:
    """Sorts records into actions."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.builder = ConversationBuilder()
        self.segment: Segment | None = None
        self.action = Action("", {})
        self.reply: RecordedReply | None = None
        self.running = False
        self.conversation_id = ""
        self.batch = ""

    def take(self, record: JournalRecord, fields: Mapping[str, Json]) -> None:
        event = record.event
        if event in ("session_init", "session_resumed"):
            self.begin_segment(fields, record.seq)
        message = self.builder.take(record, fields) if event in CONVERSATION_EVENTS else None
        if event in _ACTIONS or (event in ("message", "compaction_marked") and self.is_from_outside(fields)):
            self.begin(event, fields, message)
        handler = _HANDLERS.get(event)
        if handler is not None:
            handler(self, fields)
        if message is not None:
            self.take_message(fields, message)

    def is_from_outside(self, fields: Mapping[str, Json]) -> bool:
        """A message or mark that no run and no compaction made."""
        if "epoch" in fields:
            return not self.running and self.action.event not in ("user", "compact")
        return not self.running

    def begin(self, event: str, fields: Mapping[str, Json], message: Message | None) -> None:
        self.action = Action(event, fields, message)
        if self.segment is not None:
            self.segment.actions.append(self.action)

    def begin_segment(self, fields: Mapping[str, Json], seq: int) -> None:
        self.end_segment()
        known = self.recording.segments[-1].init if self.recording.segments else {}
        self.segment = Segment({**known, **fields}, seq)
        self.recording.segments.append(self.segment)
        self.action = self.segment.start
        self.running, self.reply, self.conversation_id = False, None, ""

    def end_segment(self) -> None:
        if self.segment is not None and self.segment.actions:
            last = self.segment.actions[-1]
            self.segment.crashed = self.running or not (last.finished or last.event not in _LONG)

    # --- records ------------------------------------------------------------------------------------------

    def take_run(self, fields: Mapping[str, Json]) -> None:
        self.running = True
        conversation = str(fields["conversationId"])
        if conversation != self.conversation_id:
            self.conversation_id = conversation
            self.action.ids.append(conversation)
        execution = str(fields["executionId"])
        self.action.ids.append(execution)
        self.batch = execution

    def take_compaction(self, fields: Mapping[str, Json]) -> None:
        if fields.get("trigger") == "manual":
            self.action.finished = True

    def take_error(self, fields: Mapping[str, Json]) -> None:
        self.action.finished = True

    def take_run_end(self, fields: Mapping[str, Json]) -> None:
        self.running = False
        self.action.finished = True
        if fields.get("outcome") == "interrupted":
            self.action.interrupted = True
            if self.reply is not None and not self.reply.closed:
                self.reply.interrupted = True
        elif fields.get("outcome") == "error" and self.reply is not None and self.reply.error is not None:
            self.reply.error["recoverable"] = bool(fields.get("recoverable"))

    def take_interruption(self, fields: Mapping[str, Json]) -> None:
        self.action.interrupted = self.action.finished = True

    def take_request(self, fields: Mapping[str, Json]) -> None:
        self.reply = RecordedReply()
        self.action.replies.append(self.reply)
        extra = fields.get("extra")
        if extra is not None:
            self.action.draw(extra["id"], extra["timestamp"])

    def take_stream(self, fields: Mapping[str, Json]) -> None:
        if self.reply is not None:
            self.reply.add_pieces(fields)

    def take_retry(self, fields: Mapping[str, Json]) -> None:
        if self.reply is not None:
            self.reply.add_retry(fields)

    def take_server_tool(self, fields: Mapping[str, Json]) -> None:
        if self.reply is not None:
            self.reply.add_server_tool(fields)

    def take_empty_reply(self, fields: Mapping[str, Json]) -> None:
        said = fields["message"]
        self.action.draw(said["id"], said["timestamp"])
        if self.reply is not None:
            self.reply.close(said, fields.get("error"))

    def take_message(self, fields: Mapping[str, Json], message: Message) -> None:
        self.action.draw(message.id, message.timestamp)
        if fields.get("reply") and self.reply is not None:
            self.reply.close_with(message, fields.get("error"))
        if "result" in fields and fields["message"].get("parts"):
            call_id = f"{self.batch}-r{fields['round']}-{fields['result']}"
            self.action.parts[call_id] = fields["message"]["parts"]

    def take_summary(self, fields: Mapping[str, Json]) -> None:
        self.action.draw(fields["id"], fields["at"])
        reply = RecordedReply()
        reply.close(
            {"content": fields.get("content", ""), "metadata": fields.get("metadata", {})},
            fields.get("error"),
        )
        reply.add_text(fields.get("content", ""))
        self.action.replies.append(reply)

    def take_result(self, fields: Mapping[str, Json]) -> None:
        batch = f"{self.batch}-r{fields['round']}"
        call_id = f"{batch}-{fields['index']}"
        self.action.results[call_id] = dict(fields)
        self.action.batches.setdefault(batch, []).append(call_id)

    def take_original(self, fields: Mapping[str, Json]) -> None:
        self.action.originals[fields["callId"]] = fields["result"]

    def take_hook(self, fields: Mapping[str, Json]) -> None:
        key = (str(fields["hook"]), str(fields.get("callId") or ""))
        self.action.hooks.setdefault(key, deque()).append(fields["outcome"])

    def take_decision(self, fields: Mapping[str, Json]) -> None:
        self.action.decisions[f"{self.batch}-r{fields['round']}-{fields['index']}"] = dict(fields)

    def take_answer(self, fields: Mapping[str, Json]) -> None:
        self.action.answers.append(fields.get("answer"))


_HANDLERS = {
    "context_compact": _Taker.take_compaction,
    "error": _Taker.take_error,
    "run_start": _Taker.take_run,
    "run_end": _Taker.take_run_end,
    "interrupted": _Taker.take_interruption,
    "provider_request": _Taker.take_request,
    "stream": _Taker.take_stream,
    "provider_retry": _Taker.take_retry,
    "server_tool": _Taker.take_server_tool,
    "empty_reply": _Taker.take_empty_reply,
    "summary_call": _Taker.take_summary,
    "tool_result": _Taker.take_result,
    "tool_original": _Taker.take_original,
    "hook_executed": _Taker.take_hook,
    "permission_decided": _Taker.take_decision,
    "user_answered": _Taker.take_answer,
}
