"""Where a session's snapshot and its journal meet: which of them is ahead, and a record made of the journal.

The journal is the truth. A snapshot is only preferred because it is read in one piece, and because it holds
what the SDK keeps beside the conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.errors import StorageError
from robota.core.jsontext import decode, encode
from robota.core.messages import Json
from robota.sessions.files import Files, close_quietly
from robota.sessions.journal.file.line import parse_line
from robota.sessions.store.session_record import SessionRecord

if TYPE_CHECKING:
    from robota.sessions.start import SessionStart

TAIL = 256 * 1024
_SILENT = {
    "context", "context_loaded", "error", "hook_executed", "notice", "run_end", "session_resumed",
    "session_shutdown",
}  # fmt: skip
"""Records that follow a snapshot without changing the conversation in it."""


def read_tail(files: Files, path: str, limit: int = TAIL) -> tuple[list[bytes], bool]:
    """The last whole lines of a journal within `limit` bytes, and whether they are all there is.

    A last line that was not finished counts as a line.
    """
    fd = files.open_read(path)
    try:
        size = files.size(fd)
        start = max(0, size - limit)
        data = files.read_at(fd, size - start, start)
    finally:
        close_quietly(files, fd)
    lines = data.split(b"\n")
    if start:
        del lines[0]
    return [line for line in lines if line], not start


def is_journal_ahead(files: Files, path: str, seq: int) -> bool:
    """Whether the journal may know more of the conversation than a snapshot that ends with record `seq`.

    Looks at the end of the file only, and is right when it says no.
    """
    lines, whole = read_tail(files, path)
    for line in reversed(lines):
        found = parse_line(line)
        if found is None or not found.seq:
            return True
        if found.seq <= seq:
            return False
        if found.event not in _SILENT:
            return True
    return not whole


def load_with_journal(
    files: Files, journal: str, id: str, snapshot: SessionRecord | None, damage: str
) -> SessionRecord:
    """The snapshot, or what the journal says if that is more. `damage` is why there is no snapshot."""
    if snapshot is not None and snapshot.journal_seq is not None:
        try:
            if not is_journal_ahead(files, journal, snapshot.journal_seq):
                return snapshot
        except OSError as error:
            return _do_without(snapshot, damage, f"The journal {journal} cannot be read: {error}.")
    return rebuild_record(files, journal, id, snapshot, damage)


def rebuild_record(
    files: Files, journal: str, id: str, snapshot: SessionRecord | None, damage: str
) -> SessionRecord:
    """The session as its journal tells it, with what only the snapshot knows.

    `damage` says what is wrong with the snapshot, if anything. A journal that holds nothing readable raises.
    """
    from robota.sessions.start import restore_journal  # noqa: PLC0415 - rare

    try:
        restored = restore_journal(journal, files=files, session_id=id)
    except StorageError as error:
        return _do_without(snapshot, damage, str(error))
    if not restored.messages and not restored.last_seq:
        reasons = " ".join(restored.problems) or "It is empty."
        return _do_without(snapshot, damage, f"The journal {journal} holds nothing readable. {reasons}")
    if snapshot is None:
        record = SessionRecord(id=id, cwd="", messages=[])
        record.problems = (f"{damage}The conversation was rebuilt from the journal.",) if damage else ()
    elif snapshot.journal_seq is None and len(restored.messages) <= len(snapshot.messages):
        return snapshot
    else:
        record = snapshot
    _take_over(record, restored)
    return record


def _do_without(snapshot: SessionRecord | None, damage: str, reason: str) -> SessionRecord:
    if snapshot is None:
        raise StorageError(f"{damage}{reason} Nothing was changed.")
    snapshot.problems += (f"{reason} The snapshot is used.",)
    return snapshot


def _take_over(record: SessionRecord, restored: SessionStart) -> None:
    record.cwd = record.cwd or restored.cwd
    record.created_at = record.created_at or restored.created_at
    record.updated_at = max(record.updated_at, restored.updated_at)
    record.name = restored.changed("name") or record.name or restored.name
    record.model = restored.changed("model") or record.model or restored.model or None
    record.system_prompt = restored.system_prompt or record.system_prompt
    if restored.facts.tool_schemas is not None:
        record.tool_schemas = list(restored.facts.tool_schemas)
    record.messages = _join(record.messages, restored.messages, restored.problems)
    record.history = _join(record.history, restored.history, restored.problems)
    record.journal_seq = restored.last_seq or None
    record.problems += restored.problems


def _join(known: list[Json], restored: list[Json], problems: tuple[str, ...]) -> list[Json]:
    """The restored values; if the journal lost some that the snapshot has, only its news are added."""
    found: list[Json] = decode(encode(restored))
    ids = {item.get("id") for item in known if isinstance(item, dict)}
    if not problems or ids <= {item["id"] for item in found}:
        return found
    common = [at for at, item in enumerate(found) if item["id"] in ids]
    return known + found[common[-1] + 1 if common else 0 :]
