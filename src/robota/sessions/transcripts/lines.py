"""The lines of a Claude Code transcript: where each one lies in the file, and which are the conversation.

The file is read once in pieces and never held as a whole; what stays in memory is a small entry per line. A
line that cannot be read is skipped and named with its number, and everything after it is kept.

A transcript is a tree: rewinding makes a fork, and the results of parallel calls hang on the piece of the
reply that asked for them. The conversation is the way from the newest entry back to the root, together with
what belongs to the replies on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import msgspec
from msgspec import Raw, Struct

from robota.core.jsontext import decode, decode_leniently
from robota.core.messages import Json, JsonObject
from robota.sessions.files import Files

CHUNK = 1 << 20
LINE_LIMIT = 64 << 20
"""Bytes; a longer line cannot be a message that anybody was sent."""
PROBLEM_LIMIT = 100
_BLANK = b" \t\r\0"


class Problems(Struct, eq=False):
    """What was wrong with a file, in sentences; a file that is wrong everywhere stays within bounds."""

    _sentences: list[str] = []
    _count: int = 0

    def add(self, sentence: str) -> None:
        self._count += 1
        if self._count <= PROBLEM_LIMIT:
            self._sentences.append(sentence)

    def sentences(self) -> tuple[str, ...]:
        if self._count <= PROBLEM_LIMIT:
            return tuple(self._sentences)
        return (*self._sentences, f"{self._count - PROBLEM_LIMIT:,} more problems.")


class TranscriptLine(Struct, frozen=True, kw_only=True):
    """One entry of the tree that a transcript is."""

    number: int
    """As an editor counts: the first line is 1."""
    offset: int
    size: int
    uuid: str
    parent: str | None
    """What it follows; for the first entry after a compaction the last one before it."""
    kind: str
    aside: bool
    """Belongs to a subagent or a team mate, not to the conversation itself."""
    meta: bool
    response: str | None
    """The provider's id of the reply that an assistant line is a piece of."""
    is_local: bool = False
    """A command of the user's own and what it printed; the model did not answer it."""
    is_summary: bool = False
    """Sums up what was said before. Older versions wrote that it follows nothing."""
    kept_from: str | None = None
    """On a compaction: the first of the earlier messages that the model went on seeing."""
    kept_to: str | None = None
    """The last of them."""
    kept_behind: str | None = None
    """On a compaction: the entry (its summary) after which the model saw them."""


class TranscriptIndex(Struct):
    """All entries of a file in file order, the last one of each uuid."""

    lines: list[TranscriptLine] = []
    by_uuid: dict[str, int] = {}
    """Place in `lines`."""
    titles: dict[str, str] = {}
    tag: str = ""
    line_count: int = 0
    summaries: list[tuple[str, Json]] = []

    def find(self, uuid: str) -> TranscriptLine | None:
        place = self.by_uuid.get(uuid)
        return None if place is None else self.lines[place]

    def take(self, entry: _Envelope, number: int, offset: int, size: int) -> None:
        """Note one record; those without a uuid are about the session, not part of the conversation."""
        if _text(entry.custom_title):
            self.titles["custom"] = entry.custom_title
        if _text(entry.ai_title):
            self.titles["ai"] = entry.ai_title
        if entry.type == "summary" and _text(entry.summary):
            self.summaries.append((entry.summary, entry.leaf_uuid))
        if entry.type == "tag" and _text(entry.tag):
            self.tag = entry.tag
        uuid = _text(entry.uuid)
        if uuid is not None:
            self.lines.append(_as_line(entry, uuid, number, offset, size))

    def settle(self, problems: Problems) -> None:
        """After the last record: drop repeated entries, decide which summary is this session's."""
        last = {line.uuid: place for place, line in enumerate(self.lines)}
        if len(last) < len(self.lines):
            for place, line in enumerate(self.lines):
                if last[line.uuid] != place:
                    newer = self.lines[last[line.uuid]].number
                    problems.add(f"Line {line.number} has the same uuid as line {newer}, which counts.")
            self.lines = [line for place, line in enumerate(self.lines) if last[line.uuid] == place]
            last = {line.uuid: place for place, line in enumerate(self.lines)}
        self.by_uuid = last
        for text, leaf in self.summaries:
            # A file may begin with the summaries of other sessions of the project.
            if leaf is None or leaf in last:
                self.titles["summary"] = text


class _Envelope(Struct, rename="camel"):
    type: Json = None
    uuid: Json = None
    parent_uuid: Json = None
    logical_parent_uuid: Json = None
    is_sidechain: Json = None
    is_meta: Json = None
    is_compact_summary: Json = None
    team_name: Json = None
    agent_name: Json = None
    message: Raw = Raw(b"null")
    compact_metadata: Json = None
    custom_title: Json = None
    ai_title: Json = None
    summary: Json = None
    leaf_uuid: Json = None
    tag: Json = None


class _MessageHead(Struct):
    id: Json = None


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_LEADER = "team-lead"
_HEAD = 300
"""Bytes of a message among which a local command shows itself."""
_LOCAL = re.compile(rb'"<(?:bash-(?:input|stdout|stderr)|local-command-\w+|command-(?:name|message|args))>')
_decode_head = msgspec.json.Decoder(_MessageHead).decode


def index_transcript(files: Files, fd: int, problems: Problems) -> TranscriptIndex:
    """Read a whole transcript once."""
    index = TranscriptIndex()
    for number, offset, line in split_lines(files, fd):
        index.line_count = number
        if line is None:
            problems.add(f"Line {number} is longer than {LINE_LIMIT >> 20} MiB and was skipped.")
            continue
        for start, size, entry in _records_on(line, number, problems):
            index.take(entry, number, offset + start, size)
    index.settle(problems)
    return index


def split_lines(files: Files, fd: int) -> Iterator[tuple[int, int, bytes | None]]:
    """Number, offset and content of each line; a line beyond the limit comes without its content."""
    number, offset, held, held_size = 1, 0, [b""], 0
    while chunk := files.read(fd, CHUNK):
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            size = held_size + end - start
            held.append(chunk[start:end])
            yield number, offset, b"".join(held) if size <= LINE_LIMIT else None
            number, offset, held, held_size, start = number + 1, offset + size + 1, [], 0, end + 1
        held_size += len(chunk) - start
        held = [] if held_size > LINE_LIMIT else [*held, chunk[start:]]
    if held_size:
        yield number, offset, b"".join(held) if held_size <= LINE_LIMIT else None


def read_line(files: Files, fd: int, line: TranscriptLine, problems: Problems) -> JsonObject | None:
    """The whole record of an indexed line."""
    data = b""
    while len(data) < line.size:
        piece = files.read_at(fd, line.size - len(data), line.offset + len(data))
        if not piece:
            break
        data += piece
    for read in (decode, decode_leniently):
        with suppress(ValueError):
            record = read(data)
            if isinstance(record, dict):
                return record
    problems.add(f"Line {line.number} changed while it was read and was skipped.")
    return None


def _records_on(line: bytes, number: int, problems: Problems) -> Iterator[tuple[int, int, _Envelope]]:
    """Place, size and envelope of the records of a line: one, or what two writers left of theirs."""
    if not line.strip(_BLANK):
        return
    entry = _decoded(line)
    if entry is not None:
        yield 0, len(line), entry
        return
    found = list(_salvage(line))
    yield from found
    kept = f"{len(found)} whole record(s) on it were kept" if found else "it was skipped"
    problems.add(f"Line {number} is not one JSON record; {kept}.")


def _salvage(line: bytes) -> Iterator[tuple[int, int, _Envelope]]:
    """The whole records on a line where writes ran together or one was torn."""
    start = line.find(b"{")
    while start >= 0:
        end = line.find(b'}{"', start) + 1 or len(line)
        again = line.rfind(b'{"parentUuid"', start + 1, end)
        for begin in (start, again):
            data = line[begin:end].rstrip(_BLANK) if begin >= 0 else b""
            entry = _decoded(data)
            if entry is not None:
                yield begin, len(data), entry
                break
        start = end if end < len(line) else -1


def _decoded(data: bytes) -> _Envelope | None:
    try:
        return _decode_envelope(data)
    except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None


def _as_line(entry: _Envelope, uuid: str, number: int, offset: int, size: int) -> TranscriptLine:
    boundary = entry.compact_metadata if entry.type == "system" else None
    kept = boundary.get("preservedSegment") if isinstance(boundary, dict) else None
    segment = kept if isinstance(kept, dict) else {}
    return TranscriptLine(
        number=number,
        offset=offset,
        size=size,
        uuid=uuid,
        parent=_text(entry.parent_uuid) or _text(entry.logical_parent_uuid),
        kind=_text(entry.type) or "",
        aside=bool(entry.is_sidechain) or _is_team_mate(entry),
        meta=bool(entry.is_meta),
        response=_response_id(entry.message) if entry.type == "assistant" else None,
        is_local=entry.type == "user" and _is_local(entry.message),
        is_summary=bool(entry.is_compact_summary),
        kept_from=_text(segment.get("headUuid")),
        kept_to=_text(segment.get("tailUuid")),
        kept_behind=_text(segment.get("anchorUuid")),
    )


def _is_team_mate(entry: _Envelope) -> bool:
    """Every line of a session with a team names the team, those of its leader too."""
    return bool(entry.team_name) and _text(entry.agent_name) not in (None, _LEADER)


def _response_id(message: Raw) -> str | None:
    try:
        return _text(_decode_head(message).id)
    except (ValueError, RecursionError):
        return None


def _is_local(message: Raw) -> bool:
    return _LOCAL.search(bytes(memoryview(message)[:_HEAD])) is not None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


class ChainLine(Struct, frozen=True):
    line: TranscriptLine
    results_only: bool = False
    """Found beside the way: only the tool results on it belong to the conversation."""


def conversation_lines(index: TranscriptIndex, problems: Problems) -> list[ChainLine]:
    """The conversation from its first line to its last; empty when the file has no message."""
    leaf = _newest(index)
    if leaf is None:
        return []
    return _add_parallel(index, _walk(index, leaf, problems))


def _newest(index: TranscriptIndex) -> TranscriptLine | None:
    messages = [line for line in reversed(index.lines) if line.kind in ("user", "assistant")]
    own = [line for line in messages if not line.aside]
    spoken = [line for line in own if not line.meta]
    # What a hook or a command added without the model does not make a branch the current one.
    said = next((line for line in spoken if not line.is_local), None)
    if said is not None and spoken[0] is not said and not _leads_to(index, spoken[0], said):
        return said
    return next(iter(spoken or own or messages), None)


def _leads_to(index: TranscriptIndex, line: TranscriptLine, wanted: TranscriptLine) -> bool:
    """Whether one line follows the other, directly or behind others."""
    at: TranscriptLine | None = line
    for _ in index.lines:
        if at is None or at is wanted:
            break
        at = index.find(at.parent) if at.parent is not None else None
    return at is wanted


def _walk(index: TranscriptIndex, leaf: TranscriptLine, problems: Problems) -> list[TranscriptLine]:
    line, chain, parents = leaf, [leaf], _relink(index)
    seen, lowest = {leaf.uuid}, index.by_uuid[leaf.uuid]
    is_flat = not any(one.parent for one in index.lines)
    while True:
        followed = parents.get(line.uuid, line.parent)
        if followed is None:
            if not is_flat and not line.is_summary:
                break
            parent = _nearest_before(index, lowest, aside=leaf.aside)
            if parent is None:
                return chain[::-1]
        elif (parent := index.find(followed)) is None or parent.uuid in seen:
            wrong = "is not in the file" if parent is None else "follows it in turn (a circle)"
            parent = _nearest_before(index, lowest, aside=leaf.aside)
            went_on = "nothing is before it" if parent is None else f"line {parent.number} is taken instead"
            problems.add(f"The entry that line {line.number} follows {wrong}; {went_on}.")
            if parent is None:
                break
        line = parent
        chain.append(line)
        seen.add(line.uuid)
        lowest = min(lowest, index.by_uuid[line.uuid])
    _note_left_behind(index, chain[-1], problems)
    return chain[::-1]


def _note_left_behind(index: TranscriptIndex, first: TranscriptLine, problems: Problems) -> None:
    """Tell of messages before the first one; what was taken back later hangs on it or behind it."""
    before = index.lines[: index.by_uuid[first.uuid]]
    count = sum(
        line.kind in ("user", "assistant") and line.aside == first.aside and not line.meta for line in before
    )
    if count:
        problems.add(
            f"Line {first.number} begins anew; {count:,} message{'s' * (count != 1)} before it "
            f"{'were' if count != 1 else 'was'} left out."
        )


def _nearest_before(index: TranscriptIndex, place: int, *, aside: bool) -> TranscriptLine | None:
    """A lost entry was most likely written right after the one before it in the file."""
    while place > 0:
        place -= 1
        if index.lines[place].aside == aside:
            return index.lines[place]
    return None


def _relink(index: TranscriptIndex) -> dict[str, str | None]:
    """What lines follow where a compaction kept messages: these stand behind its summary, what came next
    behind them, and the compaction itself where they were. What was written next may name either."""
    parents: dict[str, str | None] = {}
    for boundary in (line for line in reversed(index.lines) if line.kept_from is not None):
        head, anchor = index.find(boundary.kept_from or ""), boundary.kept_behind or boundary.uuid
        tail = boundary.kept_to or boundary.parent
        if head is None or tail is None or index.find(anchor) is None or head.uuid in parents:
            continue
        for line in index.lines:
            if line.parent == anchor and line.uuid != boundary.uuid:
                parents.setdefault(line.uuid, tail)
        parents[boundary.uuid], parents[head.uuid] = head.parent, anchor
    return parents


def _add_parallel(index: TranscriptIndex, chain: list[TranscriptLine]) -> list[ChainLine]:
    """Add the pieces of replies on the way, and results of their calls, that hang beside the way."""
    on_the_way = {line.uuid for line in chain}
    last_piece = {line.response: line.uuid for line in chain if line.response is not None}
    owner = {line.uuid: line.response for line in index.lines if line.response in last_piece}
    beside: dict[str, list[ChainLine]] = {}
    for line in index.lines:
        if line.uuid in on_the_way:
            continue
        is_piece = line.uuid in owner
        response = owner.get(line.uuid if is_piece else line.parent or "")
        if response is not None and (is_piece or line.kind == "user"):
            beside.setdefault(last_piece[response], []).append(ChainLine(line, not is_piece))
    return [found for line in chain for found in (ChainLine(line), *beside.get(line.uuid, ()))]
