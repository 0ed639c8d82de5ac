"""A journal as the log that it stands for: one entry per event, with all its fields, in their order.

The journal keeps deltas in runs and each message once; here they become the events they were made of.
Histories in entries are views: they cost nothing until somebody looks into them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, field, to_builtins

from robota.core.context import window_state
from robota.core.events import PayloadKind
from robota.core.messages import AssistantMessage, Json, JsonObject, Message, ToolCall
from robota.core.model_call import ROUND_SEPARATOR
from robota.core.tool_call import NOT_STARTED
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal import records
from robota.sessions.journal.conversation import ConversationFold
from robota.sessions.journal.decoding import methods_by_record, parse_arguments, split_record
from robota.sessions.journal.file.reader import read_journal
from robota.sessions.journal.pieces import (
    ANSWER,
    INPUT,
    NATIVE_KINDS,
    PROGRESS,
    TEXT_WITH_BYTES,
    THOUGHT,
    NativeNumbers,
)
from robota.sessions.journal.port import JournalProblem
from robota.sessions.store.message_codec import as_json

LogEntry: TypeAlias = JsonObject
"""`timestamp`, `sessionId`, `event` and the fields of that event."""


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

    def __iter__(self) -> Iterator[LogEntry]:
        fold = EntryFold()
        for record in self.records():
            yield from fold.take(record)
        self.problems.extend(fold.conversation.repairs)

    def records(self) -> Iterator[records.Record]:
        """What the journal has recorded, one by one."""
        for item in read_journal(self.path, files=self._files):
            if isinstance(item, JournalProblem):
                self.problems.append(item.message)
            else:
                yield from split_record(item)


class EntryFold(Struct, eq=False):
    """Makes entries of records; knows what the records before have said."""

    conversation: ConversationFold = field(default_factory=ConversationFold)
    _ids: JsonObject = {}
    _request: JsonObject = {}
    _tools: Json = []
    _input: str = ""
    _web: JsonObject = {}
    _natives: NativeNumbers = field(default_factory=NativeNumbers)
    _texts: int = 0
    _surface: str | None = None
    _calls: tuple[ToolCall, ...] = ()
    _finished: int = 0
    """Calls of the batch that have ended."""

    def take(self, record: records.Record) -> Iterator[LogEntry]:
        message = self.conversation.take(record)
        if isinstance(message, AssistantMessage):
            self._calls = message.tool_calls
        if isinstance(record, records.MessageRecord | records.ToolMessageRecord):
            return self._take_message(record, message)
        take = _METHODS.get(type(record))
        if take is None:
            return iter((self._as_written(record),))
        entries: Iterator[LogEntry] = take(self, record)
        return entries

    def _as_written(self, record: records.Record) -> LogEntry:
        if isinstance(record, records.Unknown):
            return {name: value for name, value in record.fields.items() if name not in ("crc", "v", "run")}
        fields = {
            name: to_builtins(value)
            for name, own in zip(record.__struct_encode_fields__, record.__struct_fields__, strict=True)
            if name not in ("ev", "run") and (value := getattr(record, own)) is not None
        }
        ids = self._ids if isinstance(record, records.RunRecord) and record.run else {}
        return {**_head(record, record.name), **fields, **ids}

    def _entry(self, record: records.Record, event: str, fields: JsonObject) -> LogEntry:
        ids: JsonObject = {}
        if isinstance(record, records.RunRecord) and (record.run or record.round):
            ids = {**self._ids, "round": record.round}
        return {**_head(record, event), **ids, **fields}

    def _view(self) -> LazyList:
        """What the model sees at this point."""
        store = self.conversation.store
        return LazyList(store.messages_for_api(), as_json, store.epoch)

    # --- the run ----------------------------------------------------------------------------------------

    def take_session_init(self, record: records.SessionBegan) -> Iterator[LogEntry]:
        self._tools, self._web = record.tool_schemas or [], record.web_tools
        yield self._as_written(record)

    def take_user(self, record: records.UserRecord) -> Iterator[LogEntry]:
        self._input = record.prompt or record.input
        yield self._as_written(record)

    def take_pre_run(self, record: records.PreRunRecord) -> Iterator[LogEntry]:
        entry = self._as_written(record)
        self._web = self._web if record.web_tools is None else record.web_tools
        for name in ("context", "usedTokens", "round", *self._ids):
            entry.pop(name, None)
        yield {
            **entry,
            "webTools": self._web,
            "input": (record.context or "") + self._input,
            "history": self._view(),
            "webToolsEnabled": any(tool.get("enabled") for tool in self._web.values()),
        }
        if record.used_tokens is not None:
            yield from self.take_context(record)

    def take_context(self, record: records.ContextRecord | records.PreRunRecord) -> Iterator[LogEntry]:
        state = window_state(record.used_tokens or 0, record.max_tokens)
        yield {**_head(record, "context"), **to_builtins(state)}

    def take_run_start(self, record: records.RunBegan) -> Iterator[LogEntry]:
        self._ids = {"executionId": record.execution_id, "conversationId": record.conversation_id}
        yield self._as_written(record)

    def take_run_end(self, record: records.RunEnded) -> Iterator[LogEntry]:
        store = self.conversation.store
        history = store.timeline
        last = next((said for said in reversed(history) if isinstance(said, AssistantMessage)), None)
        text = record.text
        if text is None:
            text = last.content if last is not None else ""
        if record.outcome == "error":
            known = {"message": record.message, "code": record.code, "recoverable": record.recoverable}
            yield {**_head(record, "error"), **known, **self._ids, "historyLength": len(store)}
        elif record.outcome == "interrupted":
            yield {**_head(record, "interrupted"), **self._ids, "content": text}
        else:
            yield {
                **_head(record, "assistant"),
                "content": text,
                **self._ids,
                "history": LazyList(history, as_json, store.epoch),
                "historyStructure": LazyList(history, describe_structure, store.epoch),
                "rounds": record.rounds,
                "stopReason": record.stop_reason,
                "usage": to_builtins(record.usage),
            }

    # --- the model --------------------------------------------------------------------------------------

    def take_provider_request(self, record: records.RequestRecord) -> Iterator[LogEntry]:
        if record.round > 1:
            yield self._entry(record, "text_delta", {"sequence": 0, "delta": ROUND_SEPARATOR})
        if record.extra is None and record.tools is not None:
            self._tools = record.tools
        view: Json = self._view()
        if record.extra is not None:
            view = [*view, as_json(record.extra)]
        self._natives, self._texts, self._surface = NativeNumbers(), 0, None
        if record.provider is not None:
            self._request = {"provider": record.provider, "model": record.model}
        tools = self._tools if record.tools is None else record.tools
        request = {**self._request, "messages": view, "tools": tools}
        if record.options is not None:
            request["options"] = record.options
        yield self._entry(record, "provider_request", request)

    def take_stream(self, record: records.Stream) -> Iterator[LogEntry]:
        self._surface = record.pieces.surface or self._surface
        self._natives.enter(record.pieces)
        for kind, text, beside in record.pieces.each():
            if kind in ANSWER:
                if kind == TEXT_WITH_BYTES:
                    yield self._native(record, "stream_event", beside)
                self._texts += 1
                piece = {"sequence": self._texts, "delta": text}
                yield self._entry(record, "provider_stream_raw_delta", piece)
                yield self._entry(record, "text_delta", piece)
            elif kind == THOUGHT:
                yield self._entry(record, "reasoning_delta", {"delta": text})
            elif kind == INPUT:
                call = dict(zip(("index", "toolCallId", "toolName"), beside, strict=True))
                yield self._entry(record, "tool_input_delta", {**call, "delta": text})
            elif kind == PROGRESS:
                told = self._call(record, beside).items()
                shown: JsonObject = {name: value for name, value in told if name in ("callId", "toolName")}
                yield self._entry(record, "tool_progress", {**shown, "text": text})
            else:
                yield self._native(record, NATIVE_KINDS[kind], beside)

    def _native(self, record: records.Stream, kind: PayloadKind, payload: Json) -> LogEntry:
        sequence, metadata = self._natives.take(kind)
        fields = {
            "provider": self._request.get("provider"),
            "payloadKind": kind,
            "sequence": sequence,
            "payload": payload,
        }
        if self._surface is not None:
            fields["apiSurface"] = self._surface
        if metadata:
            fields["metadata"] = metadata
        return self._entry(record, "provider_native_raw_payload", fields)

    def _take_message(
        self, record: records.MessageRecord | records.ToolMessageRecord, message: Message | None
    ) -> Iterator[LogEntry]:
        if message is None:
            return
        said = as_json(message)
        if isinstance(record, records.MessageRecord) and record.reply:
            yield from self._response(record, said, kept=True)
            yield self._entry(record, "assistant_message_committed", {"message": said})
        change = {"mutation": "append_message", "index": record.index, "message": said}
        yield self._entry(record, "history_mutation", change)
        if isinstance(record, records.ToolMessageRecord):
            committed = {"batchId": self._batch(record), "index": record.result, "message": said}
            yield self._entry(record, "tool_message_committed", committed)

    def take_empty_reply(self, record: records.EmptyReply) -> Iterator[LogEntry]:
        yield from self._response(record, as_json(record.message), kept=False)

    def _response(
        self, record: records.MessageRecord | records.EmptyReply, said: JsonObject, *, kept: bool
    ) -> Iterator[LogEntry]:
        raw: JsonObject = {"response": said, "responseKind": "provider-normalized-message", "kept": kept}
        if record.error:
            raw["error"] = record.error
        yield self._entry(record, "provider_response_raw", {**self._request, **raw})
        normalized = {"response": said, "toolCallsCount": len(said.get("toolCalls") or ())}
        yield self._entry(record, "provider_response_normalized", {**self._request, **normalized})

    # --- tools ------------------------------------------------------------------------------------------

    def _batch(self, record: records.RunRecord) -> str:
        return f"{self._ids.get('executionId', '')}-r{record.round}"

    def _call(self, record: records.RunRecord, at: int) -> JsonObject:
        calls, batch = self._calls, self._batch(record)
        known = {"toolName": calls[at].name, "toolCallId": calls[at].id} if at < len(calls) else {}
        return {"batchId": batch, "index": at, "callId": f"{batch}-{at}", **known}

    def take_tool_batch_started(self, record: records.BatchBegan) -> Iterator[LogEntry]:
        self._finished = 0
        fields = {
            "batchId": self._batch(record),
            "mode": record.batch.mode,
            "maxConcurrency": record.batch.max_concurrency,
            "requestCount": len(self._calls),
            "tools": [call.name for call in self._calls],
        }
        yield self._entry(record, "tool_batch_started", fields)

    def take_tool_start(self, record: records.CallBegan | records.CallEnded) -> Iterator[LogEntry]:
        at, call = record.index, self._call(record, record.index)
        parameters = record.parameters
        if parameters is UNSET:
            parameters = parse_arguments(self._calls[at].arguments) if at < len(self._calls) else None
        path = [
            {"ownerType": "agent", "ownerId": self._ids.get("conversationId", "")},
            {"ownerType": "execution", "ownerId": self._ids.get("executionId", "")},
            {"ownerType": "tool", "ownerId": call["callId"]},
        ]
        fields = {**call, "parameters": parameters, "ownerPath": path}
        yield self._entry(record, "tool_execution_request", fields)

    def take_permission_decided(self, record: records.Decision) -> Iterator[LogEntry]:
        verdict = {name: getattr(record.verdict, name) for name in record.verdict.__struct_fields__}
        yield self._entry(record, "permission_decided", {**verdict, **self._call(record, record.index)})

    def take_tool_result(self, record: records.CallEnded) -> Iterator[LogEntry]:
        if record.error_code == NOT_STARTED:
            yield from self.take_tool_start(record)
        self._finished += 1
        fields = {
            **self._call(record, record.index),
            "toolName": record.tool_name,
            "success": record.outcome == "success",
            "outcome": record.outcome,
            "result": record.content,
            "error": record.error,
            "errorCode": record.error_code,
            "metadata": record.metadata,
            "duration": record.duration,
            "finished": self._finished,
        }
        yield self._entry(record, "tool_execution_result", fields)


_METHODS = methods_by_record(EntryFold)


def _head(record: records.Record, event: str) -> LogEntry:
    return {
        "timestamp": record.timestamp, "sessionId": record.session_id, "event": event, "seq": record.seq,
    }  # fmt: skip


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


class LazyList(Sequence[Json]):
    """A list whose items are made when they are looked at.

    Lists with the same `source` are beginnings of one list that only grows.
    """

    __slots__ = ("_items", "_make", "source")

    def __init__(self, items: Sequence[Any], make: Callable[[Any], Json], source: object = None) -> None:
        self._items = items
        self._make = make
        self.source = source

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._make(item) for item in self._items[index]]
        return self._make(self._items[index])

    def __iter__(self) -> Iterator[Json]:
        return (self._make(item) for item in self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a list is not a key

    def __repr__(self) -> str:
        return f"<{len(self)} items>"
