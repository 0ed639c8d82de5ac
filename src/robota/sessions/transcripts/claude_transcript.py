"""Import of a conversation from a Claude Code transcript, a format that is another program's own.

The file is only read. The messages that come out are valid for a request: a call without a result gets one
that says so, a result without a call is left out, and `problems` names both and everything else that was
wrong. A kind of content that has no place in our messages is named, and a text stands in for it so that the
reader sees that something was there. Reading happens twice in pieces, so that a transcript may be far larger
than its conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from robota.core.conversation import SUMMARY_HEADING
from robota.core.errors import StorageError, ValidationError
from robota.core.jsontext import encode, object_of, objects_of, text_of
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    HistoryEntry,
    ImagePart,
    ImageUriPart,
    Json,
    JsonObject,
    Message,
    Part,
    ReasoningBlock,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
    message_to_history_entry,
)
from robota.core.ports import new_uuid
from robota.core.reply import usage_metadata
from robota.sessions.files import REAL_FILES, Files, opened
from robota.sessions.store.message_codec import history_entry_to_record, message_to_record, read_time
from robota.sessions.store.session_record import check_session_id
from robota.sessions.transcripts.files import SubagentTranscript, find_subagents
from robota.sessions.transcripts.lines import (
    Problems,
    TranscriptIndex,
    conversation_lines,
    index_transcript,
    read_line,
)

NO_RESULT = "Error: interrupted; effects unknown. The transcript has no result for this call."
_ENVELOPE = frozenset(
    (
        "type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "timestamp", "isSidechain",
        "isMeta", "cwd", "gitBranch", "version", "userType", "entrypoint", "slug", "requestId",
    )
)  # fmt: skip
FIELD_LIMIT = 32 << 10
"""Bytes; a longer field of a tool's own result is left out, the model was not sent it anyway."""
START_OF_TIME = datetime.fromtimestamp(0, UTC)
_STOPS = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "context_overflow",
}


def content_blocks(record: Mapping[str, Json]) -> list[JsonObject]:
    """The content of a line's message as blocks; plain text is one block of text."""
    return blocks_of(object_of(record.get("message")).get("content"))


def blocks_of(content: Json) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects_of(content)


def read_parts(blocks: Sequence[JsonObject], line: int, problems: Problems) -> tuple[str, tuple[Part, ...]]:
    """The text of some blocks, and all of them as parts when they are more than text."""
    parts = tuple(_read_part(block, line, problems) for block in blocks)
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return text, () if all(isinstance(part, TextPart) for part in parts) else parts


def _read_part(block: JsonObject, line: int, problems: Problems) -> Part:
    kind, source = text_of(block.get("type")), object_of(block.get("source"))
    data, form = text_of(source.get("data")), text_of(source.get("media_type"))
    url, encoded = text_of(source.get("url")), source.get("type") == "base64"
    if kind == "text":
        return TextPart(text_of(block.get("text")))
    if kind == "image" and encoded:
        return ImagePart(data, form or "image/png")
    if kind == "image" and url:
        return ImageUriPart(url)
    if kind == "document" and encoded:
        return FilePart(data, form or "application/pdf", text_of(block.get("title")))
    if kind == "document" and (url or data):
        return TextPart(data or f"[Document: {url}]")
    if kind == "tool_reference":
        return TextPart(f"[Tool: {text_of(block.get('tool_name'))}]")
    problems.add(f"Line {line} has content of the kind {kind or 'unknown'!r}, which is not imported.")
    return TextPart(f"[Content of the kind {kind or 'unknown'!r} was not imported]")


class ReplyPieces:
    """One reply of the model, written in several lines that share its id."""

    def __init__(self, record: JsonObject, line: int, time: datetime) -> None:
        self.id = text_of(record.get("uuid"))
        self.line = line
        self.time = time
        self.model: str | None = None
        self.calls: dict[str, ToolCall] = {}
        self.reasoning: list[ReasoningBlock] = []
        self._texts: list[str] = []
        self._server: list[JsonObject] = []
        self._final = record
        """The latest piece with usage: its counts and stop reason are the final ones."""
        self._seen: set[int] = set()
        self._last_kind = ""

    def add(self, record: JsonObject, line: int, problems: Problems) -> None:
        message = object_of(record.get("message"))
        if message.get("usage") is not None:
            self._final = record
        model = text_of(message.get("model"))
        if model and not model.startswith("<"):  # "<synthetic>": the program's own words, not a model's
            self.model = model
        for block in content_blocks(record):
            digest = hash(encode(block))
            if digest not in self._seen:  # a resumed session may repeat its last lines
                self._seen.add(digest)
                self._add_block(block, line, problems)
                self._last_kind = text_of(block.get("type"))

    @property
    def is_empty(self) -> bool:
        return not (self.calls or self.reasoning or any(self._texts))

    def message(self) -> AssistantMessage:
        return AssistantMessage(
            "".join(self._texts),
            tuple(self.calls.values()),
            reasoning=tuple(self.reasoning),
            id=self.id,
            timestamp=self.time,
            metadata=self._metadata(),
        )

    def _add_block(self, block: JsonObject, line: int, problems: Problems) -> None:
        kind = text_of(block.get("type"))
        if kind == "text":
            apart = "\n\n" if self._texts and self._last_kind != "text" else ""
            self._texts.append(apart + text_of(block.get("text")))
        elif kind == "thinking":
            signature = text_of(block.get("signature")) or None
            self.reasoning.append(ReasoningBlock(text_of(block.get("thinking")), signature))
        elif kind == "redacted_thinking":
            self.reasoning.append(ReasoningBlock(data=block))
        elif kind == "tool_use":
            self._add_call(block, line, problems)
        elif kind.endswith(("_tool_use", "_tool_result")):  # the provider ran it within the reply
            self._server.append(block)
        else:
            problems.add(f"Line {line} has content of the kind {kind!r}, which is not imported.")

    def _add_call(self, block: JsonObject, line: int, problems: Problems) -> None:
        id, name = text_of(block.get("id")), text_of(block.get("name"))
        if not id or not name or id in self.calls:
            problems.add(f"Line {line} has a tool call without a name or an id of its own; it was left out.")
            return
        self.calls[id] = ToolCall(id, name, encode(block.get("input") or {}).decode())

    def _metadata(self) -> JsonObject:
        message = object_of(self._final.get("message"))
        stop = text_of(message.get("stop_reason"))
        kept: JsonObject = {"model": self.model, "responseId": text_of(message.get("id"))}
        if self._final.get("isApiErrorMessage"):
            kept["providerError"] = text_of(self._final.get("error")) or "PROVIDER_ERROR"
        if stop:
            kept["stopReason"] = _STOPS.get(stop, "other")
            kept["stopDetail"] = stop if kept["stopReason"] != stop else ""
        kept["serverTools"] = self._server
        return {name: value for name, value in kept.items() if value} | read_usage(message.get("usage"))


def read_usage(usage: Json) -> JsonObject:
    """Token counts in our spelling: what was read from and written to the cache is part of the input."""
    counts = object_of(usage)
    fresh, read, written = (
        _count(counts, name)
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    known = TokenUsage(fresh + read + written, _count(counts, "output_tokens"), read, written)
    return usage_metadata(known) if known.total_tokens else {}


def _count(counts: JsonObject, name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def tool_metadata(block: JsonObject, outcome: Json) -> JsonObject:
    """What is kept with a tool result beside its text: success, and the tool's own result."""
    kept: JsonObject = {"success": block.get("is_error") is not True}
    if outcome is None or outcome == block.get("content"):
        return kept
    fields = outcome if isinstance(outcome, dict) else {"value": outcome}
    large = [name for name, value in fields.items() if len(encode(value)) > FIELD_LIMIT]
    kept["toolUseResult"] = {name: value for name, value in fields.items() if name not in large}
    return kept | ({"toolUseResultLeftOut": large} if large else {})


class _Result(Struct, frozen=True):
    message: ToolMessage
    line: int


_Item: TypeAlias = ReplyPieces | UserMessage | AssistantMessage | HistoryEntry | _Result
_Answers: TypeAlias = dict[tuple[int, str], ToolMessage]


class TranscriptDraft(Struct, eq=False):
    _items: list[_Item] = []
    _replies: dict[str, ReplyPieces] = {}
    _time: datetime = START_OF_TIME
    facts: JsonObject = {}
    """The latest session id, version and branch."""
    cwd: str = ""
    model: str | None = None
    is_subagent: bool = False

    def add(self, record: JsonObject, line: int, problems: Problems, *, results_only: bool) -> None:
        """Take the record of one line, in the order of the conversation."""
        self._time = read_time(record.get("timestamp")) or self._time  # as old as the line before it
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


class TranscriptError(StorageError):
    """A transcript that cannot be read, or that holds no conversation."""


class ImportedTranscript(Struct, frozen=True, kw_only=True):
    id: str
    cwd: str
    created_at: datetime
    updated_at: datetime
    name: str | None
    model: str | None
    messages: list[Message]
    """Every message, as a conversation of ours stores them; a compaction is a marked summary among them."""
    history: list[HistoryEntry]
    """The messages and what happened between them."""
    origin: JsonObject
    """Where it comes from: path, that program's session id and version, branch, tag."""
    subagents: tuple[SubagentTranscript, ...]
    problems: tuple[str, ...]

    @property
    def view(self) -> list[Message]:
        """What the model would be sent: everything from the last compaction on."""
        marks = [place for place, message in enumerate(self.messages) if message.metadata.get("compaction")]
        return self.messages[marks[-1] if marks else 0 :]

    @property
    def record(self) -> JsonObject:
        """The session record in the spelling used on disk."""
        optional = {"name": self.name, "model": self.model}
        return {
            "id": self.id,
            "cwd": self.cwd,
            "createdAt": to_builtins(self.created_at),
            "updatedAt": to_builtins(self.updated_at),
            "messages": [message_to_record(message) for message in self.messages],
            "history": [history_entry_to_record(entry) for entry in self.history],
            **{name: value for name, value in optional.items() if value},
            "importedFrom": self.origin,
        }


def read_claude_transcript(
    path: str, *, session_id: str | None = None, files: Files = REAL_FILES
) -> ImportedTranscript:
    """The conversation of a transcript: the way from its newest message back to the first.

    `session_id` is the id of the imported session; without it the transcript's own is kept if it can name a
    file.
    """
    if session_id is not None:
        check_session_id(session_id)
    problems, draft = Problems(), TranscriptDraft()
    try:
        with opened(files, path) as fd:
            index = index_transcript(files, fd, problems)
            for found in conversation_lines(index, problems):
                record = read_line(files, fd, found.line, problems)
                if record is not None:
                    draft.add(record, found.line.number, problems, results_only=found.results_only)
    except OSError as error:
        raise TranscriptError(f"The transcript {path} cannot be read: {error.strerror or error}.") from error
    return _finish(path, session_id, index, draft, problems)


def _finish(
    path: str, session_id: str | None, index: TranscriptIndex, draft: TranscriptDraft, problems: Problems
) -> ImportedTranscript:
    history = draft.arrange(problems)
    messages = [entry.data for entry in history if entry.category == "chat"]
    if not messages:
        reasons = " ".join(("", *problems.sentences()[:3]))
        raise TranscriptError(
            f"The transcript {path} holds no conversation: none of its {index.line_count} lines is a message."
            f"{reasons}"
        )
    own_id = text_of(draft.facts.get("sessionId"))
    if draft.is_subagent:
        own_id = path.rpartition("/")[2].removesuffix(".jsonl")
    if session_id is None:
        try:
            session_id = check_session_id(own_id)
        except ValidationError:
            session_id = new_uuid()
    origin: JsonObject = {"format": "claude-code", "path": path, **draft.facts}
    return ImportedTranscript(
        id=session_id,
        cwd=draft.cwd,
        created_at=history[0].timestamp,
        updated_at=max(entry.timestamp for entry in history),
        name=next((index.titles[kind] for kind in ("custom", "ai", "summary") if kind in index.titles), None),
        model=draft.model,
        messages=messages,
        history=history,
        origin=origin | ({"tag": index.tag} if index.tag else {}),
        subagents=find_subagents(path),
        problems=problems.sentences(),
    )
