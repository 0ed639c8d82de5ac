"""A session as a file to hand to somebody else: its record under a version number, in JSON.

The shape is the TypeScript original's, `{"schemaVersion": 1, "record": {…}}`; `redacted` says whether secrets
were removed. A file of another version is refused by name, because nobody can know what it means.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from robota.core.errors import ValidationError
from robota.core.jsontext import decode, encode
from robota.core.messages import JsonObject
from robota.sessions.export.source import Exportable, OnStep, plain_record
from robota.sessions.store.session_record import check_session_id

SESSION_ARTIFACT_SCHEMA_VERSION = 1
_REQUIRED: dict[str, type] = {"id": str, "messages": list}


def export_json(
    record: Exportable,
    *,
    redact: bool = True,
    secrets: Sequence[str] = (),
    on_step: OnStep | None = None,
) -> str:
    """The artifact; `secrets` are values to remove beside those that look like secrets."""
    artifact = {
        "schemaVersion": SESSION_ARTIFACT_SCHEMA_VERSION,
        "redacted": redact,
        "record": plain_record(record, redact=redact, secrets=secrets, on_step=on_step),
    }
    return msgspec.json.format(encode(artifact), indent=2).decode() + "\n"


def import_json(data: str | bytes) -> JsonObject:
    """The record of an artifact, in the spelling used on disk."""
    try:
        artifact = decode(data)
    except ValueError as error:
        raise ValidationError(f"This is not a session artifact: it is not valid JSON ({error}).") from error
    version = artifact.get("schemaVersion") if isinstance(artifact, dict) else None
    if version is None:
        raise ValidationError(
            "This is not a session artifact: it has no schemaVersion. Export the session as JSON to get one.",
            field="schemaVersion",
        )
    if type(version) is not int or version != SESSION_ARTIFACT_SCHEMA_VERSION:
        raise ValidationError(
            f"The session artifact has schemaVersion {version!r}; this robota reads "
            f"{SESSION_ARTIFACT_SCHEMA_VERSION}. Export it again, or use the robota that wrote it.",
            field="schemaVersion",
        )
    return _checked(artifact.get("record"))


def _checked(record: object) -> JsonObject:
    if not isinstance(record, dict):
        raise ValidationError("The session artifact holds no record.", field="record")
    for name, kind in _REQUIRED.items():
        if not isinstance(record.get(name), kind):
            raise ValidationError(
                f"The record of the session artifact has no {name} ({kind.__name__}).", field=f"record.{name}"
            )
    check_session_id(record["id"])
    return record
