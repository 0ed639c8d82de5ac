"""Where a run stands, in values that can be written down: what its guards count, and how it ended; and what a
session adds to it, inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
)

from msgspec import Struct, field
from msgspec.structs import replace

from robota.core.context import read_context_size, read_token_usage
from robota.core.errors import AbortError, RobotaError
from robota.core.events import ToolOutcome
from robota.core.messages import (
    AssistantMessage,
    Message,
    Prompt,
    StopReason,
    TokenUsage,
    ToolCall,
    UserMessage,
)
from robota.core.tool import ToolResult
from robota.core.tool_call import NEVER_RAN, UNKNOWN_TOOL

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from robota.core.provider import ModelSettings
    from robota.core.structured import OutputType

    OutputT = TypeVarWithDefault("OutputT", default=Any)
else:
    OutputT = TypeVar("OutputT")

OutputKind: TypeAlias = type[OutputT] | Mapping[str, Any]
"""What an answer can be asked to be: a type, or a JSON schema."""

ABORTED = "The run was stopped by the user."
MAX_UNKNOWN_TOOL_ROUNDS = 2
MAX_EMPTY_REPLIES = 2
ROUND_LIMIT_INSTRUCTION = (
    "You have used all rounds of this run, and no more tools can be called. Answer now from what you have so "
    "far, say what remains to be done, and mention that the user can follow up."
)
EMPTY_REPLY_INSTRUCTION = (
    "Your last two replies were empty. Answer now in words, without tools: say what you found, and what "
    "keeps you from going on."
)
SILENCE = {
    "max_tokens": "it reached the limit of its output before it wrote a word, thinking included; raise "
    "max_tokens or lower the effort",
    "context_overflow": "its window is full; compact the conversation",
}
"""Why a model says nothing, and what to do about it, by its reason to stop."""
ENDINGS: dict[StopReason, str] = {
    "max_rounds": "The run was ended before it was done: its limit is {rounds} rounds. Ask again to go on.",
    "repeated_failure": "The run was ended because the same call of {names} failed {times} times in a row.",
    "unknown_tool": "The run was ended because the model kept calling tools that do not exist: {names}.",
    "no_answer": "The model answered with nothing, three times in a row; ask again or use another model.",
    "max_tokens": "The answer is cut: the model reached the limit of its output. Ask it to go on, or raise "
    "max_tokens.",
    "content_filter": "The answer was ended by the content filter of the service.",
    "refusal": "The model declined to answer.",
}
"""Ends that leave something undone, in words for the user."""
UNKNOWN_TOOL_INSTRUCTION = (
    "The tools {names} are not registered, so the calls were not executed. Answer now without tools from "
    "what you have, and say what could not be done."
)
REPEATED_FAILURE_INSTRUCTION = (
    "The same call of {names} failed {times} times in a row, so no more tools are called. Answer now from "
    "what you have, and say what went wrong."
)


class RunOptions(TypedDict, total=False):
    """What a run may be told beside its prompt and the type of its answer."""

    max_rounds: int | None
    output_retries: int
    settings: ModelSettings | None


class RunResult(Struct, Generic[OutputT], frozen=True, kw_only=True):
    """How a run ended. `text` is the last answer, also when it was cut."""

    text: str
    execution_id: str
    interrupted: bool = False
    error: RobotaError | None = None
    stop_reason: StopReason = "end_turn"
    rounds: int = 0
    usage: TokenUsage = TokenUsage()
    """The sum over the run's model calls."""
    tools_executed: tuple[str, ...] = ()
    parsed: OutputT | None = None
    """The validated value when `run(output=…)` asked for one and got it."""

    @property
    def success(self) -> bool:
        return self.error is None and not self.interrupted

    @property
    def output(self) -> OutputT:
        """The validated value of `run(output=…)`. If there is none because the run failed, that is raised."""
        return cast("OutputT", self.raise_for_error().parsed)

    def raise_for_error(self) -> Self:
        """Raise what ended the run before its answer, `AbortError` for an abort."""
        if self.interrupted:
            raise AbortError(ABORTED)
        if self.error is not None:
            raise self.error
        return self


def want_output(kind: OutputKind[Any] | OutputType | None, retries: int = 2) -> OutputType | None:
    """What `run(output=…)` was given, read once: a session does it before it writes the prompt down."""
    if kind is None:
        return None
    from robota.core.structured import OutputType  # noqa: PLC0415 - for the few that ask for a type

    return kind if isinstance(kind, OutputType) else OutputType(kind, retries)


def read_output(result: RunResult, kind: OutputKind[OutputT] | None) -> RunResult[OutputT]:
    """A result that comes from a journal, with its answer as a value of the type that is wanted."""
    if kind is None or not result.success or result.parsed is not None:
        return result
    from robota.core.structured import OutputType  # noqa: PLC0415 - for the few that ask for a type

    return replace(result, parsed=OutputType(kind, 0).parse(result.text))


class CallOutcome(NamedTuple):
    """How one tool call of a round ended."""

    call: ToolCall
    outcome: ToolOutcome
    error_code: str | None


class Failure(Struct, array_like=True):
    """A call that failed in the last round, and in how many rounds in a row."""

    name: str
    arguments: str
    times: int


class RunState(Struct, kw_only=True, rename="camel"):
    """One run, as far as its next step depends on what happened so far.

    It changes only through the `note_` methods, each called with something a journal has on record: whoever
    calls them with the records of a run gets the state the run itself had.
    """

    execution_id: str = ""
    max_rounds: int = 0
    """Model calls; 0 for no limit. The call that only sums up is not counted."""
    max_identical_failures: int = 0
    rounds: int = 0
    continuations: int = 0
    """How often the run was sent on when it was about to end."""
    usage: TokenUsage = TokenUsage()
    last_usage: TokenUsage = TokenUsage()
    stop: StopReason = "end_turn"
    answer: str = ""
    empty_replies: int = 0
    """In a row."""
    unknown_rounds: int = 0
    """Rounds in a row with calls of tools that do not exist."""
    unknown_names: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    tools_executed: list[str] = field(default_factory=list)
    verdict: str | None = None
    """Why a guard wants the run to end: the instruction for one last call without tools."""
    summing_up: bool = False
    """The call under way is that last one."""

    @property
    def instruction(self) -> str | None:
        """What the model is told if its next call has to be the last."""
        used_up = self.verdict is None and 0 < self.max_rounds <= self.rounds
        return ROUND_LIMIT_INSTRUCTION if used_up else self.verdict

    @property
    def is_exhausted(self) -> bool:
        """All rounds are used."""
        return 0 < self.max_rounds <= self.rounds

    @property
    def ending(self) -> StopReason:
        """How the run ends if it ends here: a guard that asked for the last words counts more than them."""
        if not self.summing_up or self.stop == "aborted":
            return self.stop
        if self.verdict is None:
            return "max_rounds"
        if self.verdict == EMPTY_REPLY_INSTRUCTION:
            return "no_answer" if self.empty_replies else self.stop
        return "unknown_tool" if self.unknown_rounds >= MAX_UNKNOWN_TOOL_ROUNDS else "repeated_failure"

    def explain_ending(self) -> str | None:
        """What the user should know about an end that is none of the model's choice."""
        words = ENDINGS.get(self.ending)
        if words is None:
            return None
        limit = self.max_identical_failures
        failed = {failure.name for failure in self.failures if failure.times >= limit}
        names = ", ".join(self.unknown_names or sorted(failed))
        return words.format(rounds=self.rounds, times=limit, names=names)

    def note_request(self, *, summing_up: bool = False) -> None:
        """The model is asked."""
        self.summing_up = summing_up
        if not summing_up:
            self.rounds += 1

    def note_reply(self, message: AssistantMessage, *, kept: bool = True) -> None:
        """It has answered; a reply without content is not `kept` in the conversation."""
        usage = read_token_usage(message)
        if usage is not None:
            self.usage += usage
            if read_context_size(message) is not None:
                self.last_usage = usage
        if not kept:
            self.empty_replies += 1
            self.stop = message.metadata.get("stopReason") or self.stop
            if self.empty_replies >= MAX_EMPTY_REPLIES:
                self.verdict = self.verdict or EMPTY_REPLY_INSTRUCTION
            return
        self.empty_replies = 0
        self.answer = message.content
        said: StopReason | None = message.metadata.get("stopReason")
        self.stop = said or ("tool_use" if message.tool_calls else "end_turn")

    def explain_silence(self, detail: str | None) -> str | None:
        """Why there is no answer although the model was asked twice; `None` if it is worth asking for one."""
        if self.empty_replies < MAX_EMPTY_REPLIES or self.stop in ("end_turn", "tool_use"):
            return None
        why = (
            SILENCE.get(self.stop)
            or f"it stopped with {detail or self.stop!r}; try again or ask another model"
        )
        return f"The model gave no answer, also when it was asked again: {why}."

    def note_results(self, outcomes: Sequence[CallOutcome]) -> None:
        """Every call of the reply has ended."""
        self.tools_executed += [
            call.name for call, outcome, code in outcomes if outcome != "denied" and code not in NEVER_RAN
        ]
        self.verdict = self._watch_unknown(outcomes) or self._watch_failures(outcomes)

    def note_message(self, message: Message) -> None:
        """The engine itself said something, or added something that the model has to answer."""
        if isinstance(message, AssistantMessage):
            self.answer = message.content
            if message.metadata.get("contextOverflow"):
                self.stop = "context_overflow"
        elif isinstance(message, UserMessage):
            continues = bool(message.metadata.get("continues"))
            if not continues and message.metadata.get("origin") != "steering":
                return
            self.continuations += continues
            self.verdict, self.empty_replies, self.unknown_rounds = None, 0, 0
            self.unknown_names, self.failures = [], []

    def _watch_unknown(self, outcomes: Sequence[CallOutcome]) -> str | None:
        names = {call.name for call, _, code in outcomes if code == UNKNOWN_TOOL}
        self.unknown_names = sorted({*self.unknown_names, *names}) if names else []
        self.unknown_rounds = self.unknown_rounds + 1 if names else 0
        if self.unknown_rounds < MAX_UNKNOWN_TOOL_ROUNDS:
            return None
        return UNKNOWN_TOOL_INSTRUCTION.format(names=", ".join(self.unknown_names))

    def _watch_failures(self, outcomes: Sequence[CallOutcome]) -> str | None:
        known = {(failure.name, failure.arguments): failure.times for failure in self.failures}
        failing = {(call.name, call.arguments) for call, outcome, _ in outcomes if outcome != "success"}
        self.failures = [Failure(*key, known.get(key, 0) + 1) for key in sorted(failing)]
        limit = self.max_identical_failures
        worst = sorted({failure.name for failure in self.failures if limit and failure.times >= limit})
        return REPEATED_FAILURE_INSTRUCTION.format(names=", ".join(worst), times=limit) if worst else None


class CutRun(Struct, frozen=True, kw_only=True):
    """A run that a crash has cut. Its conversation ends where it was cut, with calls that have no result."""

    state: RunState
    conversation_id: str
    prompt: Prompt | None = None
    """Set when it is not in the conversation yet."""
    results: Mapping[int, ToolResult] = field(default_factory=dict)
    """What calls of the last answer gave, by their places in it."""
    begun: frozenset[int] = frozenset()
    """Those whose start was told."""


class RunSteps(Protocol):
    """Called by the loop where every tool call has its result, so that messages may be added.

    All of it runs in the task of the run: an abort stops it like anything else there. What a step raises
    ends the run with that error.
    """

    shown: str | None
    """What front ends show of the prompt, if that may be other words than the model gets."""

    @property
    def aborted(self) -> bool:
        """Somebody wants an end, maybe since before the agent knew of the run, which then stops at once."""
        ...

    async def start(self, prompt: Prompt) -> Prompt:
        """The run has begun; the prompt to record in the place of the given one."""
        ...

    async def before_round(self, run: RunState) -> Sequence[UserMessage]:
        """The model is about to be asked; what it should know by then."""
        ...

    async def before_end(self, run: RunState, error: RobotaError | None) -> Sequence[UserMessage]:
        """The run is about to end, with this error if there is one; with messages it goes on."""
        ...


class StopRun(Exception):
    """Raised by a step: the run ends here, in good order, with the words it has."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason
