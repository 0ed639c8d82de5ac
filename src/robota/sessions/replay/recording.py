"""A journal taken apart into what was done to the session and what the world answered.

All that a session learns while it carries an action out is kept with the action: replies of the model,
results of tools, outcomes of hooks, decisions, answers, ids and times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from robota.core.errors import StorageError
from robota.core.messages import AssistantMessage, Json, Message, SystemMessage, ToolMessage
from robota.core.questions import PermissionQuestion, Question
from robota.core.tool_call import NOT_STARTED
from robota.sessions.journal.conversation import ConversationFold
from robota.sessions.journal.entries import SessionLogReader
from robota.sessions.journal.port import Position
from robota.sessions.journal.records import (
    PROGRESS,
    BatchBegan,
    CallBegan,
    CallEnded,
    ClosedRecord,
    CompactedRecord,
    CompactRecord,
    Decision,
    EmptyReply,
    EntryRecord,
    ErrorRecord,
    HistoryCleared,
    HookRecord,
    InterruptedRecord,
    MarkRecord,
    MessageRecord,
    ModelRecord,
    NoticeRecord,
    OriginalResult,
    Pieces,
    QuestionRecord,
    Record,
    RequestRecord,
    RetryRecord,
    RunBegan,
    RunEnded,
    RunRecord,
    ServerToolRecord,
    SessionBegan,
    SessionChange,
    SessionEnded,
    SessionFacts,
    SessionResumed,
    Stream,
    SummaryRecord,
    ToolMessageRecord,
    Unknown,
    UserRecord,
    read_list,
)
from robota.sessions.replay.recorded import (
    ASKED,
    CLOSED,
    DECISION,
    RESULT,
    START,
    Action,
    RecordedReply,
    RecordedRun,
    Segment,
)
from robota.sessions.turn_steps import NOT_SUMMARISED

INTERRUPTED = "interrupted"
REDACTED = b"[REDACTED]"
UNCOUNTED = frozenset(kind.name for kind in (Stream, NoticeRecord, ModelRecord, SessionBegan, SessionResumed))
"""Records that do not move an action's clock: how many there are depends on timing, or on what was done
meanwhile."""
_ASIDES = (EntryRecord, SessionChange)
"""What may be done to a session at any time, also in the middle of something else."""
_ACTIONS = (UserRecord, CompactRecord, HistoryCleared, SessionEnded)
_LONG = (UserRecord, CompactRecord)
"""Actions that take time, so that other things may happen meanwhile."""


class Recording:
    """Everything a replay needs from one journal."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.segments: list[Segment] = []
        reader = SessionLogReader(path)
        taker = _Taker(self)
        unchecked = 0
        for record in reader.records():
            if isinstance(record, Unknown):
                unchecked += not record.seq
            else:
                taker.take(record)
        self.redacted = REDACTED in Path(path).read_bytes()
        """Secrets were taken out of it, so that texts have another length than they had."""
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
        self.conversation = ConversationFold()
        self.segment: Segment | None = None
        self.action = Action(SessionBegan())
        self.run = RecordedRun()
        self.reply: RecordedReply | None = None
        self.running = False
        """The agent is at work."""
        self.busy = False
        """The action is not over."""
        self.notices = 0
        """Since the action's clock was moved."""
        self.conversation_id = ""
        self.execution = ""
        self.position = Position()
        """Where the journal was before the record at hand."""
        self.system: str | None = None
        self.tools: Sequence[Json] | None = None
        """Both as they were last."""

    def take(self, record: Record) -> None:
        if isinstance(record, SessionFacts):
            self.begin_segment(record)
        message = self.conversation.take(record)
        self.position = Position(record.seq, record.ev, isinstance(record, SessionEnded))
        if isinstance(record, _ASIDES) and self.busy:
            self.take_aside(record)
            return
        if isinstance(record, _ACTIONS + _ASIDES) or self.is_from_outside(record):
            self.begin(record, message)
        take = _TAKE.get(type(record))
        if take is not None:
            take(self, record)
        if message is not None:
            self.take_message(record, message)
        if record.name not in UNCOUNTED:
            self.action.clock += 1
            self.notices = 0
        self.action.last_notices = self.notices

    def is_from_outside(self, record: Record) -> bool:
        """A message or mark that no run and no compaction made."""
        if isinstance(record, MarkRecord):
            return not isinstance(self.action.record, _LONG)
        return isinstance(record, MessageRecord | ToolMessageRecord) and not self.running

    def begin(self, record: Record, message: Message | None) -> None:
        self.action = Action(record, message)
        self.busy, self.reply = isinstance(record, _LONG), None
        if self.segment is not None:
            self.segment.actions.append(self.action)
            hooked = "SessionEnd" in (self.segment.facts.hook_events or ())
            self.segment.closed = isinstance(record, SessionEnded) and not hooked

    def begin_segment(self, facts: SessionFacts) -> None:
        """What the record of a resumed session leaves to its first one is as it was last."""
        if isinstance(facts, SessionBegan):
            self.system, self.tools = facts.system_prompt, facts.tool_schemas
        else:
            facts = replace(facts, system_prompt=self.system, tool_schemas=self.tools)
        before = Position(facts.seq - 1, self.position.event, self.position.closed)
        self.segment = Segment(facts, before)
        self.recording.segments.append(self.segment)
        self.action = self.segment.start
        self.running, self.busy, self.reply, self.conversation_id = False, False, None, ""

    def take_aside(self, record: Record) -> None:
        if self.reply is not None and not self.reply.closed:
            self.reply.add_aside(record)
            return
        self.action.asides.setdefault(self.action.clock, []).append((self.notices, record))

    # --- the run ----------------------------------------------------------------------------------------

    def take_run(self, record: RunBegan) -> None:
        self.running, self.reply = True, None
        self.run = RecordedRun()
        self.run.marks = 1
        self.action.run = self.run
        if record.conversation_id != self.conversation_id:
            self.conversation_id = record.conversation_id
            self.action.ids.append(record.conversation_id)
        self.execution = record.execution_id
        self.action.ids.append(self.execution)

    def take_run_end(self, record: RunEnded) -> None:
        self.running, self.busy, self.action.finished = False, False, True
        if record.outcome == INTERRUPTED:
            self.action.interrupted = self.run.interrupted = True
        elif record.outcome == "error" and self.reply is not None and self.reply.error is not None:
            self.reply.error["recoverable"] = record.recoverable

    def take_error(self, record: ErrorRecord) -> None:
        self.busy, self.action.finished = False, True

    def take_interruption(self, record: InterruptedRecord) -> None:
        self.action.interrupted = True
        self.busy, self.action.finished = False, True

    # --- the model --------------------------------------------------------------------------------------

    def take_request(self, record: RequestRecord) -> None:
        self.reply = RecordedReply()
        self.action.replies.append(self.reply)
        if record.extra is not None:
            self.action.draw(record.extra)
        elif record.tools is not None:
            self.tools = self.action.tools = list(record.tools)

    def take_stream(self, record: Stream) -> None:
        self.take_progress(record, record.pieces)
        if self.reply is not None and not self.reply.closed:
            self.reply.add_pieces(record.pieces)

    def take_progress(self, record: Stream, pieces: Pieces) -> None:
        places = iter(read_list(pieces.progress))
        with_text = [kind for kind in pieces.list_kinds() if kind not in "nNq"]
        for kind, text in zip(with_text, pieces.list_texts(), strict=False):
            if kind == PROGRESS:
                call_id = f"{self.batch(record)}-{next(places)}"
                self.action.told.setdefault(call_id, []).append(text)

    def take_retry(self, record: RetryRecord) -> None:
        if self.reply is not None and not self.reply.closed:
            self.reply.add_retry(record)

    def take_server_tool(self, record: ServerToolRecord) -> None:
        if self.reply is not None and not self.reply.closed:
            self.reply.add_server_tool(record)

    def take_empty_reply(self, record: EmptyReply) -> None:
        self.action.draw(record.message)
        self.run.marks += 1
        if self.reply is not None and not self.reply.closed:
            self.reply.close(record.message, record.error)

    def take_message(self, record: Record, message: Message) -> None:
        self.action.draw(message)
        self.run.marks += self.running and not isinstance(message, ToolMessage)
        if isinstance(message, SystemMessage) and self.running:
            self.system = self.action.system = message.content
        if isinstance(record, MessageRecord) and record.reply and isinstance(message, AssistantMessage):
            self.run.marks += 1
            self.run.cut_in_reply |= message.state == INTERRUPTED
            if self.reply is not None and not self.reply.closed:
                self.reply.close(message, record.error)
        if isinstance(record, ToolMessageRecord) and record.parts:
            self.action.parts[f"{self.batch(record)}-{record.result}"] = record.parts

    # --- compaction -------------------------------------------------------------------------------------

    def take_summary(self, record: SummaryRecord) -> None:
        self.note_overflow()
        self.run.marks += self.running
        self.action.draw_as(record.message_id, record.asked_at)
        self.reply = reply = RecordedReply()
        self.action.replies.append(reply)
        for aside in self.action.take_late_swaps(record.model):
            reply.add_aside(aside)
        reply.add_text(record.content)
        reply.close(AssistantMessage("", metadata=record.metadata), record.error)

    def take_mark(self, record: MarkRecord) -> None:
        self.note_overflow()
        self.action.sections.append(record.message.content)

    def take_compaction(self, record: CompactedRecord) -> None:
        if record.trigger == "manual":
            self.action.finished = True
            facts = None if self.segment is None else self.segment.facts
            self.busy = facts is not None and "PostCompact" in (facts.hook_events or ())

    def note_overflow(self) -> None:
        """Summarising goes on after a failed call only if the call was too long."""
        if self.reply is not None and self.reply.error is not None:
            self.reply.error["overflow"] = True

    # --- tools ------------------------------------------------------------------------------------------

    def batch(self, record: RunRecord) -> str:
        return f"{self.execution}-r{record.round}"

    def take_batch(self, record: BatchBegan) -> None:
        self.run.marks += 1
        self.action.turnstile(self.batch(record))
        if self.segment is not None:
            self.segment.max_parallel = record.batch.max_concurrency

    def take_start(self, record: CallBegan) -> None:
        batch = self.batch(record)
        self.action.starts[batch] = self.action.starts.get(batch, 0) + 1
        self.action.turnstile(batch).add(f"{batch}-{record.index}", START)

    def take_result(self, record: CallEnded) -> None:
        batch = self.batch(record)
        call_id = f"{batch}-{record.index}"
        self.action.results[call_id] = record
        if record.error_code == NOT_STARTED:
            return  # told when the batch was settled, in no order of its own
        self.run.marks += 1
        self.action.turnstile(batch).add(call_id, RESULT)

    def take_original(self, record: OriginalResult) -> None:
        self.action.originals[record.call_id] = record.result

    def take_decision(self, record: Decision) -> None:
        batch = self.batch(record)
        call_id = f"{batch}-{record.index}"
        self.action.decisions[call_id] = record.verdict
        self.action.turnstile(batch).add(call_id, DECISION)

    def take_question(self, record: QuestionRecord) -> None:
        self.action.questions[record.question.id] = record.question
        self._note_question(record.question, record, ASKED)

    def take_closed(self, record: ClosedRecord) -> None:
        self.action.answers[record.id] = record
        question = self.action.questions.get(record.id)
        if question is not None:
            self._note_question(question, record, CLOSED)

    def _note_question(self, question: Question, record: QuestionRecord | ClosedRecord, kind: str) -> None:
        call_id = question.call_id
        if isinstance(question, PermissionQuestion):
            self.action.turnstile(call_id.rpartition("-")[0]).add(call_id, kind)
        else:
            self.action.told.setdefault(call_id, []).append(record)

    def take_hook(self, record: HookRecord) -> None:
        hook, call_id = record.hook, record.call_id or ""
        self.action.hooks.setdefault((hook, call_id), deque()).append(record.outcome)
        if call_id:
            self.action.turnstile(call_id.rpartition("-")[0]).add(call_id, hook)
            return
        self.run.marks += self.running
        if hook == "PreCompact":
            self.note_overflow()
        elif hook == "PostCompact" and not self.running:
            self.busy = False

    def take_notice(self, record: NoticeRecord) -> None:
        self.action.notices.append(record.message)
        if record.message.startswith(NOT_SUMMARISED):
            self.reply = None  # the summary failed for good: what follows has another reason
        self.notices += 1


_Take: TypeAlias = Callable[[_Taker, Any], None]
_TAKE: dict[type[Record], _Take] = {
    RunBegan: _Taker.take_run,
    RunEnded: _Taker.take_run_end,
    ErrorRecord: _Taker.take_error,
    InterruptedRecord: _Taker.take_interruption,
    RequestRecord: _Taker.take_request,
    Stream: _Taker.take_stream,
    RetryRecord: _Taker.take_retry,
    ServerToolRecord: _Taker.take_server_tool,
    EmptyReply: _Taker.take_empty_reply,
    SummaryRecord: _Taker.take_summary,
    MarkRecord: _Taker.take_mark,
    CompactedRecord: _Taker.take_compaction,
    BatchBegan: _Taker.take_batch,
    CallBegan: _Taker.take_start,
    CallEnded: _Taker.take_result,
    OriginalResult: _Taker.take_original,
    Decision: _Taker.take_decision,
    QuestionRecord: _Taker.take_question,
    ClosedRecord: _Taker.take_closed,
    HookRecord: _Taker.take_hook,
    NoticeRecord: _Taker.take_notice,
}
