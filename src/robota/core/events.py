"""Everything a run tells the world, as one union of frozen values.

Guarantees, for one run (one `execution_id`):

* `RunStarted` comes first; exactly one of `RunCompleted`, `RunInterrupted`, `RunFailed` comes last, also
  after an abort, an error or a cancellation from outside.
* Each `ToolStarted` has exactly one `ToolEnded`.
* `AssistantMessageCommitted` always follows its `ProviderRequest`.
* `*Committed` and `HistoryMutation` come after the conversation has changed, so a listener may read it.
* `ToolEnded` reports the tool; its message is appended in request order when the batch settles.
* `seq` numbers the turn events of a bus without a gap, whoever listens; a replay event has the number of the
  turn event before it. `id` is `<execution>-<seq>` and serves as a Server-Sent-Events id.

`name` is the tag on the wire and public API. Turn events are for people and front ends; replay events are
for journals and are built only when somebody asked for their type. A text delta is one object: its provider
bytes, when wanted, travel in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from robota.core.background import GroupChange, GroupSnapshot, TaskChange, TaskSnapshot
from robota.core.messages import (
    AssistantMessage,
    Json,
    Message,
    StopReason,
    TokenUsage,
    ToolMessage,
)
from robota.core.questions import AnyQuestion

ToolOutcome: TypeAlias = Literal["success", "error", "denied"]
PayloadKind: TypeAlias = Literal["request", "response", "stream_event"]


class OwnerPathSegment(Struct, frozen=True, rename="camel"):
    """One step of the path from the outermost agent to what an event is about."""

    owner_type: str
    """agent | execution | tool"""
    owner_id: str


class Event(Struct, frozen=True, kw_only=True, tag_field="event", rename="camel"):
    """What all events have: the run they belong to, a number and a name."""

    execution_id: str = ""
    """The run this belongs to; empty outside a run."""
    seq: int = 0

    name: ClassVar[str] = ""
    """The tag on the wire; filled in from the table at the end of this module."""

    @property
    def id(self) -> str:
        return f"{self.execution_id}-{self.seq}"


class TurnEvent(Event, frozen=True, kw_only=True):
    """What a front end shows."""


class ReplayEvent(Event, frozen=True, kw_only=True):
    """What a journal needs to repeat a run; delivered only to listeners that name the type."""

    conversation_id: str = ""
    round: int = 0


# --- turn events, in the order they may occur ------------------------------------------------------


class RunStarted(TurnEvent, frozen=True, kw_only=True, tag="run_start"):
    """A run begins; its first event."""

    conversation_id: str
    agent_name: str = ""
    prompt: str = ""
    display: str = ""
    """What front ends show in the place of the prompt; empty: the prompt itself."""
    max_rounds: int = 0
    """Model calls that the run may make; 0 for no limit."""


class TextDelta(TurnEvent, frozen=True, tag="text_delta"):
    """A piece of the answer."""

    text: str
    round: int = 0
    sequence: int = 0
    """Position among the round's deltas, from 1; 0 for the separator the engine puts between rounds."""
    raw: bytes | None = None
    """The provider's own bytes for this delta, when a listener asked for them."""


class ReasoningDelta(TurnEvent, frozen=True, tag="reasoning_delta"):
    """A piece of the model's thinking."""

    text: str
    round: int = 0


class ToolInputDelta(TurnEvent, frozen=True, kw_only=True, tag="tool_input_delta"):
    """A piece of a tool call's arguments while the model is still writing them."""

    index: int
    tool_call_id: str = ""
    tool_name: str = ""
    delta: str = ""
    round: int = 0


class ThinkingChanged(TurnEvent, frozen=True, tag="thinking"):
    """The busy flag, which `InteractiveSession.on` tells by its name, as a bool; it is on no bus."""

    is_thinking: bool


class ServerToolUsed(TurnEvent, frozen=True, kw_only=True, tag="server_tool"):
    """The service used a tool of its own."""

    tool_name: str
    input: Json = None
    round: int = 0


class ProviderRetried(TurnEvent, frozen=True, kw_only=True, tag="provider_retry"):
    """A failed model call is tried again after a pause."""

    attempt: int
    max_attempts: int
    delay: float
    message: str
    status: int | None = None
    """HTTP status of the attempt that failed, when the service answered at all."""
    round: int = 0


class ToolStarted(TurnEvent, frozen=True, kw_only=True, tag="tool_start"):
    """A tool call begins."""

    call_id: str
    """Unique in the run, unlike the provider's id."""
    tool_call_id: str
    tool_name: str
    arguments: Mapping[str, Json]
    round: int = 0


class ToolProgressed(TurnEvent, frozen=True, kw_only=True, tag="tool_progress"):
    """A running tool reports something."""

    call_id: str
    tool_name: str
    text: str
    round: int = 0


class ToolEnded(TurnEvent, frozen=True, kw_only=True, tag="tool_end"):
    """A tool call ended, whatever its outcome."""

    call_id: str
    tool_call_id: str
    tool_name: str
    outcome: ToolOutcome
    arguments: Mapping[str, Json] = msgspec.field(default_factory=dict)
    """As the call was made."""
    content: str = ""
    error: str | None = None
    error_code: str | None = None
    metadata: Mapping[str, Json] = msgspec.field(default_factory=dict)
    duration: float = 0.0
    round: int = 0


class ContextUpdated(TurnEvent, frozen=True, kw_only=True, tag="context_update"):
    """How full the context window is."""

    max_tokens: int
    used_tokens: int
    used_percentage: float
    remaining_percentage: float


class Compacted(TurnEvent, frozen=True, kw_only=True, tag="context_compact"):
    """The conversation was summarised."""

    trigger: Literal["auto", "manual"]
    before: Json
    after: Json
    summary: str = ""
    """What the model sees now in the place of the conversation."""


class ModelChanged(TurnEvent, frozen=True, kw_only=True, tag="model_change"):
    """Another model answers from the next request on."""

    provider: str
    model: str
    context_window: int
    notes: Sequence[str] = ()
    """What of the conversation it gets in another form or not at all, in sentences."""


class SettingsChanged(TurnEvent, frozen=True, kw_only=True, tag="settings_change"):
    """Rules, hooks or directories were replaced; they count from the next call on."""

    keys: Sequence[str]
    """permissions | hooks | directories"""
    values: Mapping[str, Json] = msgspec.field(default_factory=dict)
    """What they are now; of hooks the events that have some."""


class QuestionAsked(TurnEvent, frozen=True, kw_only=True, tag="question_asked"):
    """Somebody has to decide something."""

    question: AnyQuestion


class QuestionClosed(TurnEvent, frozen=True, kw_only=True, tag="question_closed"):
    """Nobody needs to answer any more."""

    id: str
    answer: Json = None
    by: str = ""
    reason: Literal["answered", "aborted", "nobody", "fault"] = "answered"
    """`fault`: what a handler gave was no answer."""


class BackgroundTaskChanged(TurnEvent, frozen=True, kw_only=True, tag="background_task_event"):
    """Something happened to a task in the background."""

    change: TaskChange
    task: TaskSnapshot
    text: str = ""
    """The words of a `text_delta`, the name of the tool of `tool_start` and `tool_end`."""


class BackgroundGroupChanged(TurnEvent, frozen=True, kw_only=True, tag="background_job_group_event"):
    """Something happened to a group of tasks in the background."""

    change: GroupChange
    group: GroupSnapshot


class PromptQueued(TurnEvent, frozen=True, tag="prompt_queued"):
    """A prompt waits for the run under way."""

    prompt: str


class PromptSteered(TurnEvent, frozen=True, tag="prompt_steered"):
    """What the user said while the model worked has reached the conversation."""

    prompt: str


class Noticed(TurnEvent, frozen=True, tag="notice"):
    """Something the user should know once, such as an unknown model's assumed window."""

    message: str


class RunFailed(TurnEvent, frozen=True, kw_only=True, tag="error"):
    """The run ended with an error."""

    message: str
    code: str
    recoverable: bool = False


class RunInterrupted(TurnEvent, frozen=True, kw_only=True, tag="interrupted"):
    """The run was aborted."""

    text: str = ""


class RunCompleted(TurnEvent, frozen=True, kw_only=True, tag="complete"):
    """The run ended with an answer."""

    text: str = ""
    rounds: int = 0
    stop_reason: StopReason = "end_turn"
    usage: TokenUsage = TokenUsage()


class SubagentEvent(TurnEvent, frozen=True, kw_only=True, tag="subagent"):
    """An event of a nested agent, wrapped once per level."""

    agent_id: str
    inner: AnyTurnEvent


# --- replay events ------------------------------------------------------------------------------------


class SessionInit(ReplayEvent, frozen=True, kw_only=True, tag="session_init"):
    """A session begins; the first record of its journal."""

    data: Mapping[str, Json]


class PreRun(ReplayEvent, frozen=True, kw_only=True, tag="pre_run"):
    """What the run begins with: model, tools, web tools."""

    data: Mapping[str, Json]


class ProviderRequest(ReplayEvent, frozen=True, kw_only=True, tag="provider_request"):
    """A request goes to the model."""

    provider: str
    model: str
    messages: Sequence[Message]
    """A view of the history as sent; it costs nothing until it is read."""
    tools: Sequence[Json] = ()
    options: Json = None
    """How the model was asked to answer, when that is not the ordinary way."""


class ProviderNativeRawPayload(ReplayEvent, frozen=True, kw_only=True, tag="provider_native_raw_payload"):
    """What the service sent or received, as it was on the wire."""

    provider: str
    payload_kind: PayloadKind
    sequence: int
    payload: Json
    api_surface: str | None = None
    metadata: Mapping[str, Json] = msgspec.field(default_factory=dict)


class ProviderStreamRawDelta(ReplayEvent, frozen=True, kw_only=True, tag="provider_stream_raw_delta"):
    """One chunk of the provider's stream."""

    sequence: int
    delta: str


class ProviderResponseRaw(ReplayEvent, frozen=True, kw_only=True, tag="provider_response_raw"):
    """The answer as the provider gave it."""

    response: AssistantMessage
    model: str = ""
    """The one that was asked."""
    response_kind: str = "provider-normalized-message"
    kept: bool = True
    """False for an answer without content, which is not recorded in the conversation."""
    error: Mapping[str, Json] | None = None
    """Code and message of the failure that ended the call."""


class ProviderResponseNormalized(ReplayEvent, frozen=True, kw_only=True, tag="provider_response_normalized"):
    """The answer in our terms."""

    response: AssistantMessage
    tool_calls_count: int = 0


class AssistantMessageCommitted(ReplayEvent, frozen=True, kw_only=True, tag="assistant_message_committed"):
    """An answer is in the conversation."""

    message: AssistantMessage


class ToolBatchStarted(ReplayEvent, frozen=True, kw_only=True, tag="tool_batch_started"):
    """The calls of one answer are about to run."""

    batch_id: str
    mode: Literal["parallel", "sequential"]
    max_concurrency: int | None
    request_count: int
    tools: Sequence[str]


class ToolExecutionRequest(ReplayEvent, frozen=True, kw_only=True, tag="tool_execution_request"):
    """A call as it was made, for the journal."""

    batch_id: str
    index: int
    call_id: str
    tool_name: str
    tool_call_id: str
    parameters: Json
    owner_path: Sequence[OwnerPathSegment] = ()


class ToolExecutionResult(ReplayEvent, frozen=True, kw_only=True, tag="tool_execution_result"):
    """A call's result, for the journal."""

    batch_id: str
    index: int
    call_id: str
    tool_name: str
    tool_call_id: str
    success: bool
    result: str = ""
    error: str | None = None
    metadata: Mapping[str, Json] = msgspec.field(default_factory=dict)
    finished: int = 0
    """Place in the order in which the batch's tools finished, from 1: what a replay needs."""


class ToolMessageCommitted(ReplayEvent, frozen=True, kw_only=True, tag="tool_message_committed"):
    """A tool's result is in the conversation."""

    batch_id: str
    index: int
    message: ToolMessage


class HistoryMutation(ReplayEvent, frozen=True, kw_only=True, tag="history_mutation"):
    """The conversation changed."""

    message: Message
    index: int
    mutation: Literal["append_message"] = "append_message"


class SessionShutdown(ReplayEvent, frozen=True, kw_only=True, tag="session_shutdown"):
    """A session ends."""

    reason: str


class HookExecuted(ReplayEvent, frozen=True, kw_only=True, tag="hook_executed"):
    """A hook ran, and what it decided."""

    data: Mapping[str, Json]


class PermissionDecided(ReplayEvent, frozen=True, kw_only=True, tag="permission_decided"):
    """Whether a call may run, and which rule said so."""

    data: Mapping[str, Json]


class ContextLoaded(ReplayEvent, frozen=True, kw_only=True, tag="context_loaded"):
    """Project files were read into the system message."""

    data: Mapping[str, Json]


class SummaryCalled(ReplayEvent, frozen=True, kw_only=True, tag="summary_call"):
    """The model was asked for a summary of the conversation."""

    model: str
    message_id: str
    """Of the request's one message."""
    asked_at: datetime
    content: str = ""
    metadata: Mapping[str, Json] = msgspec.field(default_factory=dict)
    error: Mapping[str, Json] | None = None
    """Code and message, in the place of an answer."""


class CompactionMarked(ReplayEvent, frozen=True, kw_only=True, tag="compaction_marked"):
    """The model's view begins again with this message."""

    message: AssistantMessage
    epoch: int


AnyTurnEvent: TypeAlias = (
    RunStarted | TextDelta | ReasoningDelta | ToolInputDelta | ThinkingChanged | ServerToolUsed
    | ProviderRetried | ToolStarted | ToolProgressed | ToolEnded | ContextUpdated | Compacted
    | ModelChanged | SettingsChanged | QuestionAsked | QuestionClosed | BackgroundTaskChanged
    | BackgroundGroupChanged | PromptQueued | PromptSteered | Noticed | RunFailed | RunInterrupted
    | RunCompleted | SubagentEvent
)  # fmt: skip
AnyReplayEvent: TypeAlias = (
    SessionInit | PreRun | ProviderRequest | ProviderNativeRawPayload | ProviderStreamRawDelta
    | ProviderResponseRaw | ProviderResponseNormalized | AssistantMessageCommitted | ToolBatchStarted
    | ToolExecutionRequest | ToolExecutionResult | ToolMessageCommitted | HistoryMutation
    | SessionShutdown | HookExecuted | PermissionDecided | ContextLoaded | SummaryCalled
    | CompactionMarked
)  # fmt: skip
AnyEvent: TypeAlias = AnyTurnEvent | AnyReplayEvent

EVENT_TYPES: dict[str, type[Event]] = {
    str(kind.__struct_config__.tag): kind
    for union in (AnyTurnEvent, AnyReplayEvent)
    for kind in get_args(union)
}
"""Wire name -> event type: the one table of names."""

for _name, _kind in EVENT_TYPES.items():
    _kind.name = _name
