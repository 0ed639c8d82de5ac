"""A journal taken apart into what was done to the session and what the world answered.

All that a session learns while it carries an action out is kept with the action: replies of the model,
results of tools, outcomes of hooks, decisions, answers, ids and times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from robota.core.errors import StorageError, StructuredOutputError
from robota.core.loop import RETRIES_ARE_OVER, RETRY_TEMPLATE
from robota.core.messages import (
    AssistantMessage,
    Json,
    JsonObject,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import RetryNotice, ServerToolChunk, TextChunk
from robota.core.questions import PermissionQuestion, Question
from robota.core.structured import INSTRUCTION_TEMPLATE
from robota.core.tool_call import NOT_STARTED
from robota.sessions.journal import records
from robota.sessions.journal.conversation import ConversationFold
from robota.sessions.journal.decoding import methods_by_record
from robota.sessions.journal.entries import SessionLogReader
from robota.sessions.journal.pieces import PROGRESS
from robota.sessions.journal.port import Position
from robota.sessions.journal.records import Record
from robota.sessions.log import INJECTED
from robota.sessions.replay import recorded
from robota.sessions.turn_steps import NOT_SUMMARISED

INTERRUPTED = "interrupted"
REDACTED = b"[REDACTED]"
UNCOUNTED = frozenset(
    ("stream", "notice", "model_change", "context", "session_init", "session_resumed", "subagent",
     "background_task_event", "background_job_group_event")
)  # fmt: skip
"""Records that do not move an action's clock: how many there are depends on timing, or on what was done
meanwhile."""
BESIDE = (records.SubagentRecord, records.TaskRecord, records.GroupRecord)
"""What was told of work beside the conversation."""
_ASIDES = (
    records.EntryRecord, records.SessionChange, records.SettingsRecord, records.InboxRecord,
    records.LoadedRecord, *BESIDE,
)  # fmt: skip
"""What may be done to a session at any time, also in the middle of something else."""
_HOOKS_OUTSIDE = frozenset(
    ("ConfigChange", "WorktreeCreate", "WorktreeRemove", "SubagentStart", "SubagentStop", "Elicitation",
     "ElicitationResult")
)  # fmt: skip
"""Hooks that whoever has the session fires, a tool of it or a child, so that nobody does in a replay."""
_HOOKS_OF_CALLS = frozenset(("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"))
_FORM = INSTRUCTION_TEMPLATE.partition("\n")[0]
_LONG = (records.UserRecord, records.RunContinued, records.CompactRecord)
"""Actions that take time, so that other things may happen meanwhile."""
_ACTIONS = (*_LONG, records.HistoryCleared, records.HistoryRewound, records.SessionEnded)


def is_injected(message: Message | None) -> bool:
    """Whether it came from outside while a run was under way."""
    return message is not None and message.metadata.get("origin") == INJECTED


def is_fired_outside(hook: str, call_id: str | None) -> bool:
    """Whether no run and no compaction fires it. Without a call, hooks of calls are those of a shell line."""
    return hook in _HOOKS_OUTSIDE or (not call_id and hook in _HOOKS_OF_CALLS)


def is_aside(record: Record, execution: str) -> bool:
    """Hooks that heard of a call in another run than this `execution` are those of a child."""
    if isinstance(record, records.HookRecord):
        of_child = bool(record.call_id) and not str(record.call_id).startswith(f"{execution}-")
        return of_child or is_fired_outside(record.hook, record.call_id)
    return isinstance(record, _ASIDES)


class Recording:
    """Everything a replay needs from one journal."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.segments: list[recorded.Segment] = []
        self.spent_more = False
        """More was spent than it has: by subagents, which have journals of their own, or for calls that were
        not taken, where the provider did not report what it had used."""
        reader = SessionLogReader(path)
        taker = _Taker(self)
        unchecked = 0
        for record in reader.records():
            if isinstance(record, records.Unknown):
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


def _note_form(action: recorded.Action, reply: recorded.RecordedReply | None, message: Message) -> None:
    """Whether it asks for the form of the answer, or complains that the last reply does not have it."""
    begin, end = RETRY_TEMPLATE.split("{problem}")
    words = message.content
    action.form_was_told |= isinstance(message, UserMessage) and _FORM in words
    of_engine = message.metadata.get("origin") == "engine"
    if reply is not None and of_engine and words.startswith(begin) and words.endswith(end):
        reply.complaint = words[len(begin) : -len(end)]


def _note_failure(reply: recorded.RecordedReply | None, record: records.RunEnded) -> None:
    if reply is None:
        return
    if record.code == StructuredOutputError.code:
        reply.complaint = record.message.partition(RETRIES_ARE_OVER)[2]
    elif record.outcome == "error" and reply.error is not None:
        reply.error["recoverable"] = record.recoverable


class _Taker:
    """Sorts records into actions."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.conversation = ConversationFold()
        self.segment: recorded.Segment | None = None
        self.action = recorded.Action(records.SessionBegan())
        self.run = recorded.RecordedRun()
        self.reply: recorded.RecordedReply | None = None
        self.running = False
        """The agent is at work."""
        self.busy = False
        """The action is not over."""
        self.notices = 0  # since the action's clock was moved
        self.conversation_id = ""
        self.execution = ""
        self.position = Position()
        """Where the journal was before the record at hand."""
        self.system: str | None = None
        self.tools: Sequence[Json] | None = None
        """Both as they were last."""

    def take(self, record: Record) -> None:
        self.recording.spent_more |= isinstance(record, records.SubagentRecord)
        if isinstance(record, records.SessionFacts):
            self.begin_segment(record)
        message = self.conversation.take(record)
        self.position = Position(record.seq, record.ev, isinstance(record, records.SessionEnded))
        aside = is_aside(record, self.execution)
        if (aside or is_injected(message)) and self.busy:
            if not self.add_piece(record):
                self.action.asides.setdefault(self.action.clock, []).append((self.notices, record))
            return
        if aside or isinstance(record, _ACTIONS) or self.is_from_outside(record):
            self.begin(record, message)
        take = _METHODS.get(type(record))
        if take is not None:
            take(self, record)
        if message is not None:
            self.add_message(record, message)
        if record.name not in UNCOUNTED:
            self.action.clock += 1
            self.notices = 0
        self.action.last_notices = self.notices

    def is_from_outside(self, record: Record) -> bool:
        """A message or mark that no run and no compaction made."""
        if isinstance(record, records.MarkRecord):
            return not isinstance(self.action.record, _LONG)
        return isinstance(record, records.MessageRecord | records.ToolMessageRecord) and not self.running

    def begin(self, record: Record, message: Message | None) -> None:
        self.action = recorded.Action(record, message)
        self.busy, self.reply = isinstance(record, _LONG), None
        if self.segment is not None:
            self.segment.actions.append(self.action)
            hooked = "SessionEnd" in (self.segment.facts.hook_events or ())
            self.segment.closed = isinstance(record, records.SessionEnded) and not hooked

    def begin_segment(self, facts: records.SessionFacts) -> None:
        """What the record of a resumed session leaves to its first one is as it was last."""
        if isinstance(facts, records.SessionBegan):
            self.system, self.tools = facts.system_prompt, facts.tool_schemas
        else:
            facts = replace(facts, system_prompt=self.system, tool_schemas=self.tools)
        before = Position(facts.seq - 1, self.position.event, self.position.closed)
        self.segment = recorded.Segment(facts, before, recorded.Action(facts))
        self.recording.segments.append(self.segment)
        self.action = self.segment.start
        self.running, self.busy, self.reply, self.conversation_id = False, False, None, ""

    # --- the run ----------------------------------------------------------------------------------------

    def take_run_start(self, record: records.RunBegan) -> None:
        self.running, self.reply = True, None
        self.run = self.action.run = recorded.RecordedRun()
        if record.conversation_id != self.conversation_id:
            self.conversation_id = record.conversation_id
            self.action.ids.append(record.conversation_id)
        self.execution = record.execution_id
        self.action.ids.append(self.execution)

    def take_run_continued(self, record: records.RunContinued) -> None:
        self.running, self.reply = True, None
        self.run = self.action.run = recorded.RecordedRun()
        self.conversation_id, self.execution = record.conversation_id, record.execution_id

    def take_run_end(self, record: records.RunEnded) -> None:
        self.running, self.busy, self.action.finished = False, False, True
        if record.outcome == INTERRUPTED:
            self.action.interrupted = self.run.interrupted = True
        _note_failure(self.reply, record)

    def take_error(self, record: records.ErrorRecord) -> None:
        self.busy, self.action.finished = False, True

    def take_interrupted(self, record: records.InterruptedRecord) -> None:
        self.action.interrupted = True
        self.busy, self.action.finished = False, True

    # --- the model --------------------------------------------------------------------------------------

    def take_provider_request(self, record: records.RequestRecord) -> None:
        self.reply = recorded.RecordedReply(sums_up=record.extra is not None)
        self.action.replies.append(self.reply)
        if record.extra is not None:
            self.action.draw(record.extra)
        elif record.tools is not None:
            self.tools = self.reply.tools = list(record.tools)

    def take_stream(self, record: records.Stream) -> None:
        for kind, text, at in record.pieces.each(native=False):
            if kind == PROGRESS:
                self.action.told.setdefault(f"{self.batch(record)}-{at}", []).append(text)
        if self.reply is not None and not self.reply.closed:
            self.reply.add_pieces(record.pieces)

    def take_provider_retry(self, record: records.RetryRecord) -> None:
        facts = {name: getattr(record, name) for name in RetryNotice.__struct_fields__}
        self.add_piece(RetryNotice(**facts))

    def take_server_tool(self, record: records.ServerToolRecord) -> None:
        self.add_piece(ServerToolChunk(record.tool_name, record.input))

    def add_piece(self, piece: recorded.RecordedPiece) -> bool:
        """Add to the reply under way; false if there is none."""
        if self.reply is None or self.reply.closed:
            return False
        self.reply.pieces.append(piece)
        return True

    def take_empty_reply(self, record: records.EmptyReply) -> None:
        self.action.draw(record.message)
        self.close_reply(record.message, record.error)

    def close_reply(self, message: Message, error: JsonObject | None) -> None:
        self.run.marks += 1
        if isinstance(message, AssistantMessage) and self.reply is not None and not self.reply.closed:
            self.reply.close(message, error)
            self.recording.spent_more |= self.reply.may_lack_calls

    def add_message(self, record: Record, message: Message) -> None:
        self.action.draw(message)
        self.run.marks += self.running and not isinstance(message, ToolMessage)
        if isinstance(message, SystemMessage) and self.running:
            self.system = self.action.system = message.content
        _note_form(self.action, self.reply, message)
        if isinstance(record, records.MessageRecord) and record.reply:
            self.run.cut_in_reply |= message.state == INTERRUPTED
            self.close_reply(message, record.error)
        if isinstance(record, records.ToolMessageRecord) and record.parts:
            self.action.parts[f"{self.batch(record)}-{record.result}"] = record.parts

    # --- compaction -------------------------------------------------------------------------------------

    def take_summary_call(self, record: records.SummaryRecord) -> None:
        self.note_overflow()
        self.run.marks += self.running
        self.action.draw(UserMessage("", id=record.message_id, timestamp=record.asked_at))
        self.reply = reply = recorded.RecordedReply(sums_up=True)
        self.action.replies.append(reply)
        reply.pieces += self.action.take_late_swaps(record.model)
        reply.pieces += [TextChunk(record.content)] if record.content else []
        reply.close(AssistantMessage("", metadata=record.metadata), record.error)
        self.recording.spent_more |= reply.may_lack_calls

    def take_compaction_marked(self, record: records.MarkRecord) -> None:
        self.note_overflow()
        self.action.sections.append(record.message.content)

    def take_context_compact(self, record: records.CompactedRecord) -> None:
        if record.trigger == "manual":
            self.action.finished = True
            facts = None if self.segment is None else self.segment.facts
            self.busy = facts is not None and "PostCompact" in (facts.hook_events or ())

    def note_overflow(self) -> None:
        """Summarising goes on after a failed call only if the call was too long."""
        if self.reply is not None and self.reply.error is not None:
            self.reply.error["overflow"] = True

    # --- tools ------------------------------------------------------------------------------------------

    def batch(self, record: records.RunRecord) -> str:
        return f"{self.execution}-r{record.round}"

    def take_tool_batch_started(self, record: records.BatchBegan) -> None:
        self.run.marks += 1
        self.action.order_of(self.batch(record))
        if self.segment is not None:
            self.segment.max_parallel = record.batch.max_concurrency

    def take_tool_start(self, record: records.CallBegan) -> None:
        batch = self.batch(record)
        self.action.starts[batch] = self.action.starts.get(batch, 0) + 1
        self.action.order_of(batch).add(f"{batch}-{record.index}", recorded.START)

    def take_tool_result(self, record: records.CallEnded) -> None:
        batch = self.batch(record)
        call_id = f"{batch}-{record.index}"
        self.action.results[call_id] = record
        if record.error_code == NOT_STARTED:
            return  # told when the batch was settled, in no order of its own
        self.run.marks += 1
        self.action.order_of(batch).add(call_id, recorded.RESULT)

    def take_tool_original(self, record: records.OriginalResult) -> None:
        self.action.originals[record.call_id] = record.result

    def take_permission_decided(self, record: records.Decision) -> None:
        batch = self.batch(record)
        call_id = f"{batch}-{record.index}"
        self.action.decisions[call_id] = record.verdict
        self.action.order_of(batch).add(call_id, recorded.DECISION)

    def take_question_asked(self, record: records.QuestionRecord) -> None:
        self.action.questions[record.question.id] = record.question
        self.note_question(record.question, record, recorded.ASKED)

    def take_question_closed(self, record: records.ClosedRecord) -> None:
        self.action.answers[record.id] = record
        self.note_question(self.action.questions.get(record.id), record, recorded.CLOSED)

    def note_question(self, question: Question | None, record: Record, kind: str) -> None:
        call_id = "" if question is None else question.call_id
        if isinstance(question, PermissionQuestion):
            self.action.order_of(call_id.rpartition("-")[0]).add(call_id, kind)
        else:
            self.action.told.setdefault(call_id, []).append(record)

    # --- what else there is -----------------------------------------------------------------------------

    def take_hook_executed(self, record: records.HookRecord) -> None:
        hook, call_id = record.hook, record.call_id or ""
        self.action.hooks.setdefault((hook, call_id), deque()).append(record.outcome)
        if call_id:
            self.action.order_of(call_id.rpartition("-")[0]).add(call_id, hook)
            return
        self.run.marks += self.running
        if hook == "PreCompact":
            self.note_overflow()
        elif hook == "PostCompact" and not self.running:
            self.busy = False

    def take_notice(self, record: records.NoticeRecord) -> None:
        self.action.notices.append(record.message)
        if record.message.startswith(NOT_SUMMARISED):
            self.reply = None  # the summary failed for good: what follows has another reason
        self.notices += 1


_METHODS = methods_by_record(_Taker)
