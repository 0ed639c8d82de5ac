"""The turn events of a session as its journal tells them, under the numbers they had when they happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import UNSET, Struct, convert
from msgspec.structs import asdict, replace

from robota.core import events
from robota.core.context import window_state
from robota.core.events import SubagentEvent, TurnEvent
from robota.core.messages import AssistantMessage, JsonObject, Part, TokenUsage, ToolCall, prompt_text
from robota.core.model_call import ROUND_SEPARATOR
from robota.core.tool_call import NOT_STARTED
from robota.sessions.journal import records
from robota.sessions.journal.decoding import methods_by_record, parse_arguments, split_record
from robota.sessions.journal.pieces import ANSWER, INPUT, PROGRESS, THOUGHT
from robota.sessions.journal.records import Record, RunRecord

_AS_WRITTEN: dict[type[Record], type[TurnEvent]] = {
    records.NoticeRecord: events.Noticed,
    records.ServerToolRecord: events.ServerToolUsed,
    records.RetryRecord: events.ProviderRetried,
    records.CompactedRecord: events.Compacted,
    records.ModelRecord: events.ModelChanged,
    records.SettingsRecord: events.SettingsChanged,
    records.TaskRecord: events.BackgroundTaskChanged,
    records.GroupRecord: events.BackgroundGroupChanged,
    records.QuestionRecord: events.QuestionAsked,
    records.ClosedRecord: events.QuestionClosed,
}
_ENDS: dict[str, type[TurnEvent]] = {
    kind.name: kind for kind in (events.RunCompleted, events.RunFailed, events.RunInterrupted)
}


class EventReader(Struct, eq=False):
    """Takes records in order and gives the events that they tell of."""

    event: int = 0
    """The number of the last event that was told."""
    _execution: str = ""
    _prompt: str = ""
    _display: str = ""
    _answer: str = ""
    _calls: tuple[ToolCall, ...] = ()
    _arguments: dict[int, JsonObject] = {}
    """Of the calls that were begun, by their index."""

    def take(self, record: Record) -> list[TurnEvent]:
        """The events that the record tells of; none of a journal that does not number them."""
        made = [event for part in split_record(record) for event in self._make(part)]
        if not record.ev:
            return []
        first, self.event = record.ev - len(made) + 1, record.ev
        return [replace(event, seq=first + at) for at, event in enumerate(made)]

    def _make(self, record: Record) -> Iterable[TurnEvent]:
        kind = _AS_WRITTEN.get(type(record))
        if kind is not None and isinstance(record, RunRecord):
            return (self._tell(kind, record),)
        make = _METHODS.get(type(record))
        return () if make is None else make(self, record) or ()

    def _tell(self, kind: type[TurnEvent], record: RunRecord, **more: Any) -> TurnEvent:
        """An event with the fields that it has in common with its record."""
        known = {**asdict(record), "seq": 0, "execution_id": self._execution if record.run else "", **more}
        return kind(**{name: known[name] for name in kind.__struct_fields__ if name in known})

    # --- the run ------------------------------------------------------------------------------------------

    def take_subagent(self, record: records.SubagentRecord) -> Iterable[TurnEvent]:
        yield convert({"event": "subagent", "agentId": record.agent_id, "inner": record.inner}, SubagentEvent)

    def take_user(self, record: records.UserRecord) -> None:
        parts = None if record.parts is None else convert(record.parts, tuple[Part, ...])
        words = record.input if record.prompt is None else record.prompt
        self._prompt = words if parts is None else prompt_text(parts)
        self._display = "" if record.display in (None, self._prompt) else record.display or ""

    def take_run_start(self, record: records.RunBegan) -> Iterator[TurnEvent]:
        self._execution = record.execution_id
        prompt = self._prompt if record.prompt is None else record.prompt
        yield self._tell(
            events.RunStarted,
            record,
            execution_id=record.execution_id,
            prompt=prompt,
            display=self._display,
        )

    def take_pre_run(self, record: records.PreRunRecord) -> Iterator[TurnEvent]:
        if record.used_tokens is not None:
            yield _context(record.used_tokens, record.max_tokens)

    def take_context(self, record: records.ContextRecord) -> Iterator[TurnEvent]:
        yield _context(record.used_tokens, record.max_tokens)

    def take_provider_request(self, record: records.RequestRecord) -> Iterator[TurnEvent]:
        self._calls = ()  # if the record of the next answer is lost, these are not its calls
        if record.round > 1:
            yield events.TextDelta(ROUND_SEPARATOR, record.round, execution_id=self._execution)

    def take_message(self, record: records.MessageRecord) -> Iterator[TurnEvent]:
        message = record.message
        if isinstance(message, AssistantMessage):
            self._answer, self._calls = message.content, message.tool_calls
        elif message is not None and message.metadata.get("origin") == "steering":
            yield events.PromptSteered(message.content, execution_id=self._execution)

    def take_run_end(self, record: records.RunEnded) -> Iterator[TurnEvent]:
        text = self._answer if record.text is None else record.text
        usage = TokenUsage() if record.usage is None else record.usage
        yield self._tell(_ENDS.get(record.outcome, events.RunCompleted), record, text=text, usage=usage)

    # --- replies and tools ----------------------------------------------------------------------------------

    def take_stream(self, record: records.Stream) -> Iterator[TurnEvent]:
        place, number = record.pieces.first, record.round
        run: dict[str, Any] = {"execution_id": self._execution}
        for kind, text, call in record.pieces.each(native=False):
            if kind in ANSWER:
                yield events.TextDelta(text, number, place, **run)
                place += 1
            elif kind == THOUGHT:
                yield events.ReasoningDelta(text, number, **run)
            elif kind == INPUT:
                names = dict(zip(("index", "tool_call_id", "tool_name"), call, strict=True))
                yield events.ToolInputDelta(**names, delta=text, round=number, **run)
            elif kind == PROGRESS:
                id, name = self._call_id(number, call), self._call(call).name
                yield events.ToolProgressed(call_id=id, tool_name=name, text=text, round=number, **run)

    def take_tool_start(self, record: records.CallBegan | records.CallEnded) -> Iterator[TurnEvent]:
        call = self._call(record.index)
        arguments = parse_arguments(call.arguments) if record.parameters is UNSET else record.parameters
        self._arguments[record.index] = arguments or {}
        yield self._tell(
            events.ToolStarted,
            record,
            call_id=self._call_id(record.round, record.index),
            tool_call_id=call.id,
            tool_name=call.name,
            arguments=arguments or {},
        )

    def take_tool_result(self, record: records.CallEnded) -> Iterator[TurnEvent]:
        if record.error_code == NOT_STARTED:
            yield from self.take_tool_start(record)
        id, told = self._call_id(record.round, record.index), self._call(record.index).id
        arguments = self._arguments.get(record.index, {})
        yield self._tell(events.ToolEnded, record, call_id=id, tool_call_id=told, arguments=arguments)

    def _call(self, index: int) -> ToolCall:
        return self._calls[index] if index < len(self._calls) else ToolCall("", "")

    def _call_id(self, round_number: int, index: int) -> str:
        return f"{self._execution}-r{round_number}-{index}"


_METHODS = methods_by_record(EventReader)


def _context(used: int, limit: int) -> TurnEvent:
    return events.ContextUpdated(**asdict(window_state(used, limit)))
