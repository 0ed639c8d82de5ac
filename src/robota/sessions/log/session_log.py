"""Reads a journal back as the log that it stands for: one entry per event, with all its fields.

The journal keeps deltas in runs and each message once; here they become the events they were made of, in the
order they happened. Histories in entries are views: they cost nothing until somebody looks into them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from msgspec import ValidationError, to_builtins

from robota.core.context import window_state
from robota.core.errors import RobotaError, StorageError
from robota.core.events import PayloadKind
from robota.core.jsontext import decode, encode
from robota.core.messages import AssistantMessage, Json, JsonObject, Message
from robota.core.model_call import ROUND_SEPARATOR
from robota.core.tool_call import NOT_STARTED
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal.payloads import PayloadStore
from robota.sessions.journal.reader import JournalProblem, JournalRecord, read_journal
from robota.sessions.journal.record_parts import split_record
from robota.sessions.journal.stream_run import (
    INPUT,
    NATIVE_EVENT,
    NATIVE_REQUEST,
    NATIVE_RESPONSE,
    TEXT,
    TEXT_WITH_BYTES,
    THOUGHT,
)
from robota.sessions.journal.tool_record import parse_arguments
from robota.sessions.log.conversation_builder import (
    CONVERSATION_EVENTS,
    ConversationBuilder,
    kinds_of,
    list_of,
)
from robota.sessions.log.conversation_restore import payloads_of, resolve_payloads
from robota.sessions.log.lazy_list import LazyList

LogEntry: TypeAlias = JsonObject
"""`timestamp`, `sessionId`, `event` and the fields of that event."""
_FRAME = ("crc", "v", "run")
UNREADABLE = (RobotaError, ValidationError, KeyError, TypeError, ValueError, IndexError, RuntimeError)
"""What may come of a record that is not what it should be."""
NATIVE_KINDS: dict[str, PayloadKind] = {
    NATIVE_EVENT: "stream_event",
    NATIVE_RESPONSE: "response",
    NATIVE_REQUEST: "request",
}


class SessionLogEntries(list[LogEntry]):
    """The entries of a log, and what was wrong with it."""

    problems: tuple[str, ...] = ()


def load_session_log_entries(path: str | os.PathLike[str], *, files: Files = REAL_FILES) -> SessionLogEntries:
    """The whole log of a session; `problems` names what was damaged. An unreadable file raises."""
    reader = SessionLogReader(os.fspath(path), files=files)
    entries = SessionLogEntries(reader)
    entries.problems = tuple(reader.problems)
    return entries


class SessionLogReader:
    """The entries of a log one after the other, in memory that follows the conversation."""

    def __init__(self, path: str, *, files: Files = REAL_FILES) -> None:
        self.path = path
        self.problems: list[str] = []
        self._files = files
        self._payloads: PayloadStore | None = None

    def __iter__(self) -> Iterator[LogEntry]:
        expander = Expander()
        for record, fields in self.records():
            try:
                yield from expander.expand(record, fields)
            except UNREADABLE as error:
                self.problems.append(f"Record {record.seq} ({record.event}) cannot be read in full: {error}.")
                yield without_frame(fields)
        self.problems.extend(expander.builder.repairs)

    def records(self) -> Iterator[tuple[JournalRecord, Mapping[str, Json]]]:
        """What the journal has recorded, one by one, with payloads."""
        for item in read_journal(self.path, files=self._files):
            if isinstance(item, JournalProblem):
                self.problems.append(item.message)
                continue
            try:
                fields: Mapping[str, Json] = item.fields()
            except StorageError as error:
                self.problems.append(str(error))
                continue
            if b'"external-payload"' in item.line:
                self._payloads = self._payloads or payloads_of(self.path, self._files)
                fields = resolve_payloads(item, fields, self._payloads, self.problems)
            yield from split_record(item, fields)


class Expander:
    """Makes entries of records; knows what the records before have said."""

    def __init__(self) -> None:
        self.builder = ConversationBuilder()
        self._ids: JsonObject = {}
        self._request: JsonObject = {}
        self._tools: Json = []
        self._input = ""
        self._web: JsonObject = {}
        self._window = 0
        self._stream_events = 0
        self._natives = 0
        """The highest number of a native payload; events of the stream have a count of their own."""
        self._texts = 0
        self._surface: str | None = None
        self._answer: AssistantMessage | None = None
        self._finished = 0
        """Calls of the batch that have ended."""

    def expand(self, record: JournalRecord, fields: Mapping[str, Json]) -> Iterator[LogEntry]:
        base = without_frame(fields)
        handler = _HANDLERS.get(record.event) if record.checked else None
        message: Message | None = None
        if record.event in CONVERSATION_EVENTS:
            message = self.builder.take(record, fields)
        if handler is None:
            if "run" in fields:
                base |= self._ids
            yield base
            return
        yield from handler(self, base, message)

    def _entry(self, base: JsonObject, event: str, fields: Mapping[str, Json]) -> LogEntry:
        head = {
            "timestamp": base["timestamp"],
            "sessionId": base["sessionId"],
            "event": event,
            "seq": base["seq"],
        }
        ids = {**self._ids, "round": base["round"]} if "round" in base else {}
        return {**head, **ids, **fields}

    def _view(self) -> LazyList:
        """What the model sees at this point."""
        store = self.builder.store
        return LazyList(store.messages_for_api(), as_json, store.epoch)

    # --- the run ----------------------------------------------------------------------------------------

    def take_init(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        self._tools = base.get("toolSchemas") or []
        self._web = base.get("webTools", {})
        yield base

    def take_user(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        self._input = base.get("prompt") or base.get("input") or ""
        yield base

    def take_pre_run(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        context = base.pop("context", None) or ""
        used = base.pop("usedTokens", None)
        self._window = base.get("maxTokens", 0)
        yield {
            **base,
            "webTools": self._web,
            "input": context + self._input,
            "history": self._view(),
            "webToolsEnabled": any(tool.get("enabled") for tool in self._web.values()),
        }
        if used is not None:
            yield self._entry(base, "context", to_builtins(window_state(used, self._window)))

    def take_start(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        before = base.pop("before", None)
        if before is not None:
            yield from self.take_pre_run(self._entry(base, "pre_run", before), None)
        self._ids = {"executionId": base["executionId"], "conversationId": base["conversationId"]}
        yield base

    def take_end(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        outcome = base.pop("outcome")
        store = self.builder.store
        history = store.timeline
        last = next((said for said in reversed(history) if isinstance(said, AssistantMessage)), None)
        text = base.pop("text", last.content if last is not None else "")
        if outcome != "complete":
            known: JsonObject = {
                name: base[name] for name in ("message", "code", "recoverable") if name in base
            }
            length = {"historyLength": len(store)} if outcome == "error" else {"content": text}
            yield {**self._entry(base, outcome, known), **self._ids, **length}
            return
        yield {
            **self._entry(base, "assistant", {"content": text}),
            **self._ids,
            "history": LazyList(history, as_json, store.epoch),
            "historyStructure": LazyList(history, describe_structure, store.epoch),
            **{name: base[name] for name in ("rounds", "stopReason", "usage") if name in base},
        }

    # --- the model --------------------------------------------------------------------------------------

    def take_request(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        if base.get("round", 0) > 1:
            yield self._entry(base, "text_delta", {"sequence": 0, "delta": ROUND_SEPARATOR})
        tools = base.get("tools")
        extra = base.get("extra")
        if extra is None and tools is not None:
            self._tools = tools
        view: Json = self._view()
        if extra is not None:
            view = [*view, extra]
        self._natives, self._stream_events, self._texts, self._surface = 0, 0, 0, None
        if "provider" in base:
            self._request = {"provider": base["provider"], "model": base.get("model")}
        request = {**self._request, "messages": view, "tools": self._tools if tools is None else tools}
        if "options" in base:
            request["options"] = base["options"]
        yield self._entry(base, "provider_request", request)

    def take_stream(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        texts, natives, inputs = (iter(list_of(base, name)) for name in ("texts", "native", "inputs"))
        self._surface = base.get("surface", self._surface)
        for kind in kinds_of(base):
            if kind in (TEXT, TEXT_WITH_BYTES):
                if kind == TEXT_WITH_BYTES:
                    yield self._native(base, "stream_event", next(natives))
                self._texts += 1
                piece = {"sequence": self._texts, "delta": next(texts)}
                yield self._entry(base, "provider_stream_raw_delta", piece)
                yield self._entry(base, "text_delta", piece)
            elif kind == THOUGHT:
                yield self._entry(base, "reasoning_delta", {"delta": next(texts)})
            elif kind == INPUT:
                at, call_id, name = next(inputs)
                fields = {"index": at, "toolCallId": call_id, "toolName": name, "delta": next(texts)}
                yield self._entry(base, "tool_input_delta", fields)
            else:
                yield self._native(base, NATIVE_KINDS[kind], next(natives))

    def _native(self, base: JsonObject, kind: str, payload: Json) -> LogEntry:
        if kind == "stream_event":
            self._stream_events = sequence = self._stream_events + 1
        else:
            sequence = self._natives + 1
        self._natives = max(self._natives, sequence)
        fields = {
            "provider": self._request.get("provider"),
            "payloadKind": kind,
            "sequence": sequence,
            "payload": payload,
        }
        if self._surface is not None:
            fields["apiSurface"] = self._surface
        return self._entry(base, "provider_native_raw_payload", fields)

    def take_message(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        if message is None:
            return
        said = as_json(message)
        if isinstance(message, AssistantMessage):
            self._answer = message
        if base.get("reply"):
            yield from self._response(base, said, kept=True)
            yield self._entry(base, "assistant_message_committed", {"message": said})
        change = {"mutation": "append_message", "index": base.get("index"), "message": said}
        yield self._entry(base, "history_mutation", change)
        if "result" in base:
            committed = {"batchId": self._batch(base), "index": base["result"], "message": said}
            yield self._entry(base, "tool_message_committed", committed)

    def take_empty_reply(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        yield from self._response(base, base["message"], kept=False)

    def _response(self, base: JsonObject, said: JsonObject, *, kept: bool) -> Iterator[LogEntry]:
        raw = {"response": said, "responseKind": "provider-normalized-message", "kept": kept}
        if base.get("error"):
            raw["error"] = base["error"]
        yield self._entry(base, "provider_response_raw", {**self._request, **raw})
        calls = len(said.get("toolCalls") or ())
        yield self._entry(
            base, "provider_response_normalized", {**self._request, "response": said, "toolCallsCount": calls}
        )

    # --- tools ------------------------------------------------------------------------------------------

    def _batch(self, base: JsonObject) -> str:
        return f"{self._ids.get('executionId', '')}-r{base.get('round', 0)}"

    def _call(self, base: JsonObject) -> JsonObject:
        at = base["index"]
        calls = self._answer.tool_calls if self._answer is not None else ()
        known = {"toolName": calls[at].name, "toolCallId": calls[at].id} if at < len(calls) else {}
        batch = self._batch(base)
        return {"batchId": batch, "index": at, "callId": f"{batch}-{at}", **known}

    def take_batch(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        calls = self._answer.tool_calls if self._answer is not None else ()
        self._finished = 0
        fields = {
            "batchId": self._batch(base),
            "mode": base.get("mode", "parallel"),
            "maxConcurrency": base.get("maxConcurrency"),
            "requestCount": len(calls),
            "tools": [call.name for call in calls],
        }
        yield self._entry(base, "tool_batch_started", fields)

    def take_tool_start(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        call = self._call(base)
        calls = self._answer.tool_calls if self._answer is not None else ()
        parameters = base.get("parameters")
        if "parameters" not in base and base["index"] < len(calls):
            parameters = parse_arguments(calls[base["index"]].arguments)
        execution = self._ids.get("executionId", "")
        path = [
            {"ownerType": "agent", "ownerId": self._ids.get("conversationId", "")},
            {"ownerType": "execution", "ownerId": execution},
            {"ownerType": "tool", "ownerId": call["callId"]},
        ]
        yield self._entry(
            base, "tool_execution_request", {**call, "parameters": parameters, "ownerPath": path}
        )

    def take_decision(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        known = ("timestamp", "sessionId", "event", "seq", "round", "index")
        said = {name: value for name, value in base.items() if name not in known}
        fields = {"decision": "allow", "rules": [], "answer": None, **said, **self._call(base)}
        yield self._entry(base, "permission_decided", fields)

    def take_tool_result(self, base: JsonObject, message: Message | None) -> Iterator[LogEntry]:
        if base.get("errorCode") == NOT_STARTED:
            yield from self.take_tool_start(base, None)
        outcome = base.get("outcome", "success")
        self._finished += 1
        fields = {
            **self._call(base),
            "toolName": base.get("toolName"),
            "success": outcome == "success",
            "outcome": outcome,
            "result": base.get("content", ""),
            "error": base.get("error"),
            "errorCode": base.get("errorCode"),
            "metadata": base.get("metadata", {}),
            "duration": base.get("duration", 0.0),
            "finished": self._finished,
        }
        yield self._entry(base, "tool_execution_result", fields)


Handler: TypeAlias = Callable[[Expander, JsonObject, Message | None], Iterator[LogEntry]]
_HANDLERS: dict[str, Handler] = {
    "session_init": Expander.take_init,
    "user": Expander.take_user,
    "pre_run": Expander.take_pre_run,
    "run_start": Expander.take_start,
    "run_end": Expander.take_end,
    "provider_request": Expander.take_request,
    "stream": Expander.take_stream,
    "message": Expander.take_message,
    "empty_reply": Expander.take_empty_reply,
    "tool_batch_started": Expander.take_batch,
    "tool_start": Expander.take_tool_start,
    "permission_decided": Expander.take_decision,
    "tool_result": Expander.take_tool_result,
}


def without_frame(fields: Mapping[str, Json]) -> LogEntry:
    """A record as an entry."""
    return {name: value for name, value in fields.items() if name not in _FRAME}


def describe_structure(message: Message) -> JsonObject:
    """A message's outline, as the `assistant` event lists it."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return {
        "role": message.role,
        "contentLength": len(message.content),
        "hasToolCalls": bool(calls),
        "toolCallNames": [call.name for call in calls],
        "metadata": as_json(message.metadata),
    }


def as_json(value: object) -> Json:
    """The value as a reader of its JSON has it."""
    return decode(encode(value))
