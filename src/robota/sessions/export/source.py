"""A session as every export reads it: redacted, in turns, each call beside its result, nothing hidden.

Whatever the record holds, something readable comes out: an entry that no message can be made of is shown as
the JSON that it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

import msgspec
from msgspec import Struct, to_builtins

from robota.core.context import normalize_usage
from robota.core.errors import ValidationError
from robota.core.jsontext import decode, encode, objects_of
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    HistoryEntry,
    ImagePart,
    Json,
    JsonObject,
    Message,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
    message_to_history_entry,
)
from robota.sessions.store.message_codec import (
    history_entry_from_record,
    message_from_record,
    read_time,
    text_in,
)

START_OF_TIME = datetime.fromtimestamp(0, UTC)
SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool result"}
_MESSAGES = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class _Record(Protocol):
    def to_mapping(self) -> JsonObject: ...


class _Imported(Protocol):
    @property
    def record(self) -> JsonObject: ...


Exportable: TypeAlias = Mapping[str, Json] | _Record | _Imported
"""A session record, its mapping in the spelling used on disk, or an imported transcript."""


class Step(Struct):
    """One thing that happened: a message, with its calls and their results, or an event."""

    entry: HistoryEntry
    number: int
    calls: list[tuple[ToolCall, ToolMessage | None]] = []

    @property
    def message(self) -> Message | None:
        return self.entry.data if isinstance(self.entry.data, _MESSAGES) else None

    @property
    def when(self) -> str:
        return describe_time(self.entry.timestamp)


class Turn(Struct):
    """A prompt and everything that it led to; the first one may have no prompt."""

    steps: list[Step] = []
    usage: TokenUsage = TokenUsage()


class ExportSource(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    cwd: str
    model: str
    created_at: str
    updated_at: str
    turns: list[Turn]

    @property
    def title(self) -> str:
        return self.name or f"Session {self.id}"

    @property
    def usage(self) -> TokenUsage:
        return sum((turn.usage for turn in self.turns), TokenUsage())

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is known about the session as a whole, for the head of a document."""
        known = [
            ("Session", self.id),
            ("Directory", self.cwd),
            ("Model", self.model),
            ("Started", self.created_at),
            ("Last changed", self.updated_at),
            ("Usage", describe_usage(self.usage)),
        ]
        return [(name, value) for name, value in known if value]


OnStep: TypeAlias = Callable[[int, int], object]
"""Told how many messages and events are read, and of how many."""


def plain_record(
    record: Exportable, *, redact: bool, secrets: Sequence[str], on_step: OnStep | None = None
) -> JsonObject:
    """The record as JSON values; by default without anything that looks like a secret."""
    if isinstance(record, Mapping):
        mapping: Mapping[str, Json] = record
    else:
        mapping = record.to_mapping() if hasattr(record, "to_mapping") else record.record
    plain = to_builtins(dict(mapping))
    if redact:
        from robota.sessions.redaction import redact as remove_secrets  # noqa: PLC0415 - its tables are large

        lists = {key: plain[key] for key in ("messages", "history") if isinstance(plain.get(key), list)}
        total, done = sum(map(len, lists.values())), 0
        plain = dict(remove_secrets({**plain, **dict.fromkeys(lists)}, secrets=secrets))
        for key, entries in lists.items():  # one by one: with a long session this takes a while
            plain[key] = clean = []
            for entry in entries:
                clean.append(remove_secrets(entry, secrets=secrets))
                done += 1
                if on_step is not None:
                    on_step(done, total)
    return dict(plain)


def read_source(
    record: Exportable, *, redact: bool, secrets: Sequence[str], on_step: OnStep | None = None
) -> ExportSource:
    plain = plain_record(record, redact=redact, secrets=secrets, on_step=on_step)
    moment = read_time(plain.get("createdAt")) or START_OF_TIME
    entries = _timeline(plain, moment)
    return ExportSource(
        id=text_in(plain, "id"),
        name=text_in(plain, "name"),
        cwd=text_in(plain, "cwd"),
        model=text_in(plain, "model"),
        created_at=text_in(plain, "createdAt"),
        updated_at=text_in(plain, "updatedAt"),
        turns=_turns(_steps(entries)),
    )


def _timeline(plain: JsonObject, moment: datetime) -> list[HistoryEntry]:
    """The whole history; messages that it lacks are put in where their time says."""
    stored = objects_of(plain.get("messages"))
    history = [_read(data, moment) for data in objects_of(plain.get("history"))]
    known = {entry.id for entry in history if entry.category == "chat"}
    if known and all(not text_in(data, "id") or text_in(data, "id") in known for data in stored):
        return history
    messages = [_read(data, moment, number) for number, data in enumerate(stored)]
    own = {entry.id for entry in messages}
    return _merge(messages, [entry for entry in history if entry.id not in own])


def _merge(first: list[HistoryEntry], second: list[HistoryEntry]) -> list[HistoryEntry]:
    """Both in their order; an entry of the second stands before the first one that is later."""
    merged: list[HistoryEntry] = []
    place = 0
    for entry in first:
        while place < len(second) and second[place].timestamp < entry.timestamp:
            merged.append(second[place])
            place += 1
        merged.append(entry)
    return merged + second[place:]


def _read(data: JsonObject, moment: datetime, number: int | None = None) -> HistoryEntry:
    """An entry of the history, or, with a number, of the messages."""
    try:
        if number is None:
            return history_entry_from_record(data, timestamp=moment)
        return message_to_history_entry(message_from_record(data, id=f"message-{number}", timestamp=moment))
    except ValidationError as error:
        return HistoryEntry(
            category="event",
            type="unreadable",
            data={"reason": str(error), "entry": data},
            id=text_in(data, "id"),
            timestamp=read_time(data.get("timestamp")) or moment,
        )


def _steps(entries: list[HistoryEntry]) -> list[Step]:
    """Results move to their calls; one without a call stays where it is."""
    steps: list[Step] = []
    waiting: dict[str, tuple[Step, int]] = {}
    for entry in entries:
        message = entry.data
        if isinstance(message, ToolMessage) and message.tool_call_id in waiting:
            step, number = waiting.pop(message.tool_call_id)
            step.calls[number] = (step.calls[number][0], message)
            continue
        step = Step(entry, len(steps) + 1)
        steps.append(step)
        if isinstance(message, AssistantMessage):
            step.calls = [(call, None) for call in message.tool_calls]
            waiting |= {call.id: (step, number) for number, call in enumerate(message.tool_calls)}
    return steps


def _turns(steps: list[Step]) -> list[Turn]:
    turns: list[Turn] = []
    for step in steps:
        message = step.entry.data
        prompt = isinstance(message, UserMessage) and not message.metadata.get("isMeta")
        if prompt or not turns:
            turns.append(Turn())
        turns[-1].steps.append(step)
        if isinstance(message, AssistantMessage):
            turns[-1].usage += normalize_usage(message.metadata) or TokenUsage()
    return turns


def describe_kind(message: Message) -> str:
    """What sets a message apart from others of its speaker; empty for an ordinary one."""
    if message.metadata.get("compaction"):
        return "summary of everything before"
    if message.metadata.get("isMeta"):
        return "added without the user"
    return "interrupted" if message.state == "interrupted" else ""


def attached_size(part: ImagePart | FilePart) -> int:
    """Bytes of what is attached, from the length of its base64 text."""
    return (len(part.data) - part.data[-2:].count("=")) * 3 // 4


def describe_usage(usage: TokenUsage) -> str:
    """Token counts in one line; empty when nothing was counted."""
    if not usage.total_tokens:
        return ""
    cached = f" ({usage.cache_read_tokens:,} from cache)" if usage.cache_read_tokens else ""
    thinking = f" ({usage.reasoning_tokens:,} thinking)" if usage.reasoning_tokens else ""
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out{thinking}"


def describe_time(moment: datetime) -> str:
    try:
        return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:  # within hours of the first or last moment there is
        return moment.isoformat()


GIST_LENGTH = 160
_HUNK = re.compile(r"^@@ -[0-9]+(?:,[0-9]+)? \+[0-9]+(?:,[0-9]+)? @@", re.MULTILINE)
_EDITS = (("old_string", "new_string"), ("oldString", "newString"))


class CallView(Struct, frozen=True):
    fields: str
    """The input as JSON, without what stands in `texts` and `changes`; empty when nothing is left."""
    texts: tuple[tuple[str, str], ...] = ()
    """Names and values of the fields that have several lines."""
    changes: tuple[str, ...] = ()
    """Edits, as lines that begin with a space, a minus or a plus."""
    gist: str = ""
    """The first words of the input: mostly the command, the file or the address."""


def view_call(call: ToolCall) -> CallView:
    try:
        given = decode(call.arguments)
    except ValueError:
        return CallView("", (("input (not valid JSON)", call.arguments),))
    if not isinstance(given, dict):
        return CallView(show_json(given))
    gist = next((value for value in given.values() if isinstance(value, str)), "")[:GIST_LENGTH]
    changes = tuple(_changes(given))
    texts = tuple((name, value) for name, value in given.items() if isinstance(value, str) and "\n" in value)
    for name, _ in texts:
        del given[name]
    return CallView(show_json(given) if given else "", texts, changes, gist)


def show_json(value: Json) -> str:
    """A JSON value for people to read."""
    return msgspec.json.format(encode(value), indent=2).decode()


def is_difference(text: str) -> bool:
    """Whether a text is the output of a program that compares files."""
    return _HUNK.search(text) is not None


def _changes(given: JsonObject) -> Iterator[str]:
    """Take the edits out of an input and give them as differences."""
    edits = given.get("edits")
    several = edits if isinstance(edits, list) and all(isinstance(edit, dict) for edit in edits) else []
    for edit in (given, *several):
        for old, new in _EDITS:
            if isinstance(edit.get(old), str) and isinstance(edit.get(new), str):
                yield difference(edit.pop(old), edit.pop(new))


def difference(old: str, new: str) -> str:
    """Both texts with their common beginning and end once; linear, and so not always the shortest."""
    before, after = old.split("\n"), new.split("\n")
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    tail = next((n for n in range(shorter - head) if before[-n - 1] != after[-n - 1]), shorter - head)
    lines = [f" {line}" for line in before[:head]]
    lines += [f"-{line}" for line in before[head : len(before) - tail]]
    lines += [f"+{line}" for line in after[head : len(after) - tail]]
    return "\n".join(lines + [f" {line}" for line in before[len(before) - tail :]])


_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    # joins the parts of one emoji: hidden nowhere else
    "|(?<![\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])\u200d|\u200d(?![\u2190-\u2bff\U0001f000-\U0001faff])"
    "|\r"
)


def show_hidden(text: str) -> str:
    """The text with a visible sign for every hidden character; line ends are newlines."""
    return _HIDDEN.sub(lambda found: f"\u27e8U+{ord(found[0]):04X}\u27e9", text.replace("\r\n", "\n"))


def end_of_fence(lines: Sequence[str], place: int, opening: str, margin: str | None = None) -> int:
    """Where fenced code ends whose first line is at `place`: at as long a run of its sign, or behind all."""
    for at in range(place, len(lines)):
        run = lines[at].strip(margin)
        if len(run) >= len(opening) and not run.strip(opening[0]):
            return at
    return len(lines)


def on_one_line(text: str) -> str:
    """The text for a heading or a table: visible, and with its line breaks shown as spaces."""
    return " ".join(show_hidden(text).split())
