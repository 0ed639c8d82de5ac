"""Rebuilds a conversation from the records of its journal, one record at a time.

What a crash cut is repaired the same way every time, so that the journal itself never needs to be changed:
words that had arrived become an interrupted answer, a call without a result gets one, the recorded result if
the tool had finished, else a note that its effects are unknown. Results without a call are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import convert
from msgspec.structs import replace

from robota.core.conversation import ConversationStore
from robota.core.errors import StorageError
from robota.core.history import HistoryEntry
from robota.core.messages import (
    AssistantMessage,
    Json,
    JsonObject,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.ports import REAL_WORLD, Ports
from robota.sessions.journal.stream_run import (
    NATIVE_EVENT,
    NATIVE_REQUEST,
    NATIVE_RESPONSE,
    TEXT,
    TEXT_WITH_BYTES,
)
from robota.sessions.journal.tool_record import message_metadata, message_text

if TYPE_CHECKING:
    from robota.sessions.journal.reader import JournalRecord

UNKNOWN_EFFECTS = "Error: interrupted; effects unknown. The session ended before the tool reported a result."
CONVERSATION_EVENTS = frozenset(
    {"stream", "provider_request", "message", "empty_reply", "tool_result", "compaction_marked"}
    | {"history_cleared", "history_entry", "session_resumed", "history_mutation", "run_end"}
)
"""The records a conversation is made of."""
_NO_TEXT = frozenset((NATIVE_EVENT, NATIVE_RESPONSE, NATIVE_REQUEST))
_AnyMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class ConversationBuilder:
    __slots__ = (
        "_calls", "_last", "_read", "_results", "_round", "_streams", "_unanswered", "repairs", "steps",
        "store",
    )  # fmt: skip

    def __init__(
        self,
        unanswered: str = UNKNOWN_EFFECTS,
        ports: Ports = REAL_WORLD,
        read: Callable[[JournalRecord], Mapping[str, Json]] | None = None,
    ) -> None:
        """`unanswered` is what the model is told about a call without a result. `read` decodes records of
        streams that came without their fields."""
        self.store = ConversationStore(ports)
        self.steps = 0
        """Messages so far, those of conversations that were cleared included."""
        self.repairs: list[str] = []
        """What had to be put right, for people."""
        self._unanswered = unanswered
        self._read = read
        self._streams: list[tuple[JournalRecord, Mapping[str, Json]]] = []
        """The pieces of a reply that has no message yet."""
        self._calls: tuple[ToolCall, ...] = ()
        """All calls of the last answer, in order."""
        self._results: dict[int, JsonObject] = {}
        self._round = 0
        self._last: Message | None = None

    def take(self, record: JournalRecord, data: Mapping[str, Json]) -> Message | None:
        """Take one of `CONVERSATION_EVENTS` in; the message it added, if it did. A stream may come without
        its fields: they are read if it turns out that there is no message for it."""
        event = record.event
        if event == "stream":
            self._streams.append((record, data))
            return None
        if event == "message":
            return self._take_message(data)
        if event == "tool_result":
            self._results[int(data.get("index", 0))] = dict(data)
        elif event == "provider_request":
            self.settle()
            self._round = int(data.get("round", 0))
        elif event == "empty_reply":
            self._streams.clear()
        elif event == "compaction_marked":
            return self._mark(data)
        elif event == "history_cleared":
            self._streams.clear()
            self._calls, self._results, self._last = (), {}, None
            self.store.clear()
        elif event == "history_entry":
            self.store.add_entry(read_history_entry(data["entry"]))
        elif event == "history_mutation":
            return self._take_original(record, data)
        else:
            self.settle()
        return None

    def settle(self) -> None:
        """Repair what was cut before this point."""
        self._keep_partial_reply()
        self._answer_calls()

    # --- messages ---------------------------------------------------------------------------------------

    def _take_message(self, data: Mapping[str, Json]) -> Message | None:
        raw = data["message"]
        if "result" in data:
            return self._take_tool_message(int(data["result"]), raw)
        message = read_message(raw)
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in {call.id for call in self.store.open_calls}:
                self.repairs.append(f"A result of {message.name} without a call was left out.")
                return None
            return self._add(message)
        if data.get("reply"):
            self._streams.clear()
        else:
            self._keep_partial_reply()
        self._answer_calls()
        return self._add(message)

    def _take_tool_message(self, at: int, raw: Mapping[str, Json]) -> Message | None:
        if at >= len(self._calls):
            self.repairs.append("A tool result without a call was left out.")
            return None
        message = self._tool_message(at, self._results.get(at), raw)
        if message.tool_call_id not in {call.id for call in self.store.open_calls}:
            self.repairs.append(f"A second result of {message.name} for one call was left out.")
            return None
        return self._add(message)

    def _tool_message(
        self, at: int, result: Mapping[str, Json] | None, raw: Mapping[str, Json]
    ) -> ToolMessage:
        call = self._calls[at]
        data = {"role": "tool", "toolCallId": call.id, "name": call.name, **raw}
        if result is not None:
            outcome = str(result.get("outcome", "success"))
            error = result.get("error")
            data.setdefault("content", message_text(result.get("content", ""), error, outcome))
            failure = result.get("errorCode") or error
            known = result.get("metadata", {})
            data.setdefault("metadata", message_metadata(known, call.name, outcome, failure, self._round))
        data.setdefault("content", self._unanswered)
        message = read_message(data)
        assert isinstance(message, ToolMessage)
        return message

    def _take_original(self, record: JournalRecord, data: Mapping[str, Json]) -> Message | None:
        """The record in which the original keeps a message; one without an id is known by its place."""
        from robota.sessions.store.message_codec import message_from_record, read_time  # noqa: PLC0415 - old logs

        stamp = read_time(data.get("timestamp"))
        return self._add(message_from_record(data["message"], id=f"at-{record.offset}", timestamp=stamp))

    def _mark(self, data: Mapping[str, Json]) -> Message:
        self.settle()
        message = read_message(data["message"])
        assert isinstance(message, AssistantMessage)
        self.store.restore_mark(message)
        self.steps += 1
        self._calls, self._results, self._last = (), {}, message
        return message

    def _add(self, message: Message) -> Message:
        if isinstance(message, AssistantMessage):
            self._calls, self._results = message.tool_calls, {}
        self.store.append(message)
        self.steps += 1
        self._last = message
        return message

    # --- repairs ----------------------------------------------------------------------------------------

    def _keep_partial_reply(self) -> None:
        streams, self._streams = self._streams, []
        text = "".join(self._text_of(record, data) for record, data in streams)
        if not text:
            return
        self._answer_calls()
        identity = self._identity("partial")
        message = AssistantMessage(text, state="interrupted", metadata={"recovered": True}, **identity)
        self.repairs.append(f"An answer was cut after {len(text):,} characters; they are kept.")
        self._add(message)

    def _text_of(self, record: JournalRecord, data: Mapping[str, Json]) -> str:
        try:
            return "".join(
                text_pieces(data or (record.fields() if self._read is None else self._read(record)))
            )
        except (StorageError, TypeError) as error:
            self.repairs.append(f"A part of an answer that was cut is lost (record {record.seq}): {error}.")
            return ""

    def _answer_calls(self) -> None:
        opened = {call.id for call in self.store.open_calls}
        for at, call in enumerate(self._calls):
            if call.id not in opened:
                continue
            result = self._results.get(at)
            identity = self._identity(f"result-{at}")
            raw: JsonObject = {"id": identity["id"]}
            message = replace(self._tool_message(at, result, raw), timestamp=identity["timestamp"])
            if result is None:
                failed = {"success": False, "toolName": call.name, "error": "interrupted", "recovered": True}
                message = replace(message, metadata=failed)
                self.repairs.append(
                    f"{call.name} was cut before it reported a result; its effects are unknown."
                )
            self.store.append(message)
            self.steps += 1
        self._calls, self._results = (), {}

    def _identity(self, what: str) -> dict[str, Any]:
        """The same id and time stamp at every repair of the same place."""
        last = self._last
        if last is None:
            from datetime import UTC, datetime  # noqa: PLC0415 - a journal that begins with a cut answer

            return {"id": f"recovered-{what}", "timestamp": datetime.fromtimestamp(0, UTC)}
        return {"id": f"{last.id}-{what}", "timestamp": last.timestamp}


def read_message(data: Mapping[str, Json]) -> Message:
    message: Message = convert(data, _AnyMessage)
    return message


def read_history_entry(data: Json) -> HistoryEntry:
    return convert(data, HistoryEntry)


def list_of(fields: Mapping[str, Json], name: str) -> list[Json]:
    """A list of a `stream` record; raises for one that was put aside and is lost."""
    value = fields.get(name) or []
    if not isinstance(value, list):
        raise TypeError(f"its {name} are not there")
    return value


def kinds_of(fields: Mapping[str, Json]) -> str:
    """The kinds of the pieces in a `stream` record."""
    return str(fields.get("kinds") or TEXT_WITH_BYTES * len(list_of(fields, "texts")))


def text_pieces(fields: Mapping[str, Json]) -> list[str]:
    """The pieces of answer text in a `stream` record."""
    with_text = [kind for kind in kinds_of(fields) if kind not in _NO_TEXT]
    texts = list_of(fields, "texts")
    return [text for kind, text in zip(with_text, texts, strict=False) if kind in (TEXT, TEXT_WITH_BYTES)]
