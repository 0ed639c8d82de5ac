"""A conversation in the making: the records of a transcript in order, then the timeline made of them.

The pieces of a reply become one message where the first of them stands, and every result follows its call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from robota.core.conversation import SUMMARY_HEADING
from robota.core.history import HistoryEntry, message_to_history_entry
from robota.core.messages import AssistantMessage, JsonObject, Message, ToolCall, ToolMessage, UserMessage
from robota.sessions.transcripts.content import (
    START_OF_TIME,
    ReplyPieces,
    blocks_of,
    content_blocks,
    object_of,
    read_parts,
    text_of,
    time_of,
    tool_metadata,
)
from robota.sessions.transcripts.lines import Problems

NO_RESULT = "Error: interrupted; effects unknown. The transcript has no result for this call."
_ENVELOPE = frozenset(
    (
        "type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "timestamp", "isSidechain",
        "isMeta", "cwd", "gitBranch", "version", "userType", "entrypoint", "slug", "requestId",
    )
)  # fmt: skip


class _Result(Struct, frozen=True):
    message: ToolMessage
    line: int


_Item: TypeAlias = ReplyPieces | UserMessage | AssistantMessage | HistoryEntry | _Result
_Answers: TypeAlias = dict[tuple[int, str], ToolMessage]


class TranscriptDraft:
    __slots__ = ("_items", "_replies", "_time", "cwd", "facts", "is_subagent", "model")

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._replies: dict[str, ReplyPieces] = {}
        self._time = START_OF_TIME
        self.facts: JsonObject = {}
        """The latest session id, version and branch."""
        self.cwd = ""
        self.model: str | None = None
        self.is_subagent = False

    def add(self, record: JsonObject, line: int, problems: Problems, *, results_only: bool) -> None:
        """Take the record of one line, in the order of the conversation."""
        self._time = time_of(record, self._time)
        kind = record.get("type")
        if results_only:
            self._add_results(record, line, problems)
            return
        self._note_facts(record)
        if kind == "assistant":
            self._add_reply(record, line, problems)
        elif kind == "user":
            self._add_user(record, line, problems)
        elif kind in ("system", "attachment"):
            self._items.append(self._event(record))
        elif kind != "progress":
            problems.add(f"Line {line} is of the kind {kind!r}, which is not imported.")

    def arrange(self, problems: Problems) -> list[HistoryEntry]:
        """The timeline: every result behind its call, in the order of the calls."""
        answers = _match(self._items, problems)
        history: list[HistoryEntry] = []
        count = 0
        for place, item in enumerate(self._items):
            for message in _messages_of(place, item, answers, problems):
                if isinstance(message, HistoryEntry):
                    history.append(message)
                    continue
                if message.metadata.get("compaction"):
                    message = replace(message, metadata={"compaction": True, "replaces": count})
                history.append(message_to_history_entry(message))
                count += 1
        return history

    def _note_facts(self, record: JsonObject) -> None:
        self.cwd = self.cwd or text_of(record.get("cwd"))
        self.is_subagent = record.get("isSidechain") is True
        for name in ("sessionId", "version", "gitBranch"):
            if text_of(record.get(name)):
                self.facts[name] = record[name]

    def _add_reply(self, record: JsonObject, line: int, problems: Problems) -> None:
        message = object_of(record.get("message"))
        key = text_of(message.get("id")) or text_of(record.get("uuid"))
        reply = self._replies.get(key)
        if reply is None:
            reply = self._replies[key] = ReplyPieces(record, line, self._time)
            self._items.append(reply)
        reply.add(record, line, problems)
        self.model = reply.model or self.model

    def _add_user(self, record: JsonObject, line: int, problems: Problems) -> None:
        results = self._add_results(record, line, problems)
        blocks = [block for block in content_blocks(record) if block.get("type") != "tool_result"]
        text, parts = read_parts(blocks, line, problems)
        id = _numbered(record, results)
        if record.get("isCompactSummary"):
            summary = f"{SUMMARY_HEADING}\n{text}"
            mark = {"compaction": True}
            self._items.append(AssistantMessage(summary, id=id, timestamp=self._time, metadata=mark))
        elif text or parts:
            metadata = {"isMeta": True} if record.get("isMeta") else {}
            self._items.append(UserMessage(text, parts, id=id, timestamp=self._time, metadata=metadata))

    def _add_results(self, record: JsonObject, line: int, problems: Problems) -> int:
        """Take the tool results of a line; how many there are."""
        results = [block for block in content_blocks(record) if block.get("type") == "tool_result"]
        own = record.get("toolUseResult") if len(results) == 1 else None
        for number, block in enumerate(results):
            text, parts = read_parts(blocks_of(block.get("content")), line, problems)
            message = ToolMessage(
                text,
                text_of(block.get("tool_use_id")),
                "",
                parts,
                id=_numbered(record, number),
                timestamp=self._time,
                metadata=tool_metadata(block, own),
            )
            self._items.append(_Result(message, line))
        return len(results)

    def _event(self, record: JsonObject) -> HistoryEntry:
        kind, data = "attachment", record.get("attachment")
        if record.get("type") != "attachment":
            kind = text_of(record.get("subtype")) or "system"
            kind = "context_compact" if kind == "compact_boundary" else kind
            data = {name: value for name, value in record.items() if name not in _ENVELOPE}
        return HistoryEntry(
            category="event", type=kind, data=data, id=_numbered(record, 0), timestamp=self._time
        )


def _numbered(record: JsonObject, number: int) -> str:
    """The line's uuid as an id; further messages from the same line get a number behind it."""
    uuid = text_of(record.get("uuid"))
    return uuid if number == 0 else f"{uuid}-{number + 1}"


def _match(items: Sequence[_Item], problems: Problems) -> _Answers:
    """The result of each call by the place of its reply and its id; ids may repeat in later replies."""
    asked: dict[str, int] = {}
    answers: _Answers = {}
    for place, item in enumerate(items):
        if isinstance(item, ReplyPieces):
            asked.update(dict.fromkeys(item.calls, place))
        elif isinstance(item, _Result):
            id = item.message.tool_call_id
            if id not in asked or (asked[id], id) in answers:
                why = "no call that it answers" if id not in asked else "an earlier result for the same call"
                problems.add(f"Line {item.line} has a tool result, but there is {why}; it was left out.")
            else:
                answers[asked[id], id] = item.message
    return answers


def _messages_of(
    place: int, item: _Item, answers: _Answers, problems: Problems
) -> Iterable[Message | HistoryEntry]:
    if isinstance(item, UserMessage | AssistantMessage | HistoryEntry):
        yield item
    elif isinstance(item, ReplyPieces) and not item.is_empty:
        yield item.message()
        for call in item.calls.values():
            yield _answer(item, call, answers.get((place, call.id)), problems)


def _answer(item: ReplyPieces, call: ToolCall, answer: ToolMessage | None, problems: Problems) -> ToolMessage:
    if answer is not None:
        return replace(answer, name=call.name, metadata={**answer.metadata, "toolName": call.name})
    problems.add(f"The call of {call.name} on line {item.line} has no result; its effects are unknown.")
    return ToolMessage(
        NO_RESULT,
        call.id,
        call.name,
        id=f"{item.id}-{call.id}",
        timestamp=item.time,
        metadata={"success": False, "toolName": call.name, "interrupted": True},
    )
