"""Reads a conversation out of the entries of a log, and says what a replay of that log would miss.

Both take the entries of `load_session_log_entries`, of our own journals and of logs that the TypeScript
original wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec import ValidationError as ShapeError

from robota.core.conversation import ConversationStore
from robota.core.errors import ValidationError
from robota.core.messages import AssistantMessage, HistoryEntry, Json, Message
from robota.sessions.journal.entries import LazyList, LogEntry
from robota.sessions.journal.file.payloads import KIND
from robota.sessions.store.message_codec import history_entry_from_record, message_from_record, read_time

ReplayIssueCode: TypeAlias = Literal[
    "PROVIDER_RESPONSE_RAW_MISSING",
    "PROVIDER_NATIVE_RAW_PAYLOAD_MISSING",
    "PROVIDER_RESPONSE_NORMALIZED_MISSING",
    "TOOL_RESULT_MISSING",
    "TOOL_REQUEST_MISSING",
    "PAYLOAD_REFERENCE_INVALID",
]
_NEEDED: dict[str, ReplayIssueCode] = {
    "provider_native_raw_payload": "PROVIDER_NATIVE_RAW_PAYLOAD_MISSING",
    "provider_response_raw": "PROVIDER_RESPONSE_RAW_MISSING",
    "provider_response_normalized": "PROVIDER_RESPONSE_NORMALIZED_MISSING",
}
_ANSWERS = frozenset(("response", "stream_event"))
"""Kinds of native payloads that came from the provider."""


# --- the conversation ------------------------------------------------------------------------------------


class SessionReplayRecord(Struct, frozen=True, kw_only=True):
    """A conversation as its log tells it."""

    session_id: str
    messages: tuple[Message, ...]
    """Every message since the beginning, or since the conversation was cleared, without what was rewound."""
    history: tuple[HistoryEntry, ...]
    """The same with the events of the timeline."""
    model_view: tuple[Message, ...]
    """What a provider would be sent: it begins with the last compaction."""
    problems: tuple[str, ...] = ()


def replay_session_log_entries(entries: Iterable[LogEntry]) -> SessionReplayRecord:
    """The conversation that the entries add up to. What cannot be read is named in `problems`."""
    store, problems, session_id = ConversationStore(), [], ""
    for number, entry in enumerate(entries, 1):
        session_id = session_id or str(entry.get("sessionId") or "")
        try:
            _apply(store, entry, number)
        except (ValidationError, ShapeError, KeyError, TypeError, ValueError) as error:
            problems.append(f"Entry {number} ({entry.get('event')}) was left out: {error}")
    return SessionReplayRecord(
        session_id=session_id,
        messages=tuple(store.messages),
        history=tuple(store.history),
        model_view=tuple(store.messages_for_api()),
        problems=tuple(problems),
    )


def _apply(store: ConversationStore, entry: LogEntry, number: int) -> None:
    event = entry.get("event")
    if event == "history_mutation":
        store.append(_message(entry, number))
    elif event == "compaction_marked":
        message = _message(entry, number)
        if not isinstance(message, AssistantMessage):
            raise ValidationError(f"a summary is an assistant message, not {message.role}.", field="message")
        store.restore_mark(message)
    elif event == "history_cleared":
        store.clear()
    elif event == "history_rewound":
        store.take_back_rewind() if entry.get("back") else store.rewind(entry["messages"])
    elif event == "history_entry":
        store.add_entry(history_entry_from_record(entry["entry"], id=f"entry-{number}"))


def _message(entry: LogEntry, number: int) -> Message:
    return message_from_record(
        entry["message"], id=f"entry-{number}", timestamp=read_time(entry.get("timestamp"))
    )


# --- what is missing -------------------------------------------------------------------------------------


class ReplayIssue(Struct, frozen=True, kw_only=True):
    """Something a replay needs and the log does not have."""

    code: ReplayIssueCode
    event: str
    """The event of the entry that lacks something."""
    key: str
    """`executionId:round` of a model call, `executionId:toolCallId` of a tool call."""
    seq: int
    """The entry's record in the journal; 0 in logs without numbers."""
    message: str


class ReplayValidation(Struct, frozen=True, kw_only=True):
    issues: tuple[ReplayIssue, ...]

    @property
    def ok(self) -> bool:
        return not self.issues


def validate_session_replay_log_entries(entries: Iterable[LogEntry]) -> ReplayValidation:
    """Whether every model call and every tool call is there with everything that came back."""
    inspection = _Inspection()
    for entry in entries:
        inspection.take(entry)
    return ReplayValidation(issues=tuple(sorted(inspection.issues(), key=lambda issue: issue.seq)))


class _ModelCall(Struct):
    """What the log has of one model call."""

    request: LogEntry | None = None
    has: set[str] = set()
    """The events of what it must have, as far as they were found."""


class _Inspection(Struct, eq=False):
    _calls: dict[str, _ModelCall] = {}
    _requests: dict[tuple[str, ...], list[LogEntry]] = {}
    _found: list[ReplayIssue] = []

    def take(self, entry: LogEntry) -> None:
        event = str(entry.get("event"))
        for field, value in entry.items():
            for reference in _references(value):
                path = reference.get("relativePath")
                self._found.append(_issue("PAYLOAD_REFERENCE_INVALID", entry, field=field, path=path))
        if event.startswith("provider_"):
            self._take_model_call(event, entry)
        elif event == "tool_execution_request":
            self._requests.setdefault(_identity(entry), []).append(entry)
        elif event == "tool_execution_result":
            waiting = self._requests.get(_identity(entry))
            if waiting:
                waiting.pop(0)
            else:
                self._found.append(_issue("TOOL_REQUEST_MISSING", entry))

    def _take_model_call(self, event: str, entry: LogEntry) -> None:
        call = self._calls.setdefault(_model_key(entry), _ModelCall())
        if event == "provider_request":
            call.request = entry
        elif event != "provider_native_raw_payload" or entry.get("payloadKind") in _ANSWERS:
            call.has.add(event)
        if event == "provider_response_raw":
            response = entry.get("response")
            if entry.get("error") or (
                isinstance(response, Mapping) and response.get("state") == "interrupted"
            ):
                call.has.add("provider_native_raw_payload")  # it may have ended before anything was said

    def issues(self) -> Iterator[ReplayIssue]:
        yield from self._found
        for call in self._calls.values():
            for event, code in _NEEDED.items():
                if call.request is not None and event not in call.has:
                    yield _issue(code, call.request)
        for waiting in self._requests.values():
            for entry in waiting:
                yield _issue("TOOL_RESULT_MISSING", entry)


_SENTENCES: dict[ReplayIssueCode, str] = {
    "PROVIDER_RESPONSE_RAW_MISSING": "The model call {key} has no reply.",
    "PROVIDER_NATIVE_RAW_PAYLOAD_MISSING": (
        "The model call {key} has nothing of what its provider really sent."
    ),
    "PROVIDER_RESPONSE_NORMALIZED_MISSING": "The model call {key} has no reply in the form of a message.",
    "TOOL_RESULT_MISSING": "{tool} was called, but no result was recorded.",
    "TOOL_REQUEST_MISSING": "A result of {tool} was recorded, but not that it was called.",
    "PAYLOAD_REFERENCE_INVALID": (
        "The field {field} was put into the file {path}, which does not have it any more."
    ),
}


def _issue(code: ReplayIssueCode, entry: LogEntry, **facts: Json) -> ReplayIssue:
    seq, tool = entry.get("seq"), entry.get("toolName") or "A tool"
    key = ""
    if "toolCallId" in entry or code.startswith("TOOL"):
        key = f"{entry.get('executionId', '')}:{entry.get('toolCallId', '')}"
    elif "round" in entry or code.startswith("PROVIDER"):
        key = _model_key(entry)
    return ReplayIssue(
        code=code,
        event=str(entry.get("event")),
        key=key,
        seq=seq if isinstance(seq, int) else 0,
        message=_SENTENCES[code].format(key=key, tool=tool, **facts),
    )


def _model_key(entry: LogEntry) -> str:
    return f"{entry.get('executionId', '')}:{entry.get('round', '')}"


def _identity(entry: LogEntry) -> tuple[str, ...]:
    """Which call it is. A provider may use the same id in each of its rounds."""
    return str(entry.get("executionId")), str(entry.get("round")), str(entry.get("toolCallId"))


def _references(value: Json) -> Iterator[Mapping[str, Json]]:
    """The references in a value. Histories are not looked into: their messages are entries of their own."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            if item.get("kind") == KIND:
                yield item
            else:
                waiting.extend(item.values())
        elif isinstance(item, list | tuple) and not isinstance(item, LazyList):
            waiting.extend(item)
