"""One `{id}.json` on disk: replaced as a whole, and copied before anything in it could get lost.

The journal beside it is the truth. A snapshot is only preferred because it is read in one piece, and because
it holds what the SDK keeps beside the conversation; where the journal is ahead, a record is made of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Raw, Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.errors import StorageError, ValidationError
from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject
from robota.core.ports import utc_now
from robota.sessions.files import Files, opened, write_durably
from robota.sessions.journal.file.line import parse_line
from robota.sessions.store.session_record import (
    CHECKSUM,
    FIELD_ORDER,
    RECORD_VERSION,
    SessionRecord,
    backfill_history,
    decode_record,
    is_newer,
    split_record,
)

if TYPE_CHECKING:
    from robota.sessions.start import SessionStart

LARGEST = 512 * 1024 * 1024
"""Bytes beyond which a file is not taken for a snapshot; its journal is read instead."""
_COPIES = 1000
_JOURNAL_SEQ = lazy_pattern(rb'^  "journalSeq": ([0-9]{1,18}),?$', re.MULTILINE)
_BLOCK = 1 << 20


class SnapshotFile(Struct, eq=False):
    _files: Files
    path: str

    def read(self) -> bytes:
        """All of it; a file beyond reason raises `ValueError`."""
        return read_file(self._files, self.path)

    def read_seq(self) -> int:
        """The `journalSeq`, which stands before everything that is long; 0 without one."""
        try:
            with opened(self._files, self.path) as fd:
                found = _JOURNAL_SEQ.search(self._files.read_at(fd, _BLOCK, 0))
        except OSError:
            return 0
        return int(found[1]) if found else 0

    def load(self, id: str) -> SessionRecord | None:
        """The record, `None` without a file. `OSError` and `ValueError` say why it cannot be read."""
        try:
            record = decode_record(self.read(), id)
        except FileNotFoundError:
            return None
        if not record.updated_at:
            record.updated_at = format_time(datetime.fromtimestamp(os.stat(self.path).st_mtime, UTC))
        record.created_at = record.created_at or record.updated_at
        return record

    def fields(self) -> dict[str, Raw]:
        """What is in the file, if there is one. A damaged file is copied: it is about to be replaced."""
        try:
            return split_record(self.read())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StorageError(
                f"The session was not saved: {self.path} is there but cannot be read ({reason_of(error)}). "
                "It is left as it is."
            ) from error
        except ValueError as error:
            self.keep_copy("damaged", f"it is damaged ({reason_of(error)})")
            return {}

    def keep_copy(self, kind: str, because: str) -> None:
        """Have `{id}.json.{kind}-{n}` with the present content."""
        try:
            data = self.read()
            for number in range(1, _COPIES):
                target = f"{self.path}.{kind}-{number}"
                if not os.path.lexists(target):
                    write_durably(self._files, target, data)
                    return
                if read_file(self._files, target) == data:
                    return
        except (OSError, ValueError) as error:
            raise self._uncopied(because, reason_of(error)) from error
        raise self._uncopied(because, f"there are {_COPIES} copies already")

    def replace(self, data: bytes) -> None:
        """Exchange the file for one with this content; any failure leaves the old one."""
        try:
            self._files.make_directory(os.path.dirname(self.path))
            write_durably(self._files, self.path, data)
        except OSError as error:
            raise StorageError(
                f"The session could not be saved to {self.path}: {reason_of(error)}. What was saved before "
                "is as it was. Make room or allow writing there, and save again."
            ) from error

    def _uncopied(self, because: str, reason: str) -> StorageError:
        return StorageError(
            f"{self.path} was not overwritten: {because}, and no copy of it could be kept: {reason}. "
            "Move it away and save again."
        )


def read_file(files: Files, path: str) -> bytes:
    with opened(files, path) as fd:
        size = files.size(fd)
        if size > LARGEST:
            raise ValueError(f"it has {size:,} bytes; a snapshot has at most {LARGEST:,}")
        data = files.read(fd, size + 1)  # as much as is there: room for more costs more than the reading
        if len(data) == size:
            return data
        pieces = [data]
        while piece := files.read(fd, _BLOCK):
            pieces.append(piece)
        return b"".join(pieces)


def reason_of(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 at byte {error.start:,}"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def format_time(moment: datetime) -> str:
    """A moment as records and journals write it."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def merge_fields(path: str, new: Mapping[str, Json], old: Mapping[str, Raw]) -> JsonObject:
    """What a file is to hold: the new fields, and of the old ones those that are not set anew."""
    written = decode(old["version"]) if "version" in old else None
    for version in (new.get("version"), written):
        if is_newer(version):
            raise StorageError(
                f"The session was not saved: a newer robota wrote {path} (version {version}). "
                "Update robota, or fork the session."
            )
    removed = {key for key, value in new.items() if value is None and key in FIELD_ORDER}
    removed.add(CHECKSUM)
    merged: JsonObject = {key: value for key, value in {**old, **new}.items() if key not in removed}
    if not isinstance(merged.get("messages", merged.get("history")), list | tuple | Raw):
        raise ValidationError(f"The session record for {path} has no list of messages.", field="messages")
    now = format_time(utc_now())
    if "updatedAt" not in new:
        merged["updatedAt"] = now
    merged["version"] = RECORD_VERSION if written is None else written
    for key, value in (("cwd", ""), ("createdAt", now)):
        merged.setdefault(key, value)
    outdated = new.get("messages") and not new.get("history")
    if outdated or "history" not in merged:
        messages = decode(encode(merged["messages"]))
        merged["history"] = backfill_history(messages, id=new["id"], created_at=_text(merged["createdAt"]))
    return merged


def _text(value: Json) -> str:
    read = decode(value) if isinstance(value, Raw) else value
    return read if isinstance(read, str) else ""


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
    with opened(files, path) as fd:
        size = files.size(fd)
        start = max(0, size - limit)
        data = files.read_at(fd, size - start, start)
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


def rebuild_record(
    files: Files, journal: str, id: str, snapshot: SessionRecord | None, damage: str
) -> SessionRecord:
    """The session as its journal tells it, with what only the snapshot knows.

    `damage` says what is wrong with the snapshot, if anything. A journal that holds nothing readable raises.
    """
    from robota.sessions.mending import mend  # noqa: PLC0415 - rare
    from robota.sessions.start import restore_journal  # noqa: PLC0415 - likewise

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
        mend(restored, snapshot)
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
    record.keep(restored.kept)
    record.system_prompt = restored.system_prompt or record.system_prompt
    if restored.facts.tool_schemas is not None:
        record.tool_schemas = list(restored.facts.tool_schemas)
    restored.background.write_into(record)
    record.messages = decode(encode(restored.messages))
    record.history = decode(encode(restored.history))
    record.journal_seq = restored.last_seq or None
    record.problems += restored.problems
