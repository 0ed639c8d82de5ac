"""Import of a conversation from a Claude Code transcript, a format that is another program's own.

The file is only read. The messages that come out are valid for a request: a call without a result gets one
that says so, a result without a call is left out, and `problems` names both and everything else that was
wrong. Reading happens twice in pieces, so that a transcript may be far larger than its conversation.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, to_builtins

from robota.core.errors import StorageError, ValidationError
from robota.core.history import HistoryEntry
from robota.core.messages import JsonObject, Message
from robota.core.ports import new_uuid
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.store.session_record import check_session_id
from robota.sessions.transcripts.content import text_of
from robota.sessions.transcripts.draft import TranscriptDraft
from robota.sessions.transcripts.files import SubagentTranscript, find_subagents
from robota.sessions.transcripts.lines import Problems, TranscriptIndex, index_transcript, read_line
from robota.sessions.transcripts.tree import conversation_lines


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
        from robota.sessions.store.message_codec import (  # noqa: PLC0415 - only who stores it needs it
            history_entry_to_record,
            message_to_record,
        )

        record: JsonObject = {
            "id": self.id,
            "cwd": self.cwd,
            "createdAt": to_builtins(self.created_at),
            "updatedAt": to_builtins(self.updated_at),
            "messages": [message_to_record(message) for message in self.messages],
            "history": [history_entry_to_record(entry) for entry in self.history],
        }
        optional = {"name": self.name, "model": self.model}
        return (
            record
            | {name: value for name, value in optional.items() if value}
            | {"importedFrom": self.origin}
        )


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
        fd = files.open_read(path)
        try:
            index = index_transcript(files, fd, problems)
            for found in conversation_lines(index, problems):
                record = read_line(files, fd, found.line, problems)
                if record is not None:
                    draft.add(record, found.line.number, problems, results_only=found.results_only)
        finally:
            files.close(fd)
    except OSError as error:
        raise TranscriptError(f"The transcript {path} cannot be read: {error.strerror or error}.") from error
    return _finish(path, session_id, index, draft, problems)


def _finish(
    path: str, session_id: str | None, index: TranscriptIndex, draft: TranscriptDraft, problems: Problems
) -> ImportedTranscript:
    history = draft.arrange(problems)
    messages = [entry.data for entry in history if entry.category == "chat"]
    if not messages:
        raise TranscriptError(_without_conversation(path, index.line_count, problems))
    own_id = text_of(draft.facts.get("sessionId"))
    if draft.is_subagent:
        own_id = path.rpartition("/")[2].removesuffix(".jsonl")
    origin: JsonObject = {"format": "claude-code", "path": path, **draft.facts}
    return ImportedTranscript(
        id=session_id or _safe_id(own_id),
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


def _safe_id(own_id: str) -> str:
    try:
        return check_session_id(own_id)
    except ValidationError:
        return new_uuid()


def _without_conversation(path: str, lines: int, problems: Problems) -> str:
    found = problems.sentences()
    reason = f" {' '.join(found[:3])}" if found else ""
    return f"The transcript {path} holds no conversation: none of its {lines} lines is a message.{reason}"
