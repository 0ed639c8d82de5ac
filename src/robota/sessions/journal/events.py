"""The turn events of a session as its journal tells them, under the numbers they had when they happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from msgspec import UNSET, convert
from msgspec.structs import asdict, replace

from robota.core.context import window_state
from robota.core.events import (
    Compacted,
    ContextUpdated,
    ModelChanged,
    Noticed,
    ProviderRetried,
    QuestionAsked,
    QuestionClosed,
    ReasoningDelta,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ServerToolUsed,
    SettingsChanged,
    TextDelta,
    ToolEnded,
    ToolInputDelta,
    ToolProgressed,
    ToolStarted,
    TurnEvent,
)
from robota.core.messages import AssistantMessage, Part, TokenUsage, ToolCall, prompt_text
from robota.core.model_call import ROUND_SEPARATOR
from robota.core.tool_call import NOT_STARTED
from robota.sessions.journal.decoding import parse_arguments, split_record
from robota.sessions.journal.records import (
    INPUT,
    PROGRESS,
    TEXT,
    TEXT_WITH_BYTES,
    THOUGHT,
    CallBegan,
    CallEnded,
    ClosedRecord,
    CompactedRecord,
    ContextRecord,
    EventRecord,
    MessageRecord,
    ModelRecord,
    NoticeRecord,
    PreRunRecord,
    QuestionRecord,
    Record,
    RequestRecord,
    RetryRecord,
    RunBegan,
    RunEnded,
    ServerToolRecord,
    SettingsRecord,
    Stream,
    UserRecord,
    read_list,
)

_AS_WRITTEN: dict[type[EventRecord], type[TurnEvent]] = {
    NoticeRecord: Noticed,
    ServerToolRecord: ServerToolUsed,
    RetryRecord: ProviderRetried,
    CompactedRecord: Compacted,
    ModelRecord: ModelChanged,
    SettingsRecord: SettingsChanged,
    QuestionRecord: QuestionAsked,
    ClosedRecord: QuestionClosed,
}


class EventReader:
    """Takes records in order and gives the events that they tell of."""

    def __init__(self) -> None:
        self.event = 0
        """The number of the last event that was told."""
        self._execution = ""
        self._prompt = ""
        self._answer = ""
        self._calls: tuple[ToolCall, ...] = ()

    def take(self, record: Record) -> list[TurnEvent]:
        """The events that the record tells of; none of a journal that does not number them."""
        made = [event for part in split_record(record) for event in self._make(part)]
        if not record.ev:
            return []
        first, self.event = record.ev - len(made) + 1, record.ev
        return [replace(event, seq=first + at) for at, event in enumerate(made)]

    def _make(self, record: Record) -> Iterable[TurnEvent]:
        if isinstance(record, EventRecord) and type(record) in _AS_WRITTEN:
            return (self._as_written(record),)
        make = _MAKE.get(type(record))
        return () if make is None else make(self, record)

    def _as_written(self, record: EventRecord) -> TurnEvent:
        kind = _AS_WRITTEN[type(record)]
        known = {name: value for name, value in asdict(record).items() if name in kind.__struct_fields__}
        execution = self._execution if record.run else ""
        return kind(**{**known, "seq": 0, "execution_id": execution})

    # --- the run ------------------------------------------------------------------------------------------

    def take_user(self, record: UserRecord) -> Iterable[TurnEvent]:
        parts = None if record.parts is None else convert(record.parts, tuple[Part, ...])
        words = record.input if record.prompt is None else record.prompt
        self._prompt = words if parts is None else prompt_text(parts)
        return ()

    def take_run(self, record: RunBegan) -> Iterable[TurnEvent]:
        self._execution = record.execution_id
        yield RunStarted(
            conversation_id=record.conversation_id,
            agent_name=record.agent_name,
            prompt=self._prompt if record.prompt is None else record.prompt,
            max_rounds=record.max_rounds,
            execution_id=record.execution_id,
        )

    def take_pre_run(self, record: PreRunRecord) -> Iterable[TurnEvent]:
        if record.used_tokens is not None:
            yield _context(record.used_tokens, record.max_tokens)

    def take_context(self, record: ContextRecord) -> Iterable[TurnEvent]:
        yield _context(record.used_tokens, record.max_tokens)

    def take_request(self, record: RequestRecord) -> Iterable[TurnEvent]:
        if record.round > 1:
            yield TextDelta(ROUND_SEPARATOR, record.round, execution_id=self._execution)

    def take_message(self, record: MessageRecord) -> Iterable[TurnEvent]:
        if isinstance(record.message, AssistantMessage):
            self._answer, self._calls = record.message.content, record.message.tool_calls
        return ()

    def take_end(self, record: RunEnded) -> Iterable[TurnEvent]:
        run: dict[str, Any] = {"execution_id": self._execution}
        text = self._answer if record.text is None else record.text
        if record.outcome == RunFailed.name:
            yield RunFailed(message=record.message, code=record.code, recoverable=record.recoverable, **run)
        elif record.outcome == RunInterrupted.name:
            yield RunInterrupted(text=text, **run)
        else:
            usage = TokenUsage() if record.usage is None else record.usage
            stop = record.stop_reason
            yield RunCompleted(text=text, rounds=record.rounds, stop_reason=stop, usage=usage, **run)

    # --- replies and tools ----------------------------------------------------------------------------------

    def take_stream(self, record: Stream) -> Iterator[TurnEvent]:
        pieces, number, run = record.pieces, record.round, self._execution
        texts = iter(pieces.list_texts())
        inputs, progress = iter(read_list(pieces.inputs)), iter(read_list(pieces.progress))
        place = pieces.first
        for kind in pieces.list_kinds():
            if kind in (TEXT, TEXT_WITH_BYTES):
                yield TextDelta(next(texts), number, place, execution_id=run)
                place += 1
            elif kind == THOUGHT:
                yield ReasoningDelta(next(texts), number, execution_id=run)
            elif kind == INPUT:
                at, call_id, name = next(inputs)
                yield ToolInputDelta(
                    index=at,
                    tool_call_id=call_id,
                    tool_name=name,
                    delta=next(texts),
                    round=number,
                    execution_id=run,
                )
            elif kind == PROGRESS:
                at = next(progress)
                yield ToolProgressed(
                    call_id=self._call_id(number, at),
                    tool_name=self._calls[at].name if at < len(self._calls) else "",
                    text=next(texts),
                    round=number,
                    execution_id=run,
                )

    def take_start(self, record: CallBegan | CallEnded) -> Iterable[TurnEvent]:
        call = self._call(record.index)
        arguments = parse_arguments(call.arguments) if record.parameters is UNSET else record.parameters
        yield ToolStarted(
            call_id=self._call_id(record.round, record.index),
            tool_call_id=call.id,
            tool_name=call.name,
            arguments=arguments or {},
            round=record.round,
            execution_id=self._execution,
        )

    def take_result(self, record: CallEnded) -> Iterable[TurnEvent]:
        if record.error_code == NOT_STARTED:
            yield from self.take_start(record)
        yield ToolEnded(
            call_id=self._call_id(record.round, record.index),
            tool_call_id=self._call(record.index).id,
            tool_name=record.tool_name,
            outcome=record.outcome,
            content=record.content,
            error=record.error,
            error_code=record.error_code,
            metadata=record.metadata,
            duration=record.duration,
            round=record.round,
            execution_id=self._execution,
        )

    def _call(self, index: int) -> ToolCall:
        return self._calls[index] if index < len(self._calls) else ToolCall("", "")

    def _call_id(self, round_number: int, index: int) -> str:
        return f"{self._execution}-r{round_number}-{index}"


def _context(used: int, limit: int) -> ContextUpdated:
    return ContextUpdated(**asdict(window_state(used, limit)))


_Make: TypeAlias = Callable[[EventReader, Any], Iterable[TurnEvent]]
_MAKE: dict[type[Record], _Make] = {
    UserRecord: EventReader.take_user,
    RunBegan: EventReader.take_run,
    PreRunRecord: EventReader.take_pre_run,
    ContextRecord: EventReader.take_context,
    RequestRecord: EventReader.take_request,
    MessageRecord: EventReader.take_message,
    RunEnded: EventReader.take_end,
    Stream: EventReader.take_stream,
    CallBegan: EventReader.take_start,
    CallEnded: EventReader.take_result,
}
