"""The conversation and the run of a session, from the records of its journal, one record at a time.

What a crash cut is repaired the same way every time, so that the journal itself never needs to be changed:
words that had arrived become an interrupted answer, a call without a result gets one, the recorded result if
the tool had finished, else a note that its effects are unknown. Results without a call are left out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from robota.core.conversation import ConversationStore
from robota.core.errors import RobotaError, ValidationError
from robota.core.messages import AssistantMessage, JsonObject, Message, ToolCall, ToolMessage, UserMessage
from robota.core.ports import REAL_WORLD, Ports
from robota.core.run import CallOutcome, CutRun, RunResult, RunState
from robota.core.tool_call import INTERRUPTED_CALL, result_metadata
from robota.sessions.journal import records
from robota.sessions.journal.decoding import methods_by_record
from robota.sessions.journal.pieces import Pieces
from robota.sessions.journal.records import CallEnded, Record, Unknown

UNKNOWN_EFFECTS = "Error: interrupted; effects unknown. The session ended before the tool reported a result."


class CutConversation(Struct, frozen=True, kw_only=True):
    """A run that the end of a process cut, and what was put in the place of the rest."""

    run: CutRun
    submit_id: str = ""
    calls: tuple[ToolCall, ...] = ()
    ended: dict[int, CallEnded] = field(default_factory=dict)
    repaired: int = 0
    """Results that were made up, or are known and were no messages yet."""
    steps: int = 0
    """Messages there were then."""

    def reopen(self, conversation: ConversationStore) -> None:
        """Take back what was put there, so that the run can go on."""
        if self.repaired:
            conversation.reopen(self.repaired)


class ConversationFold:
    """Takes records in order; keeps the conversation that they add up to, and the run that is under way."""

    __slots__ = (
        "_begun", "_calls", "_continued", "_conversation_id", "_failure_limit", "_last", "_prompt",
        "_results", "_round", "_streams", "_submit_id", "_unanswered", "cut", "repairs", "results", "run",
        "steps", "store",
    )  # fmt: skip

    def __init__(
        self, unanswered: str = UNKNOWN_EFFECTS, ports: Ports = REAL_WORLD, *, identical_failures: int = 0
    ) -> None:
        """`unanswered` is what the model is told about a call without a result, `identical_failures` a limit
        that the guard of the run had."""
        self.store = ConversationStore(ports)
        self.steps = 0
        """Messages so far, those of conversations that were cleared included."""
        self.run: RunState | None = None
        """Of the run that has not ended."""
        self.cut: CutConversation | None = None
        """The run that the end of a process cut, while nothing else has followed."""
        self.results: dict[str, RunResult] = {}
        """How runs ended, by the ids of their prompts."""
        self.repairs: list[str] = []
        """What had to be put right, for people."""
        self._unanswered = unanswered
        self._failure_limit = identical_failures
        self._streams: list[Pieces] = []
        """The pieces of a reply that has no message yet."""
        self._calls: tuple[ToolCall, ...] = ()
        """All calls of the last answer, in order."""
        self._results: dict[int, CallEnded] = {}
        self._begun: set[int] = set()  # of these calls
        self._prompt: records.UserRecord | None = None
        """The prompt that was accepted and is no message yet."""
        self._submit_id = self._conversation_id = ""
        self._continued = False  # so that results may be those of an earlier process
        self._round = 0
        self._last: Message | None = None

    def take(self, record: Record) -> Message | None:
        """Take a record in; the message that it added, if it did."""
        if isinstance(record, Unknown):
            message = read_foreign(record, self.steps, self.repairs)
            return None if message is None else self._add(message)
        take = _TAKE.get(type(record))
        added: Message | None = None if take is None else take(self, record)
        return added

    def settle(self) -> None:
        """Repair what was cut before this point."""
        self._keep_partial_reply()
        self._answer_calls()

    # --- the run ------------------------------------------------------------------------------------------

    def take_user(self, record: records.UserRecord) -> None:
        self._prompt, self._submit_id = record, record.submit_id

    def take_run_start(self, record: records.RunBegan) -> None:
        self.cut, self._conversation_id = None, record.conversation_id
        self.run = RunState(
            execution_id=record.execution_id,
            max_rounds=record.max_rounds,
            max_identical_failures=self._failure_limit,
        )

    def take_run_continued(self, record: records.RunContinued) -> None:
        cut, self.cut = self.cut, None
        if cut is None:
            return
        self.run, self._submit_id, self._continued = cut.run.state, cut.submit_id, True
        cut.reopen(self.store)
        self.steps -= cut.repaired
        self._calls, self._results, self._begun = cut.calls, dict(cut.ended), set(cut.run.begun)

    def take_provider_request(self, record: records.RequestRecord) -> None:
        self.settle()
        self._round, self._continued = record.round, False
        if self.run is not None:
            self.run.note_request(summing_up=record.extra is not None)

    def take_stream(self, record: records.Stream) -> None:
        self._streams.append(record.pieces)

    def take_empty_reply(self, record: records.EmptyReply) -> None:
        self._streams.clear()
        if self.run is not None:
            self.run.note_reply(record.message, kept=False)

    def take_tool_result(self, record: CallEnded) -> None:
        self._results[record.index] = record

    def take_tool_start(self, record: records.CallBegan) -> None:
        self._begun.add(record.index)

    def take_run_end(self, record: records.RunEnded) -> None:
        self.settle()
        run, self.run = self.run, None
        if run is not None and self._submit_id:
            self.results[self._submit_id] = read_result(record, run)

    def take_session_resumed(self, record: records.SessionResumed) -> None:
        self.cut_off()

    def cut_off(self) -> None:
        """The process ended here. Whatever was under way is repaired; whoever is next may go on with it."""
        run, self.run = self.run, None
        if run is None:
            self.settle()
            if self.cut is not None and self.cut.steps != self.steps:
                self.cut = None
            return
        self._keep_partial_reply()
        calls, ended, begun, before = self._calls, self._results, self._begun, self.steps
        self._answer_calls()
        prompt = self._prompt
        self.cut = CutConversation(
            run=CutRun(
                state=run,
                conversation_id=self._conversation_id,
                prompt=None if prompt is None else prompt.read_prompt(),
                results={at: record.to_result() for at, record in ended.items()},
                begun=frozenset(begun),
            ),
            submit_id=self._submit_id,
            calls=calls,
            ended=ended,
            repaired=self.steps - before,
            steps=self.steps,
        )

    # --- messages -----------------------------------------------------------------------------------------

    def take_message(self, record: records.MessageRecord) -> Message | None:
        message = record.message
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in {call.id for call in self.store.open_calls}:
                self.repairs.append(f"A result of {message.name} without a call was left out.")
                return None
            if self.run is not None and self._continued and len(self.store.open_calls) == 1:
                self.run.note_results(self._outcomes())
            return self._add(message)
        if record.reply:
            self._streams.clear()
        else:
            self._keep_partial_reply()
        self._answer_calls()
        if self.run is not None and isinstance(message, AssistantMessage) and record.reply:
            self.run.note_reply(message)
        elif self.run is not None and isinstance(message, AssistantMessage | UserMessage):
            self.run.note_message(message)
            if isinstance(message, UserMessage) and "origin" not in message.metadata:
                self._prompt = None
        return self._add(message)

    def take_tool_message(self, record: records.ToolMessageRecord) -> Message | None:
        if record.result >= len(self._calls):
            self.repairs.append("A tool result without a call was left out.")
            return None
        message = self._tool_message(record)
        if message.tool_call_id not in {call.id for call in self.store.open_calls}:
            self.repairs.append(f"A second result of {message.name} for one call was left out.")
            return None
        if self.run is not None and len(self.store.open_calls) == 1:
            self.run.note_results(self._outcomes())
        return self._add(message)

    def _tool_message(self, record: records.ToolMessageRecord) -> ToolMessage:
        call, ended = self._calls[record.result], self._results.get(record.result)
        result = None if ended is None else ended.to_result()
        name, known = record.tool_name or call.name, record.metadata
        if known is None:
            known = {} if result is None else result_metadata(result, call.name, self._round)
        content = record.content
        if content is None:
            content = self._unanswered if result is None else result.text
        return ToolMessage(
            content, call.id, name, record.parts, id=record.id, timestamp=record.sent_at, metadata=known
        )

    def take_compaction_marked(self, record: records.MarkRecord) -> Message:
        self.settle()
        self.store.restore_mark(record.message)
        self.steps += 1
        self._calls, self._results, self._last = (), {}, record.message
        return record.message

    def take_history_cleared(self, record: records.HistoryCleared) -> None:
        self._streams.clear()
        self._calls, self._results, self._last = (), {}, None
        self.store.clear()

    def take_history_entry(self, record: records.EntryRecord) -> None:
        self.store.add_entry(record.entry)

    def _add(self, message: Message) -> Message:
        if isinstance(message, AssistantMessage):
            self._calls, self._results, self._begun = message.tool_calls, {}, set()
        self.store.append(message)
        self.steps += 1
        self._last = message
        return message

    def _outcomes(self) -> list[CallOutcome]:
        nothing = CallEnded(outcome="error", error_code=INTERRUPTED_CALL)
        found = [self._results.get(at, nothing) for at in range(len(self._calls))]
        pairs = zip(self._calls, found, strict=True)
        return [CallOutcome(call, ended.outcome, ended.error_code) for call, ended in pairs]

    # --- repairs ------------------------------------------------------------------------------------------

    def _keep_partial_reply(self) -> None:
        streams, self._streams = self._streams, []
        text = "".join(pieces.answer() for pieces in streams) + (streams[-1].tail if streams else "")
        if not text:
            return
        self._answer_calls()
        identity = self._identity("partial")
        message = AssistantMessage(text, state="interrupted", metadata={"recovered": True}, **identity)
        self.repairs.append(f"An answer was cut after {len(text):,} characters; they are kept.")
        self._add(message)

    def _answer_calls(self) -> None:
        opened = {call.id for call in self.store.open_calls}
        for at, call in enumerate(self._calls):
            if call.id not in opened:
                continue
            ended, identity = self._results.get(at), self._identity(f"result-{at}")
            if ended is None:
                content = self._unanswered
                metadata: JsonObject = {
                    "success": False, "toolName": call.name, "error": "interrupted", "recovered": True,
                }  # fmt: skip
                self.repairs.append(
                    f"{call.name} was cut before it reported a result; its effects are unknown."
                )
            else:
                result = ended.to_result()
                content, metadata = result.text, result_metadata(result, call.name, self._round)
            self.store.append(ToolMessage(content, call.id, call.name, metadata=metadata, **identity))
            self.steps += 1
        self._calls, self._results = (), {}

    def _identity(self, what: str) -> dict[str, Any]:
        """The same id and time stamp at every repair of the same place."""
        last = self._last
        if last is None:
            return {"id": f"recovered-{what}", "timestamp": datetime.fromtimestamp(0, UTC)}
        return {"id": f"{last.id}-{what}", "timestamp": last.timestamp}


def read_foreign(record: Unknown, steps: int, problems: list[str]) -> Message | None:
    """How the TypeScript original keeps a message; one without an id is known by its place."""
    if record.kind != "history_mutation" or "message" not in record.fields:
        return None
    from robota.sessions.store.message_codec import message_from_record, read_time  # noqa: PLC0415 - old logs

    stamp, place = read_time(record.timestamp), f"at-{steps}"
    try:
        return message_from_record(record.fields["message"], id=place, timestamp=stamp)
    except ValidationError as error:
        problems.append(f"A message was left out: {error}")
        return None


class RecordedError(RobotaError):
    """How a run failed, as its journal tells it."""

    def __init__(self, message: str, code: str, *, recoverable: bool) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # of a class elsewhere, here of what was recorded
        self.recoverable = recoverable  # type: ignore[misc]


def read_result(record: records.RunEnded, run: RunState) -> RunResult:
    """What the run that ended so gave back; its `output` is not on record."""
    failed = record.outcome == "error"
    return RunResult(
        text=run.answer if record.text is None else record.text,
        execution_id=run.execution_id,
        interrupted=record.outcome == "interrupted",
        error=RecordedError(record.message, record.code, recoverable=record.recoverable) if failed else None,
        stop_reason=record.stop_reason,
        rounds=record.rounds or run.rounds,
        usage=run.usage if record.usage is None else record.usage,
        tools_executed=tuple(run.tools_executed),
    )


_TAKE = methods_by_record(ConversationFold)
CONVERSATION_RECORDS = frozenset(kind.name for kind in _TAKE) | {"history_mutation"}
"""The names of the records that a conversation is made of."""
