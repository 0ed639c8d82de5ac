"""What a journal holds: one type for each kind of record, for those who write them and those who read them.

A record states a fact once; the events that tell of it follow from the records before it. Every record says
with `ev` which turn event was the last one when it was written: a record with 57 behind one with 40 tells of
the events 41 to 57. What has its ordinary value is not written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import ClassVar, Literal, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from robota.core.background import GroupChange, GroupSnapshot, TaskChange, TaskSnapshot
from robota.core.events import ToolOutcome
from robota.core.messages import (
    AssistantMessage,
    HistoryEntry,
    Json,
    JsonObject,
    Part,
    Prompt,
    StopReason,
    SystemMessage,
    TokenUsage,
    ToolMessage,
    UserMessage,
)
from robota.core.questions import AnyQuestion
from robota.core.tool import ToolResult
from robota.sessions.journal.pieces import Pieces

_AnyMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class Batch(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """How the calls of an answer are run."""

    mode: Literal["parallel", "sequential"] = "parallel"
    max_concurrency: int | None = None


class Verdict(Struct, kw_only=True, omit_defaults=True):
    """What was decided about a call, by whom, and on what grounds."""

    decision: str = "allow"
    by: str = ""
    judged: Sequence[JsonObject] = ()
    answer: JsonObject | None = None
    rules: Sequence[str] = ()

    def texts(self) -> list[str]:
        """What rules, paths and commands are quoted in it, without the answer."""
        quoted = [value for judged in self.judged for value in judged.values() if isinstance(value, str)]
        return [*self.rules, *quoted]


class Record(Struct, kw_only=True, omit_defaults=True, rename="camel", tag_field="event"):
    """What all have in common."""

    ev: int = 0
    seq: int = 0
    """Its place in the journal; 0 in logs of the TypeScript original."""
    timestamp: str = ""
    session_id: str = ""

    name: ClassVar[str] = ""
    """The tag on the disk; filled in at the end of this module."""


class RunRecord(Record, kw_only=True):
    """Something that happened in a run."""

    run: int = 0
    round: int = 0


# --- the session --------------------------------------------------------------------------------------


class SessionFacts(Record, kw_only=True):
    """What a session is made of."""

    system_prompt: str | None = None
    system_prompt_length: int = 0
    provider: str = ""
    model: str = ""
    cwd: str = ""
    tool_schemas: Sequence[Json] | None = None
    session_name: str | None = field(default=None, name="name")
    permission_mode: str = "default"
    permissions: JsonObject = field(default_factory=dict)
    context_window: int | None = None
    auto_compact_threshold: float | bool = False
    compact_instructions: str | None = None
    budget: JsonObject | None = None
    """Not on record where others spend out of the same ledger."""
    max_turns: int = 0
    options: Json = None
    web_tools: JsonObject = field(default_factory=dict)
    self_checking: Sequence[str] = ()
    hidden_tools: Sequence[Json] | None = None
    """Tools that a rule denies as a whole: no request offers them, and a model may call them all the same."""
    hook_events: Sequence[str] | None = None
    can_ask: bool = False
    agent_id: str | None = None


class SessionBegan(SessionFacts, kw_only=True, tag="session_init"):
    """The first record of a journal."""


class SessionResumed(SessionFacts, kw_only=True, tag="session_resumed"):
    """Another process goes on; without system prompt and tools, which are as they were."""


KeptField: TypeAlias = Literal["memoryEvents", "usedMemoryReferences", "contextReferences", "language"]
"""Fields of a session's record that the layers above put there; those about tasks follow from events."""
KEPT_FIELDS: tuple[KeptField, ...] = get_args(KeptField)


class SessionChange(Record, kw_only=True, tag="session_change"):
    change: str
    value: Json = None
    provider: str | None = None
    """Set when the model is one of another provider."""
    capabilities: Json = None


class SessionEnded(Record, kw_only=True, tag="session_shutdown"):
    reason: str = ""


# --- what was done to it --------------------------------------------------------------------------------


class UserRecord(Record, kw_only=True, tag="user"):
    """A prompt was accepted."""

    input: str = ""
    """What the user typed."""
    prompt: str | None = None
    """What was made of it, if that is something else."""
    parts: Json = None
    display: str | None = None
    """What a front end shows in its place."""
    submit_id: str = ""
    wanted: JsonObject | None = None
    """The schema that the answer is to fit."""
    max_rounds: int | None = None
    settings: JsonObject | None = None
    """Both only when they are this prompt's own."""

    def read_prompt(self) -> Prompt:
        if self.parts is not None:
            return msgspec.convert(self.parts, tuple[Part, ...])
        return self.input if self.prompt is None else self.prompt


class InboxRecord(Record, kw_only=True, tag="inbox"):
    """Something that the model should be told as soon as it can be."""

    id: str
    origin: str = "steering"
    prompt: str = ""
    parts: Json = None
    keep: bool = False
    """Its words stand behind every summary."""

    def read_prompt(self) -> Prompt:
        return self.prompt if self.parts is None else msgspec.convert(self.parts, tuple[Part, ...])


class CompactRecord(Record, kw_only=True, tag="compact"):
    """A compaction was asked for."""

    instructions: str | None = None


class ErrorRecord(Record, kw_only=True, tag="error"):
    """What was asked for failed outside a run."""

    message: str = ""
    code: str = ""


class InterruptedRecord(Record, kw_only=True, tag="interrupted"):
    """What was asked for was stopped outside a run."""


class HistoryCleared(Record, kw_only=True, tag="history_cleared"):
    pass


class HistoryRewound(Record, kw_only=True, tag="history_rewound"):
    """The conversation goes on from its first messages; what followed is set aside."""

    messages: int
    """How many those are, or how many there are again."""
    back: bool = False
    """What the last rewind set aside is there again."""


class EntryRecord(Record, kw_only=True, tag="history_entry"):
    entry: HistoryEntry


# --- the run ----------------------------------------------------------------------------------------------


class RunBegan(RunRecord, kw_only=True, tag="run_start"):
    execution_id: str
    conversation_id: str = ""
    agent_name: str = ""
    prompt: str | None = None
    """Its words, if they are not those of the `user` record before it."""
    max_rounds: int = 0


class RunContinued(RunRecord, kw_only=True, tag="run_continued"):
    """Another process goes on with a run that a crash has cut."""

    execution_id: str
    conversation_id: str = ""
    looking: tuple[str, ...] = ()
    """The tools that only look, whose calls were made again."""
    wanted: JsonObject | None = None
    settings: JsonObject | None = None
    """As those of a prompt."""


class PreRunRecord(RunRecord, kw_only=True, tag="pre_run"):
    """The state before the model is asked for the first time."""

    provider: str = ""
    model: str = ""
    context: str | None = None
    """What hooks put in front of the prompt."""
    history_length: int = 0
    history_chars: int = 0
    history_est_tokens: int = 0
    max_tokens: int = 0
    used_tokens: int | None = None
    """The estimate with the prompt, if it was told."""
    web_tools: JsonObject | None = None


class RequestRecord(RunRecord, kw_only=True, tag="provider_request"):
    provider: str | None = None
    model: str | None = None
    """Both only when they are others than before."""
    history: tuple[int, str] = (0, "")
    """Length and running checksum of the ids of what was sent."""
    extra: UserMessage | None = None
    """A last word that belongs to this request alone."""
    tools: Sequence[Json] | None = None
    options: Json = None


class Stream(RunRecord, kw_only=True, tag="stream"):
    pieces: Pieces


class MessageRecord(RunRecord, kw_only=True, tag="message"):
    """A message of the conversation."""

    index: int = 0
    message: _AnyMessage
    reply: bool = False
    """The model wrote it."""
    error: JsonObject | None = None
    """Why the call failed that it is the reply of."""
    rest: Pieces | None = None
    """Pieces of the reply that were not written before."""


class ToolMessageRecord(RunRecord, kw_only=True, tag="tool_message"):
    """The message of a recorded result, without what the result says already."""

    index: int = 0
    result: int = 0
    """Index of the call."""
    id: str
    sent_at: datetime
    tool_name: str | None = None
    content: str | None = None
    metadata: JsonObject | None = None
    parts: tuple[Part, ...] = ()


class EmptyReply(RunRecord, kw_only=True, tag="empty_reply"):
    """A reply without content, which is not kept in the conversation."""

    message: AssistantMessage
    error: JsonObject | None = None
    rest: Pieces | None = None
    """As in `MessageRecord`."""


class RunEnded(RunRecord, kw_only=True, tag="run_end"):
    outcome: str = "complete"
    """complete, interrupted or error: the name of the closing event."""
    text: str | None = None
    """The answer, if it is not the last message."""
    rounds: int = 0
    stop_reason: StopReason = "end_turn"
    usage: TokenUsage | None = None
    message: str = ""
    code: str = ""
    recoverable: bool = False


# --- tools ------------------------------------------------------------------------------------------------


class BatchBegan(RunRecord, kw_only=True, tag="tool_batch_started"):
    batch: Batch


class Decision(RunRecord, kw_only=True, tag="permission_decided"):
    index: int = 0
    verdict: Verdict


class CallBegan(RunRecord, kw_only=True, tag="tool_start"):
    index: int = 0
    parameters: Json | UnsetType = UNSET
    """The arguments, if they are not those that the model wrote."""
    batch: Batch | None = None
    """In the first call of a batch."""
    verdict: Verdict | None = None
    """What was decided at once."""


class CallEnded(RunRecord, kw_only=True, tag="tool_result"):
    index: int = 0
    tool_name: str = ""
    outcome: ToolOutcome = "success"
    content: str = ""
    error: str | None = None
    error_code: str | None = None
    metadata: JsonObject = field(default_factory=dict)
    duration: float = 0.0
    parameters: Json | UnsetType = UNSET
    batch: Batch | None = None
    """Both as in `CallBegan`, for a call that was never begun: it has no other record."""

    def to_result(self, parts: tuple[Part, ...] = ()) -> ToolResult:
        return ToolResult(
            parts=parts,
            content=self.content,
            ok=self.outcome == "success",
            denied=self.outcome == "denied",
            error=self.error,
            error_code=self.error_code,
            metadata=self.metadata,
        )


class OriginalResult(RunRecord, kw_only=True, tag="tool_original"):
    """What a tool gave before hooks changed it."""

    call_id: str
    result: ToolResult


# --- what the session learnt --------------------------------------------------------------------------------


class HookRecord(Record, kw_only=True, tag="hook_executed"):
    hook: str
    call_id: str | None = None
    outcome: JsonObject = field(default_factory=dict)


class SummaryRecord(Record, kw_only=True, tag="summary_call"):
    model: str = ""
    message_id: str = ""
    asked_at: datetime
    content: str = ""
    metadata: JsonObject = field(default_factory=dict)
    error: JsonObject | None = None


class MarkRecord(Record, kw_only=True, tag="compaction_marked"):
    epoch: int = 0
    message: AssistantMessage


class EventRecord(RunRecord, kw_only=True):
    """A turn event, written as it is."""


class ContextRecord(EventRecord, kw_only=True, tag="context"):
    max_tokens: int = 0
    used_tokens: int = 0


class CompactedRecord(EventRecord, kw_only=True, tag="context_compact"):
    trigger: str = "auto"
    before: Json = None
    after: Json = None
    summary: str = ""


class ModelRecord(EventRecord, kw_only=True, tag="model_change"):
    provider: str = ""
    model: str = ""
    context_window: int = 0
    notes: tuple[str, ...] = ()


class SettingsRecord(EventRecord, kw_only=True, tag="settings_change"):
    keys: tuple[str, ...] = ()
    values: JsonObject = field(default_factory=dict)


class QuestionRecord(EventRecord, kw_only=True, tag="question_asked"):
    question: AnyQuestion


class ClosedRecord(EventRecord, kw_only=True, tag="question_closed"):
    id: str
    answer: Json = None
    by: str = ""
    reason: Literal["answered", "aborted", "nobody", "fault"] = "answered"


class TaskRecord(EventRecord, kw_only=True, tag="background_task_event"):
    change: TaskChange
    task: TaskSnapshot
    text: str = ""


class GroupRecord(EventRecord, kw_only=True, tag="background_job_group_event"):
    change: GroupChange
    group: GroupSnapshot


class SubagentRecord(EventRecord, kw_only=True, tag="subagent"):
    agent_id: str
    inner: JsonObject


class NoticeRecord(EventRecord, kw_only=True, tag="notice"):
    message: str = ""


class ServerToolRecord(EventRecord, kw_only=True, tag="server_tool"):
    tool_name: str = ""
    input: Json = None


class RetryRecord(EventRecord, kw_only=True, tag="provider_retry"):
    attempt: int = 0
    max_attempts: int = 0
    delay: float = 0.0
    message: str = ""
    status: int | None = None


class LoadedRecord(Record, kw_only=True, tag="context_loaded"):
    data: JsonObject = field(default_factory=dict)


# --- what is not ours ---------------------------------------------------------------------------------------


class Unknown(Record, kw_only=True, tag="unknown"):
    """A record of a later version, or of the TypeScript original."""

    kind: str
    """Its event."""
    fields: JsonObject


def _find_types(kind: type[Record]) -> Iterator[type[Record]]:
    """The types of records that are written: those that no other is a kind of."""
    for narrower in kind.__subclasses__():
        yield from _find_types(narrower) if narrower.__subclasses__() else (narrower,)


RECORD_TYPES: dict[str, type[Record]] = {
    str(kind.__struct_config__.tag): kind for kind in _find_types(Record) if kind is not Unknown
}
for _name, _kind in RECORD_TYPES.items():
    _kind.name = _name
