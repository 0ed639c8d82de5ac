"""Sessions that other programs kept, taken into the store: artifacts, the original's records and logs, and
transcripts of Claude Code. The files are only read; secrets are removed on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct, to_builtins

from robota.core.errors import ConfigurationError, RobotaError, StorageError
from robota.core.jsontext import decode
from robota.core.messages import JsonObject
from robota.core.regular_file import open_regular
from robota.sdk.places import Places
from robota.sessions.store.session_record import check_session_id
from robota.sessions.store.session_store import SessionStore

MAX_RECORD = 256 << 20
"""Bytes of a record that is read as a whole."""
HEAD = 64 << 10


class Import(Struct, frozen=True, kw_only=True):
    """What became of one file."""

    path: str
    id: str = ""
    """The session it became; empty if it became none."""
    messages: int = 0
    is_known: bool = False
    """The store had it already."""
    problems: tuple[str, ...] = ()


def find_foreign(places: Places, *, claude: bool = False) -> list[str]:
    """The sessions of a directory that other programs kept: of the original in the directory itself, and with
    `claude` those of Claude Code."""
    paths = [*_list(places.project(".robota", "sessions"), ".json")]
    known = {os.path.basename(path).removesuffix(".json") for path in paths}
    logs = _list(places.project(".robota", "logs"), ".jsonl")
    paths += [path for path in logs if os.path.basename(path).removesuffix(".jsonl") not in known]
    if claude:
        from robota.sessions.transcripts.files import find_claude_transcripts  # noqa: PLC0415 - on request

        paths += [found.path for found in find_claude_transcripts(places.cwd, config_dir=places.claude_home)]
    return paths


def adopt_transcript(store: SessionStore, places: Places, session_id: str) -> bool:
    """Keep a session that only a transcript of Claude Code in this directory tells of; whether there is
    one."""
    from robota.sessions.transcripts.claude_transcript import read_claude_transcript  # noqa: PLC0415 - rare
    from robota.sessions.transcripts.files import find_claude_transcripts  # noqa: PLC0415

    for found in find_claude_transcripts(places.cwd, config_dir=places.claude_home):
        if found.session_id == session_id:
            store.save(read_claude_transcript(found.path, session_id=session_id).record)
            return True
    return False


def expand(path: str) -> list[str]:
    """A file, or those of a directory that may be sessions."""
    if not os.path.isdir(path):
        return [path]
    return [*_list(path, ".json"), *_list(path, ".jsonl")]


def import_session(store: SessionStore, path: str, cwd: str) -> Import:
    """Take the session of one file into the store, with its own id; one that is there already is left."""
    try:
        record, problems = _read(path)
        id = check_session_id(str(record.get("id") or ""))
        if store.exists(id):
            there = f"There is a session {id} already; it was left as it is."
            return Import(path=path, is_known=True, problems=(there,))
        record.setdefault("cwd", cwd)
        store.save({key: value for key, value in record.items() if key not in _OURS})
        return Import(path=path, id=id, messages=len(record["messages"]), problems=problems)
    except (OSError, RobotaError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return Import(path=path, problems=(f"{path} was not imported: {why}",))


_OURS = ("checksum", "journalSeq", "version")
"""What a store says about its own files."""


def _read(path: str) -> tuple[JsonObject, tuple[str, ...]]:
    if path.endswith(".jsonl"):
        return _read_lines(path)
    with open_regular(path) as file:
        data = file.read(MAX_RECORD + 1)
    if len(data) > MAX_RECORD:
        raise StorageError(f"it is larger than {MAX_RECORD >> 20} MiB.")
    try:
        record = decode(data)
    except ValueError as error:
        raise ConfigurationError(f"it is not JSON ({error}).") from error
    if isinstance(record, dict) and "schemaVersion" in record:
        from robota.sessions.export.artifact import import_json  # noqa: PLC0415 - one of several kinds

        return import_json(data), ()
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        raise ConfigurationError("it is no session: a record has an id and messages.")
    return _add_history(record, path), ()


def _add_history(record: JsonObject, path: str) -> JsonObject:
    """The record with the events that the log of the original beside it tells, if it has none itself."""
    log = os.path.join(os.path.dirname(os.path.dirname(path)), "logs", f"{record.get('id')}.jsonl")
    if not isinstance(record.get("history"), list) and os.path.isfile(log):
        told, _ = _read_log(log)
        if len(told["messages"]) >= len(record["messages"]):
            record["history"] = told["history"]
    return record


def _read_lines(path: str) -> tuple[JsonObject, tuple[str, ...]]:
    kinds = {key for line in _first_lines(path) for key in line}
    if "event" in kinds or "e" in kinds:
        return _read_log(path)
    from robota.sessions.transcripts.claude_transcript import read_claude_transcript  # noqa: PLC0415 - as above

    transcript = read_claude_transcript(path)
    return transcript.record, transcript.problems


def _read_log(path: str) -> tuple[JsonObject, tuple[str, ...]]:
    from robota.sessions.journal.entries import load_session_log_entries  # noqa: PLC0415 - as above
    from robota.sessions.replay.log_entries import replay_session_log_entries  # noqa: PLC0415
    from robota.sessions.store.message_codec import (  # noqa: PLC0415
        history_entry_to_record,
        message_to_record,
    )

    entries = load_session_log_entries(path)
    told = replay_session_log_entries(entries)
    if not told.messages:
        raise ConfigurationError("it holds no conversation.")
    begun = next((entry for entry in entries if entry.get("event") == "session_init"), {})
    facts = {key: begun.get(key) for key in ("cwd", "model", "systemPrompt") if begun.get(key)}
    record: JsonObject = {
        **facts,
        "id": told.session_id or os.path.basename(path).removesuffix(".jsonl"),
        "createdAt": to_builtins(told.messages[0].timestamp),
        "updatedAt": to_builtins(told.messages[-1].timestamp),
        "messages": [message_to_record(message) for message in told.messages],
        "history": [history_entry_to_record(entry) for entry in told.history],
    }
    return record, told.problems


def _first_lines(path: str) -> Iterator[JsonObject]:
    with open_regular(path) as file:
        lines = file.read(HEAD).split(b"\n")
    for line in lines:
        try:
            record = decode(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def _list(directory: str, ending: str) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [
        os.path.join(directory, name)
        for name in names
        if name.endswith(ending) and not name.startswith((".", "agent-"))
    ]
