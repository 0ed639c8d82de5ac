"""The conversation and the run of a session, from the records of its journal, one record at a time.

What a crash cut is repaired the same way every time, so that the journal itself never needs to be changed:
words that had arrived become an interrupted answer, a call without a result gets one, the recorded result if
the tool had finished, else a note that its effects are unknown. Records that are lost or damaged cost
themselves: a message says in their place what is missing (`losses`), and a result is never taken for that of
another call, because each names its run, round and place.
"""

from __future__ import annotations

from msgspec import Struct, field

from robota.core.conversation import ConversationStore
from robota.core.errors import RobotaError, ValidationError
from robota.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from robota.core.ports import REAL_WORLD, Ports
from robota.core.run import CallOutcome, CutRun, RunResult, RunState
from robota.core.tool_call import INTERRUPTED_CALL
from robota.sessions.journal import records
from robota.sessions.journal.decoding import methods_by_record
from robota.sessions.journal.reconstruction import LOST_RESULT, Reconstruction, salvage
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
        "_continued", "_conversation_id", "_failure_limit", "_made", "_submit_id", "cut", "results", "run",
    )  # fmt: skip

    def __init__(
        self, unanswered: str = UNKNOWN_EFFECTS, ports: Ports = REAL_WORLD, *, identical_failures: int = 0
    ) -> None:
        """`unanswered` is what the model is told about a call without a result, `identical_failures` a limit
        that the guard of the run had."""
        self._made = Reconstruction(ConversationStore(ports), unanswered)
        self.run: RunState | None = None
        """Of the run that has not ended."""
        self.cut: CutConversation | None = None
        """The run that the end of a process cut, while nothing else has followed."""
        self.results: dict[str, RunResult] = {}
        """How runs ended, by the ids of their prompts."""
        self._failure_limit = identical_failures
        self._submit_id = self._conversation_id = ""
        self._continued = False  # so that results may be those of an earlier process

    @property
    def store(self) -> ConversationStore:
        return self._made.store

    @property
    def steps(self) -> int:
        """Messages so far, those of conversations that were cleared included."""
        return self._made.steps

    @property
    def repairs(self) -> list[str]:
        """What had to be put right, for people."""
        return self._made.repairs

    def note_damage(self) -> None:
        """Something cannot be read here."""
        self._made.damaged = True

    def take(self, record: Record) -> Message | None:
        """Take a record in; the message that it added, if it did."""
        if isinstance(record, Unknown):
            found = salvage(record)
            if found is None:
                return self._take_unknown(record)
            self.note_damage()
            record = found
        take = _TAKE.get(type(record))
        added: Message | None = None if take is None else take(self, record)
        return added

    # --- the run ------------------------------------------------------------------------------------------

    def take_user(self, record: records.UserRecord) -> None:
        self._made.prompt, self._submit_id = record, record.submit_id

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
        made = self._made
        made.steps -= cut.repaired
        made.answer = record.run, cut.run.state.rounds
        made.calls, made.results, made.begun = cut.calls, dict(cut.ended), set(cut.run.begun)

    def take_provider_request(self, record: records.RequestRecord) -> None:
        self._made.settle()
        self._made.round, self._continued = record.round, False
        if self.run is not None:
            self.run.note_request(summing_up=record.extra is not None)

    def take_stream(self, record: records.Stream) -> None:
        self._made.add_pieces((record.run, record.round), record.pieces)

    def take_empty_reply(self, record: records.EmptyReply) -> None:
        self._made.forget_pieces()
        if self.run is not None:
            self.run.note_reply(record.message, kept=False)

    def take_tool_result(self, record: CallEnded) -> None:
        """The first of a call counts: another comes from lines that are not of this session."""
        made = self._made
        made.find_answer(record)
        first = made.results.get(record.index)
        if first is None or LOST_RESULT in (first.content, first.error):
            made.results[record.index] = record
        else:
            self.repairs.append(f"A second result of {record.tool_name} for one call was left out.")

    def take_tool_start(self, record: records.CallBegan) -> None:
        self._made.find_answer(record)
        self._made.begun.add(record.index)

    def take_run_end(self, record: records.RunEnded) -> None:
        self._made.settle()
        run, self.run = self.run, None
        if run is not None and self._submit_id:
            self.results[self._submit_id] = read_result(record, run)

    def take_session_resumed(self, record: records.SessionResumed) -> None:
        self.cut_off()

    def cut_off(self) -> None:
        """The process ended here. Whatever was under way is repaired; whoever is next may go on with it."""
        run, self.run, made = self.run, None, self._made
        if run is None:
            made.settle(lost=made.damaged)
            if self.cut is not None and self.cut.steps != self.steps:
                self.cut = None
            return
        made.keep_partial_reply()
        calls, ended, begun, before = made.calls, made.results, made.begun, made.steps
        made.answer_calls(lost=made.damaged)
        prompt = made.prompt
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
        message, made = record.message, self._made
        if isinstance(message, ToolMessage):
            if not made.begin_result(record, message):
                self.repairs.append(f"A result of {message.name} without a call was left out.")
                return None
            if self.run is not None and self._continued and len(self.store.open_calls) == 1:
                self.run.note_results(_outcomes(made))
            return made.add(message)
        if not made.begin_message(record):
            return None
        if self.run is not None and isinstance(message, AssistantMessage) and record.reply:
            self.run.note_reply(message)
        elif self.run is not None and isinstance(message, AssistantMessage | UserMessage):
            self.run.note_message(message)
            if isinstance(message, UserMessage) and "origin" not in message.metadata:
                made.prompt = None
        return made.add(message)

    def take_tool_message(self, record: records.ToolMessageRecord) -> Message | None:
        message = self._made.make_result(record)
        if message is None:
            return None
        if self.run is not None and len(self.store.open_calls) == 1:
            self.run.note_results(_outcomes(self._made))
        return self._made.add(message)

    def take_compaction_marked(self, record: records.MarkRecord) -> Message:
        self._made.add_mark(record.message)
        return record.message

    def take_history_cleared(self, record: records.HistoryCleared) -> None:
        self.cut = None
        self._made.clear()

    def take_history_rewound(self, record: records.HistoryRewound) -> None:
        self.cut = None
        self._made.settle()
        if not record.back:
            self.store.rewind(record.messages)
        elif not self.store.take_back_rewind():
            self.repairs.append("A rewind was taken back, but what it had set aside was lost.")

    def take_history_entry(self, record: records.EntryRecord) -> None:
        self.store.add_entry(record.entry)

    def _take_unknown(self, record: Unknown) -> Message | None:
        """A record of somebody else, or one of ours of which nothing is left."""
        if record.seq and record.kind in records.RECORD_TYPES:
            self._made.lose(record)
            return None
        message = read_foreign(record, self.steps, self.repairs)
        return None if message is None else self._made.add(message)


def _outcomes(made: Reconstruction) -> list[CallOutcome]:
    nothing = CallEnded(outcome="error", error_code=INTERRUPTED_CALL)
    found = [made.results.get(at, nothing) for at in range(len(made.calls))]
    pairs = zip(made.calls, found, strict=True)
    return [CallOutcome(call, ended.outcome, ended.error_code) for call, ended in pairs]


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
