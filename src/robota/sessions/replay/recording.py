"""A journal taken apart into what was done to the session and what the world answered.

All that a session learns while it carries an action out is kept with the action: replies of the model,
results of tools, outcomes of hooks, decisions, answers, ids and times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias

from robota.core.errors import StorageError
from robota.core.messages import AssistantMessage, Json, JsonObject, Message, SystemMessage, ToolMessage
from robota.core.tool_call import NOT_STARTED
from robota.sessions.journal.reader import JournalRecord
from robota.sessions.log.conversation_builder import CONVERSATION_EVENTS, ConversationBuilder, read_message
from robota.sessions.log.session_log import UNREADABLE, SessionLogReader
from robota.sessions.replay.action import Action, RecordedRun, Segment
from robota.sessions.replay.recorded_reply import RecordedReply
from robota.sessions.replay.turnstile import DECISION, RESULT, START
from robota.sessions.turn_steps import NOT_SUMMARISED

INTERRUPTED = "interrupted"
NOT_REPEATED = ("systemPrompt", "toolSchemas")
"""What the record of a resumed session leaves to its first one; all else that is missing there is off."""
UNCOUNTED = frozenset(("stream", "notice", "session_init", "session_resumed"))
"""Records that do not move an action's clock: how many there are depends on timing."""
ASIDES = frozenset(("history_entry", "session_change"))
"""What may be done to a session at any time, also in the middle of something else."""
_ACTIONS = frozenset(("user", "compact", "history_cleared", "session_shutdown"))
_LONG = frozenset(("user", "compact"))
"""Actions that take time, so that other things may happen meanwhile."""


class Recording:
    """Everything a replay needs from one journal."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.segments: list[Segment] = []
        self.redacted = False
        """Secrets were taken out of it, so that texts have another length than they had."""
        reader = SessionLogReader(path)
        taker = _Taker(self)
        unchecked = 0
        for record, fields in reader.records():
            if not record.checked:
                unchecked += 1
                continue
            self.redacted = self.redacted or b"[REDACTED]" in record.line
            try:
                taker.take(record, fields)
            except UNREADABLE as error:
                reader.problems.append(f"Record {record.seq} ({record.event}) cannot be used: {error}.")
        if unchecked:
            reader.problems.append(
                f"{unchecked} records are not of our making and say too little to be replayed."
            )
        self.problems = tuple(reader.problems)
        if not self.segments:
            reasons = " ".join(self.problems) or "It is empty."
            raise StorageError(f"{path} holds no session that can be replayed. {reasons}")


class _Taker:
    """Sorts records into actions."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.builder = ConversationBuilder()
        self.segment: Segment | None = None
        self.action = Action("", {})
        self.run = RecordedRun()
        self.reply: RecordedReply | None = None
        self.running = False
        """The agent is at work."""
        self.busy = False
        """The action is not over."""
        self.notices = 0
        """Since the action's clock was moved."""
        self.awaits_stop = False
        """A run is over, and the hooks that hear of it have not."""
        self.conversation_id = ""
        self.execution = ""
        self.latest: JsonObject = {}
        """System message and tools as they were last."""

    def take(self, record: JournalRecord, fields: Mapping[str, Json]) -> None:
        event = record.event
        if event in ("session_init", "session_resumed"):
            self.begin_segment(fields, record.seq)
        message = self.builder.take(record, fields) if event in CONVERSATION_EVENTS else None
        if event in ASIDES and self.busy:
            self.take_aside(event, fields)
            return
        if event in _ACTIONS or event in ASIDES or self.is_from_outside(event, fields):
            self.begin(event, fields, message)
        handler = _HANDLERS.get(event)
        if handler is not None:
            handler(self, fields)
        if message is not None:
            self.take_message(fields, message)
        if event not in UNCOUNTED:
            self.action.clock += 1
            self.notices = 0
        self.action.last_notices = self.notices

    def is_from_outside(self, event: str, fields: Mapping[str, Json]) -> bool:
        """A message or mark that no run and no compaction made."""
        if event == "compaction_marked":
            return self.action.event not in _LONG
        return event == "message" and not self.running

    def begin(self, event: str, fields: Mapping[str, Json], message: Message | None) -> None:
        self.run.stopped_late = self.awaits_stop and not self.action.interrupted
        self.awaits_stop = False
        self.action = Action(event, fields, message)
        self.busy, self.reply = event in _LONG, None
        if self.segment is not None:
            self.segment.actions.append(self.action)
            hooked = "SessionEnd" in (self.segment.init.get("hookEvents") or ())
            self.segment.closed = event == "session_shutdown" and not hooked

    def begin_segment(self, fields: Mapping[str, Json], seq: int) -> None:
        known = self.recording.segments[-1].init if self.recording.segments else {}
        kept = {name: known[name] for name in NOT_REPEATED if name in known}
        self.segment = Segment({**kept, **self.latest, **fields}, seq)
        self.recording.segments.append(self.segment)
        self.action = self.segment.start
        self.running, self.busy, self.reply, self.conversation_id = False, False, None, ""

    def take_aside(self, event: str, fields: Mapping[str, Json]) -> None:
        if self.reply is not None and not self.reply.closed:
            self.reply.add_aside(event, fields)
            return
        done = self.action.asides.setdefault(self.action.clock, [])
        done.append((self.notices, (event, fields)))

    def end(self, *hooks: str) -> None:
        """The action is over, unless hooks follow."""
        self.action.finished = True
        configured = () if self.segment is None else self.segment.init.get("hookEvents") or ()
        self.busy = any(hook in configured for hook in hooks)

    # --- the run ----------------------------------------------------------------------------------------

    def take_run(self, fields: Mapping[str, Json]) -> None:
        self.running, self.busy, self.awaits_stop, self.reply = True, True, False, None
        self.action.finished = False
        self.run = RecordedRun()
        self.run.marks = 1
        self.action.runs.append(self.run)
        conversation = str(fields["conversationId"])
        if conversation != self.conversation_id:
            self.conversation_id = conversation
            self.action.ids.append(conversation)
        self.execution = str(fields["executionId"])
        self.action.ids.append(self.execution)

    def take_run_end(self, fields: Mapping[str, Json]) -> None:
        self.running = False
        outcome = fields.get("outcome")
        self.end("Stop" if outcome == "complete" else "StopFailure" if outcome == "error" else "")
        self.awaits_stop = self.busy and outcome == "complete"
        if outcome == "error" or fields.get("stopReason") == "context_overflow":
            self.action.finished, self.busy = False, True  # it may go on with a summary
        if outcome == INTERRUPTED:
            self.action.interrupted = self.run.interrupted = True
        elif outcome == "error" and self.reply is not None and self.reply.error is not None:
            self.reply.error["recoverable"] = bool(fields.get("recoverable"))

    def take_error(self, fields: Mapping[str, Json]) -> None:
        self.end("StopFailure" if self.action.event == "user" else "")

    def take_interruption(self, fields: Mapping[str, Json]) -> None:
        self.action.interrupted = True
        self.end()

    # --- the model --------------------------------------------------------------------------------------

    def take_request(self, fields: Mapping[str, Json]) -> None:
        self.reply = RecordedReply()
        self.action.replies.append(self.reply)
        extra = fields.get("extra")
        if extra is not None:
            self.action.draw(extra["id"], extra["timestamp"])
        elif fields.get("tools") is not None:
            self.latest["toolSchemas"] = self.action.tools = list(fields["tools"])

    def take_stream(self, fields: Mapping[str, Json]) -> None:
        if self.reply is not None and not self.reply.closed:
            self.reply.add_pieces(fields)

    def take_retry(self, fields: Mapping[str, Json]) -> None:
        if self.reply is not None and not self.reply.closed:
            self.reply.add_retry(fields)

    def take_server_tool(self, fields: Mapping[str, Json]) -> None:
        if self.reply is not None and not self.reply.closed:
            self.reply.add_server_tool(fields)

    def take_empty_reply(self, fields: Mapping[str, Json]) -> None:
        said = read_message(fields["message"])
        assert isinstance(said, AssistantMessage)
        self.action.draw(said.id, said.timestamp)
        self.run.marks += 1
        if self.reply is not None and not self.reply.closed:
            self.reply.close(said, fields.get("error"))

    def take_message(self, fields: Mapping[str, Json], message: Message) -> None:
        self.action.draw(message.id, message.timestamp)
        self.run.marks += self.running and not isinstance(message, ToolMessage)
        if isinstance(message, SystemMessage) and self.running:
            self.latest["systemPrompt"] = self.action.system = message.content
        if fields.get("reply") and isinstance(message, AssistantMessage):
            self.run.marks += 1
            self.run.cut_in_reply |= message.state == INTERRUPTED
            if self.reply is not None and not self.reply.closed:
                self.reply.close(message, fields.get("error"))
        if "result" in fields and fields["message"].get("parts"):
            call_id = f"{self.batch(fields)}-{fields['result']}"
            self.action.parts[call_id] = fields["message"]["parts"]

    # --- compaction -------------------------------------------------------------------------------------

    def take_summary(self, fields: Mapping[str, Json]) -> None:
        self.note_overflow()
        self.run.marks += self.running
        self.busy, self.awaits_stop, self.action.finished = True, False, False
        self.action.draw(fields["messageId"], fields["askedAt"])
        self.reply = reply = RecordedReply()
        self.action.replies.append(reply)
        for event, done in self.action.take_late_swaps(str(fields["model"])):
            reply.add_aside(event, done)
        reply.add_text(fields.get("content", ""))
        reply.close(AssistantMessage("", metadata=fields.get("metadata", {})), fields.get("error"))

    def take_mark(self, fields: Mapping[str, Json]) -> None:
        self.note_overflow()
        self.action.sections.append(str(fields["message"].get("content", "")))

    def take_compaction(self, fields: Mapping[str, Json]) -> None:
        if fields.get("trigger") == "manual":
            self.end("PostCompact")

    def note_overflow(self) -> None:
        """Summarising goes on after a failed call only if the call was too long."""
        if self.reply is not None and self.reply.error is not None:
            self.reply.error["overflow"] = True

    # --- tools ------------------------------------------------------------------------------------------

    def batch(self, fields: Mapping[str, Json]) -> str:
        return f"{self.execution}-r{fields['round']}"

    def take_batch(self, fields: Mapping[str, Json]) -> None:
        self.run.marks += 1
        self.action.turnstile(self.batch(fields))
        if self.segment is not None:
            self.segment.max_parallel = fields.get("maxConcurrency")

    def take_start(self, fields: Mapping[str, Json]) -> None:
        batch = self.batch(fields)
        self.action.starts[batch] = self.action.starts.get(batch, 0) + 1
        self.action.turnstile(batch).add(f"{batch}-{fields['index']}", START)

    def take_result(self, fields: Mapping[str, Json]) -> None:
        batch = self.batch(fields)
        call_id = f"{batch}-{fields['index']}"
        self.action.results[call_id] = dict(fields)
        if fields.get("errorCode") == NOT_STARTED:
            return  # told when the batch was settled, in no order of its own
        self.run.marks += 1
        self.action.turnstile(batch).add(call_id, RESULT)

    def take_original(self, fields: Mapping[str, Json]) -> None:
        self.action.originals[fields["callId"]] = fields["result"]

    def take_decision(self, fields: Mapping[str, Json]) -> None:
        batch = self.batch(fields)
        call_id = f"{batch}-{fields['index']}"
        self.action.decisions[call_id] = dict(fields)
        self.action.turnstile(batch).add(call_id, DECISION)

    def take_answer(self, fields: Mapping[str, Json]) -> None:
        self.action.answers.append(dict(fields))

    # --- what else there is -----------------------------------------------------------------------------

    def take_hook(self, fields: Mapping[str, Json]) -> None:
        hook, call_id = str(fields["hook"]), str(fields.get("callId") or "")
        self.action.hooks.setdefault((hook, call_id), deque()).append(fields["outcome"])
        if call_id:
            self.action.turnstile(call_id.rpartition("-")[0]).add(call_id, hook)
            return
        self.run.marks += self.running
        if hook in ("Stop", "StopFailure", "PostCompact") and not self.running:
            self.busy = hook == "PostCompact" and self.action.event == "user"
            self.awaits_stop = False
            if hook == "Stop" and fields["outcome"].get("blocked"):
                self.action.finished = False  # the model is sent on
        elif hook == "PreCompact":
            self.note_overflow()

    def take_notice(self, fields: Mapping[str, Json]) -> None:
        words = str(fields.get("message"))
        self.action.notices.append(words)
        if words.startswith(NOT_SUMMARISED):  # the summary failed for good: what follows has another reason
            self.reply = None
        self.notices += 1


_Handler: TypeAlias = Callable[[_Taker, Mapping[str, Json]], None]
_HANDLERS: dict[str, _Handler] = {
    "run_start": _Taker.take_run,
    "run_end": _Taker.take_run_end,
    "error": _Taker.take_error,
    "interrupted": _Taker.take_interruption,
    "provider_request": _Taker.take_request,
    "stream": _Taker.take_stream,
    "provider_retry": _Taker.take_retry,
    "server_tool": _Taker.take_server_tool,
    "empty_reply": _Taker.take_empty_reply,
    "summary_call": _Taker.take_summary,
    "compaction_marked": _Taker.take_mark,
    "context_compact": _Taker.take_compaction,
    "tool_batch_started": _Taker.take_batch,
    "tool_start": _Taker.take_start,
    "tool_result": _Taker.take_result,
    "tool_original": _Taker.take_original,
    "permission_decided": _Taker.take_decision,
    "user_answered": _Taker.take_answer,
    "hook_executed": _Taker.take_hook,
    "notice": _Taker.take_notice,
}
