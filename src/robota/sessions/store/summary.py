"""What a list of sessions says about one, taken from its files without reading more of them than needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw, Struct

from robota.core.messages import Json, JsonObject
from robota.sessions.files import Files, opened
from robota.sessions.journal import records
from robota.sessions.journal.decoding import decode_line, unknown_record
from robota.sessions.journal.file.line import parse_line
from robota.sessions.store.session_record import decode_record
from robota.sessions.store.snapshot_file import SnapshotFile, read_tail, reason_of

HEAD = 256 * 1024
TAIL = 64 * 1024
PROMPT_LENGTH = 300
_REMINDER = ("<system-reminder>", "</system-reminder>")


class SessionSummary(Struct, frozen=True, kw_only=True):
    """A session as a picker shows it."""

    id: str
    cwd: str = ""
    name: str | None = None
    created_at: str = ""
    updated_at: str = ""
    message_count: int | None = None
    """`None` when nobody counted: a long journal of the original without a snapshot."""
    first_prompt: str = ""
    """Its beginning."""
    model: str | None = None
    size: int = 0
    """Bytes of snapshot and journal."""
    has_journal: bool = False
    problem: str = ""
    """Why the snapshot, or the only file there is, cannot be read."""

    @property
    def damaged(self) -> bool:
        return bool(self.problem)

    @property
    def preview(self) -> str:
        """The first prompt in one short line."""
        line = " ".join(self.first_prompt.split())
        return line if len(line) <= 80 else f"{line[:79]}…"


def summarize_session(
    files: Files, directory: str, id: str, *, snapshot_size: int | None, journal_size: int | None
) -> tuple[SessionSummary, bool]:
    """Look at a session, given the sizes of the files it has. False if the disk failed meanwhile."""
    fields: JsonObject = {}
    problem, lasting = "", True
    if snapshot_size is not None:
        try:
            fields = _read_snapshot(SnapshotFile(files, f"{directory}/{id}.json"), id)
        except (OSError, ValueError) as error:
            problem = f"{id}.json cannot be read: {reason_of(error)}."
            lasting = not isinstance(error, OSError)
    if journal_size is not None:
        try:
            told = _read_journal(files, f"{directory}/{id}.jsonl", fields.get("seq", 0))
            if not told and not fields:
                problem += f"{id}.jsonl has no readable record at its beginning or end."
            fields = _join(fields, told)
        except OSError as error:
            problem, lasting = f"{problem}{id}.jsonl cannot be read: {reason_of(error)}.", False
    fields.pop("seq", None)
    summary = SessionSummary(
        id=id,
        **fields,
        size=(snapshot_size or 0) + (journal_size or 0),
        has_journal=journal_size is not None,
        problem=problem,
    )
    return summary, lasting


def _join(known: JsonObject, told: JsonObject) -> JsonObject:
    """What snapshot and journal say together: the journal heard the first prompt, and is never behind."""
    joined = {**told, **{key: value for key, value in known.items() if value not in (None, "")}}
    joined["first_prompt"] = told.get("first_prompt") or known.get("first_prompt", "")
    joined["updated_at"] = max(told.get("updated_at", ""), known.get("updated_at", ""))
    if told.get("seq", 0) > known.get("seq", 0):
        news = {key: told.get(key) for key in ("name", "message_count")}
        joined |= {key: value for key, value in news.items() if value}
    return joined


# --- the snapshot ---------------------------------------------------------------------------------------


class _Head(Struct, rename="camel"):
    cwd: str = ""
    name: str | None = None
    model: str | None = None
    created_at: str = ""
    updated_at: str = ""
    journal_seq: int | None = None
    messages: list[Raw] = []


class _Said(Struct):
    role: str = ""
    content: Json = None


_read_snapshot_head = msgspec.json.Decoder(_Head).decode
_read_said = msgspec.json.Decoder(_Said).decode


def _read_snapshot(file: SnapshotFile, id: str) -> JsonObject:
    data = file.read()
    data.decode()
    try:
        head = _read_snapshot_head(data)
        prompt = _first_prompt(map(_read_said, head.messages))
        count = len(head.messages)
    except (msgspec.ValidationError, RecursionError):
        count = 0
    if not count:  # no ordinary record: look at it closely, and say what is wrong
        record = decode_record(data, id)
        head = _Head(record.cwd, record.name, record.model, record.created_at, record.updated_at)
        head.journal_seq = record.journal_seq
        said = [message for message in record.messages if isinstance(message, dict)]
        prompt = _first_prompt(_Said(str(one.get("role")), one.get("content")) for one in said)
        count = len(record.messages)
    told = {name: getattr(head, name) for name in ("cwd", "name", "model", "created_at", "updated_at")}
    return {**told, "message_count": count, "first_prompt": prompt, "seq": head.journal_seq or 0}


def _first_prompt(said: Iterable[_Said]) -> str:
    return next((_beginning(text_of(one.content)) for one in said if one.role == "user"), "")


def text_of(content: Json) -> str:
    """The text of a message's content, however it is written."""
    if isinstance(content, list):
        pieces = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(piece for piece in pieces if isinstance(piece, str))
    return content if isinstance(content, str) else ""


def _beginning(prompt: str) -> str:
    """The first characters of what the user wrote; what hooks put before it is left out."""
    opening, closing = _REMINDER
    while prompt.lstrip().startswith(opening) and closing in prompt:
        prompt = prompt.partition(closing)[2]
    return prompt.strip()[:PROMPT_LENGTH]


# --- the journal ----------------------------------------------------------------------------------------


def _read_journal(files: Files, path: str, known: int) -> JsonObject:
    """What beginning and end of a journal say; nothing if neither can be read.

    `known` is the last record that the snapshot has heard of.
    """
    lines, whole = _read_beginning(files, path)
    if whole and known:
        last = next(_read([lines[-1] or lines[-2]]), None) if len(lines) > 1 else None
        if last is not None and 0 < last.seq <= known:  # how it began is all that may be news
            return {**_read_opening(lines), "updated_at": last.timestamp, "seq": last.seq}
    fields: JsonObject = {}
    seen = list(_read(lines))
    for record in seen:
        _take(fields, record)
    if not whole:
        seen = list(_read(read_tail(files, path, TAIL)[0]))
        for record in seen:
            if isinstance(record, records.SessionChange):
                _take(fields, record)
    if seen:
        fields["message_count"] = _count_messages(seen, whole=whole)
        fields["updated_at"] = seen[-1].timestamp
        fields["seq"] = seen[-1].seq
    return fields


def _read(lines: Iterable[bytes]) -> Iterator[records.Record]:
    """The records of lines, as far as they can be read without looking elsewhere."""
    for line in lines:
        found = parse_line(line)
        if found is not None:
            try:
                record = decode_line(line) if found.checked else unknown_record(found.fields())
            except ValueError:  # its frame is whole, what it holds is not
                continue
            yield record


def _read_opening(lines: list[bytes]) -> JsonObject:
    """What stands before the first message: the session itself and the first prompt."""
    fields: JsonObject = {}
    for record in _read(lines):
        _take(fields, record)
        if isinstance(record, records.MessageRecord) or "first_prompt" in fields:
            break
    return fields


def _count_messages(seen: list[records.Record], *, whole: bool) -> int | None:
    """How long the conversation is: each message has its place in it written beside it."""
    count = 0 if whole else None
    for record in seen:
        if isinstance(record, records.MessageRecord | records.ToolMessageRecord):
            count = record.index + 1
        elif isinstance(record, records.HistoryCleared):
            count = 0
        elif isinstance(record, records.HistoryRewound):
            count = record.messages
        elif count is not None and (
            isinstance(record, records.MarkRecord) or getattr(record, "kind", "") == "history_mutation"
        ):
            count += 1
    return count


def _read_beginning(files: Files, path: str) -> tuple[list[bytes], bool]:
    with opened(files, path) as fd:
        size = files.size(fd)
        data = files.read_at(fd, min(size, HEAD), 0)
        whole = size <= len(data)
    lines = data.split(b"\n")
    return lines if whole else lines[:-1], whole


def _take(fields: JsonObject, record: records.Record) -> None:
    fields.setdefault("created_at", record.timestamp)
    prompt: Json = None
    if isinstance(record, records.UserRecord):
        prompt = record.input
    elif isinstance(record, records.SessionBegan):
        told = {"cwd": record.cwd, "model": record.model, "name": record.session_name}
        fields |= {key: value for key, value in told.items() if value}
    elif isinstance(record, records.SessionChange):
        if record.change in ("name", "model") and isinstance(record.value, str):
            fields[record.change] = record.value
    elif isinstance(record, records.Unknown) and record.kind == records.UserRecord.name:
        prompt = record.fields.get("input", record.fields.get("content"))
    elif isinstance(record, records.Unknown) and record.kind == records.SessionBegan.name:
        told = {key: record.fields.get(key) for key in ("cwd", "model", "name")}
        fields |= {key: value for key, value in told.items() if value and isinstance(value, str)}
    if prompt is not None and not fields.get("first_prompt"):
        fields["first_prompt"] = _beginning(text_of(prompt))
