"""The record of a session as it stands in `{id}.json`: field names in camelCase, two spaces of indentation.

Fields that this version does not know, and values that it does not understand, are kept as they are. What the
SDK stores here about memory, background work and sandboxes is opaque: it is kept, and never acted upon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from robota.core.errors import ValidationError
from robota.core.jsontext import decode, decode_leniently, encode
from robota.core.messages import HistoryEntry, Json, JsonObject, Message
from robota.sessions.files import OWN_SUFFIXES
from robota.sessions.journal.records import KEPT_FIELDS, KeptField

RECORD_VERSION = 1
"""The major version of the file; a file with a higher one is read but not written."""

CHECKSUM = "checksum"
_BEFORE_CHECKSUM = b',"checksum":'
_LONG = 256 * 1024
"""Bytes of a list that is laid out entry by entry."""
CHANGED = "The snapshot is not as it was written: it was damaged, or changed by hand."

_SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_SAFE_INSIDE = _SAFE + "._-"


class SessionRecord(Struct, kw_only=True, rename="camel"):
    """A session on disk. `None` and an empty text mean "not set": saving keeps what the file has there."""

    id: str
    cwd: str
    """The working directory in which the session was started."""
    created_at: str = ""
    updated_at: str = ""
    """ISO 8601 in UTC. Saving fills in the present time."""
    name: str | None = None
    """What the user calls the session."""
    model: str | None = None
    sandbox_snapshot_id: str | None = None
    system_prompt: str | None = None
    """Also the first of the messages; kept apart so that a prompt can be looked at directly."""
    journal_seq: int | None = None
    """The last record of the journal whose effect is in this snapshot."""
    version: Json = RECORD_VERSION
    tool_schemas: list[Json] | None = None
    background_tasks: list[Json] | None = None
    background_task_events: list[Json] | None = None
    background_job_groups: list[Json] | None = None
    background_job_group_events: list[Json] | None = None
    memory_events: list[Json] | None = None
    used_memory_references: list[Json] | None = None
    context_references: list[Json] | None = None
    language: list[Json] | None = None
    """The one that the user chose for this session."""
    messages: list[Json]
    """The conversation as JSON objects; `parse_messages` makes messages of them. Saving takes both."""
    history: list[Json] = []
    """The timeline, events included; left empty it is made of the messages."""
    extra: JsonObject = {}
    """Fields of the file that have no name here."""
    problems: tuple[str, ...] = ()
    """What was found damaged while loading, and what was done about it; not saved."""

    @property
    def read_only(self) -> bool:
        """Whether a newer robota wrote the file, so that saving over it is refused."""
        return is_newer(self.version)

    def parse_messages(self) -> list[Message]:
        """The conversation. A message without an id or a time gets the same ones at every call."""
        from robota.sessions.store.message_codec import (  # noqa: PLC0415 - not for those who only write
            message_from_record,
            read_time,
        )

        moment = read_time(self.created_at)
        return [
            message_from_record(message, id=f"{self.id}-{number}", timestamp=moment)
            for number, message in enumerate(self.messages, 1)
        ]

    def parse_history(self) -> list[HistoryEntry]:
        """The timeline, with the ids and times of `parse_messages`."""
        from robota.sessions.store.message_codec import (  # noqa: PLC0415 - likewise
            history_entry_from_record,
            read_time,
        )

        moment = read_time(self.created_at)
        return [
            history_entry_from_record(entry, id=f"{self.id}-entry-{number}", timestamp=moment)
            for number, entry in enumerate(self.history, 1)
        ]

    @property
    def kept(self) -> dict[KeptField, list[Json]]:
        """The fields that belong to layers above sessions, in the spelling on disk."""
        named = {field: getattr(self, name) for name, field in _KEPT.items()}
        return {field: value for field, value in named.items() if value is not None}

    def keep(self, fields: Mapping[KeptField, list[Json]]) -> None:
        for name, field in _KEPT.items():
            if field in fields:
                setattr(self, name, fields[field])

    def to_mapping(self) -> JsonObject:
        """The fields that are set, in the spelling on disk."""
        known = {key: getattr(self, name) for name, key in _KEYS.items()}
        return {
            **self.extra,
            **{key: value for key, value in known.items() if value is not None and value != ""},
        }


_KEYS = {
    name: key
    for name, key in zip(SessionRecord.__struct_fields__, SessionRecord.__struct_encode_fields__, strict=True)
    if name not in ("extra", "problems")
}
_KEPT = {name: field for field in KEPT_FIELDS for name, key in _KEYS.items() if key == field}
FIELD_ORDER = tuple(_KEYS.values())
"""Short fields come first: whoever opens the file sees at once which session it is."""
_TEXT_KEYS = frozenset(
    ("id", "cwd", "createdAt", "updatedAt", "name", "model", "sandboxSnapshotId", "systemPrompt")
)


def check_session_id(id: str) -> str:
    """The id, if it may be a part of file names; anything else is refused."""
    safe = isinstance(id, str) and 0 < len(id) <= 128 and id[0] in _SAFE and not id.strip(_SAFE_INSIDE)
    if safe and not id.lower().endswith(OWN_SUFFIXES):
        return id
    raise ValidationError(
        f"{str(id)[:140]!r} cannot be a session id. Use letters, digits, '.', '_' and '-', begin with a "
        "letter or digit, and stay within 128 characters, without an ending such as .json.",
        field="id",
    )


def is_newer(version: Json) -> bool:
    """Whether a file of this version is beyond what we can write; an unreadable version is."""
    if version is None:
        return False
    major = version.split(".", 1)[0] if isinstance(version, str) else version
    try:
        return int(major) > RECORD_VERSION
    except (TypeError, ValueError, OverflowError):
        return True


def split_record(data: bytes) -> dict[str, Raw]:
    """The fields of a record's file, not decoded; what is not a session record raises `ValueError`."""
    data.decode()  # the values are copied as they are, so they must be text
    try:
        fields = _SPLIT(data)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except msgspec.ValidationError as error:
        raise ValueError("it is not a JSON object") from error
    except ValueError:
        fields = {key: Raw(encode(value)) for key, value in _decode_as_javascript(data).items()}
    if not any(bytes(fields.get(key, b""))[:1] == b"[" for key in ("messages", "history")):
        raise ValueError("it has no list of messages")
    return fields


_SPLIT = msgspec.json.Decoder(dict[str, Raw]).decode


def _decode_as_javascript(data: bytes) -> JsonObject:
    """The object in a file with half characters, which cut texts of JavaScript may have at their end."""
    if b"\\u" not in data:
        raise ValueError("it is not valid JSON, and may have been cut")
    value = decode_leniently(data)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def decode_record(data: bytes, id: str) -> SessionRecord:
    """A record from the bytes of its file; what is not a session record raises `ValueError`."""
    split_record(data)
    problems: list[str] = []
    try:
        mapping = decode(data)
    except ValueError:
        mapping = _decode_as_javascript(data)
        problems.append("Half characters, which JavaScript allows, were replaced.")
    checksum = mapping.pop(CHECKSUM, None)
    if checksum is not None and checksum != _checksum_of(data):
        problems.append(CHANGED)
    record = _from_mapping(mapping, id, problems)
    if is_newer(record.version):
        problems.append(
            f"A newer robota wrote this session (version {record.version}): it can be read, not saved over."
        )
    record.problems = tuple(problems)
    return record


def _from_mapping(mapping: JsonObject, id: str, problems: list[str]) -> SessionRecord:
    fields: JsonObject = {}
    extra = dict(mapping)
    for name, key in _KEYS.items():
        if key in mapping and _fits(key, mapping[key]):
            fields[name] = extra.pop(key)
    if fields.get("id", id) != id:
        problems.append(f"The file says it is session {fields['id']!r}; its name counts.")
    fields["id"] = id
    fields.setdefault("cwd", "")
    fields.setdefault("version", None)
    if "messages" not in fields:
        problems.append("The messages were missing and are taken from the history.")
        fields["messages"] = [
            entry["data"]
            for entry in fields["history"]
            if isinstance(entry, dict) and entry.get("category") == "chat" and "data" in entry
        ]
    record = SessionRecord(**fields, extra=extra)
    if record.messages and not record.history:
        record.history = backfill_history(record.messages, id=id, created_at=record.created_at)
        extra.pop("history", None)
    return record


def _fits(key: str, value: Json) -> bool:
    """Whether a value has the type of its field; one that has not is kept among the unknown ones."""
    if key in _TEXT_KEYS:
        return isinstance(value, str)
    if key == "journalSeq":
        return type(value) is int
    return key == "version" or isinstance(value, list)


def backfill_history(messages: Sequence[Json], *, id: str, created_at: str) -> list[Json]:
    """The timeline of a record that was written before there was one."""
    from robota.sessions.store.message_codec import message_record_to_entry_record  # noqa: PLC0415 - old records

    return [
        message_record_to_entry_record(message, id=f"{id}-{number}", timestamp=created_at)
        for number, message in enumerate(messages, 1)
        if isinstance(message, Mapping)
    ]


def encode_field(key: str, value: Json) -> Raw:
    try:
        return value if isinstance(value, Raw) else Raw(encode(value))
    except (RecursionError, TypeError) as error:
        why = f"no JSON: {error}" if isinstance(error, TypeError) else "nested too deeply"
        raise ValidationError(f"The field {key} of a session record is {why}.", field=key) from error


def seal(fields: Mapping[str, Json]) -> bytes:
    """Fields, decoded or not, as a record stands in its file: in order, indented, and with a checksum of its
    compact form at the end.

    Long lists are laid out entry by entry: a thread that formats megabytes at one go holds all others.
    """
    known = [key for key in FIELD_ORDER if key in fields]
    checksum, shown = crc32(b"{"), [b"{"]
    for number, key in enumerate((*known, *(key for key in fields if key not in FIELD_ORDER))):
        name, value = encode(key), encode_field(key, fields[key])
        checksum = crc32(b"%b%b:" % (b"," if number else b"", name), checksum)
        shown.append(b"%b\n  %b: " % (b"," if number else b"", name))
        checksum = _lay_out(value, shown, checksum)
    shown.append(b',\n  "%b": "%08x"\n}\n' % (CHECKSUM.encode(), crc32(b"}", checksum)))
    return b"".join(shown)


def _lay_out(value: Raw, shown: list[bytes], checksum: int, indent: bytes = b"\n  ") -> int:
    """Add the indented form of a value, and its compact form to the checksum: what was taken over from a file
    is indented already."""
    data = memoryview(value)
    if len(data) < _LONG or data[0] != ord("["):
        shown.append(msgspec.json.format(value, indent=2).replace(b"\n", indent))
        return crc32(msgspec.json.format(value, indent=-1), checksum)
    entries = msgspec.json.decode(value, type=list[Raw])
    inside = indent + b"  "
    for number, entry in enumerate(entries):
        checksum = crc32(b"," if number else b"[", checksum)
        shown.append(b"%b%b" % (b"," if number else b"[", inside))
        checksum = _lay_out(entry, shown, checksum, inside)
    shown.append(indent + b"]")
    return crc32(b"]", checksum)


def _checksum_of(data: bytes) -> str:
    """What the checksum of a file would have to be."""
    compact = msgspec.json.format(data, indent=-1)
    return f"{crc32(compact[: compact.rindex(_BEFORE_CHECKSUM)] + b'}'):08x}"
