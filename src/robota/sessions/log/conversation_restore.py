"""What a journal says about its session: the conversation, and what is needed to go on with it.

Memory follows the conversation, not the journal: everything else is checked and passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import ValidationError

from robota.core.conversation import ConversationStore
from robota.core.errors import RobotaError, StorageError
from robota.core.messages import Json
from robota.core.ports import REAL_WORLD, Ports
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal.payloads import PayloadStore
from robota.sessions.journal.reader import JournalProblem, JournalRecord, read_journal
from robota.sessions.log.conversation_builder import (
    CONVERSATION_EVENTS,
    UNKNOWN_EFFECTS,
    ConversationBuilder,
)

_WANTED = CONVERSATION_EVENTS | {"session_init", "user", "session_change", "session_shutdown"}
_RESUMED_WITH = ("model", "provider", "name", "permissionMode", "autoCompactThreshold")
"""What a session may be resumed with that it was not begun with."""


class RestoredConversation:
    """A session as its journal tells it."""

    __slots__ = (
        "changes", "closed", "created_at", "first_prompt", "init", "last_seq", "problems", "prompts", "steps",
        "store", "updated_at",
    )  # fmt: skip

    def __init__(self) -> None:
        self.store = ConversationStore()
        self.init: Mapping[str, Json] = {}
        """The fields of `session_init`."""
        self.changes: dict[str, Json] = {}
        """Latest value of what was changed since: name, model, permission mode …"""
        self.created_at = ""
        self.updated_at = ""
        self.first_prompt = ""
        self.prompts = 0
        self.steps = 0
        """Messages that were ever recorded, also before the conversation was cleared."""
        self.last_seq = 0
        self.closed = False
        """The session was shut down in good order."""
        self.problems: tuple[str, ...] = ()
        """What was damaged or cut, and what became of it."""

    @property
    def messages(self) -> list[Any]:
        return self.store.messages

    @property
    def history(self) -> list[Any]:
        return self.store.history

    @property
    def cwd(self) -> str:
        return str(self.init.get("cwd") or "")

    @property
    def name(self) -> str | None:
        return self.changes["name"] if "name" in self.changes else self.init.get("name")

    @property
    def model(self) -> str | None:
        return self.changes.get("model") or self.init.get("model")

    @property
    def provider(self) -> str | None:
        """The name of the provider that answered last."""
        return self.changes.get("provider") or self.init.get("provider")

    @property
    def system_prompt(self) -> str | None:
        system = self.store.system
        return system.content if system is not None else self.init.get("systemPrompt") or None

    @property
    def tool_schemas(self) -> Json:
        return self.init.get("toolSchemas")


def restore_conversation(
    path: str,
    *,
    files: Files = REAL_FILES,
    session_id: str | None = None,
    until: int | None = None,
    step: int | None = None,
    unanswered: str = UNKNOWN_EFFECTS,
    ports: Ports = REAL_WORLD,
) -> RestoredConversation:
    """Read a journal to its end, up to the record `until`, or up to its message number `step`.

    A call that has no result there gets one that says `unanswered`. The conversation goes on with ids and
    times of `ports`. A file that cannot be read raises.
    """
    problems: list[str] = []
    fields_of = _FieldReader(path, files, problems).read
    restored, builder = RestoredConversation(), ConversationBuilder(unanswered, ports, fields_of)
    for item in read_journal(path, session_id=session_id, files=files, events=_WANTED):
        if isinstance(item, JournalProblem):
            problems.append(item.message)
            continue
        if (until is not None and item.seq > until) or (step is not None and builder.steps >= step):
            break
        restored.last_seq = max(restored.last_seq, item.seq)
        try:
            _take(restored, builder, item, {} if item.event == "stream" else fields_of(item))
        except (RobotaError, ValidationError, KeyError, TypeError, ValueError) as error:
            problems.append(
                f"{path}: record {item.seq} ({item.event}) is not usable and was left out: {error}."
            )
    builder.settle()
    restored.store, restored.steps = builder.store, builder.steps
    restored.problems = (*problems, *builder.repairs)
    return restored


class _FieldReader:
    """Decodes records and fetches what was put aside."""

    __slots__ = ("_files", "_path", "_payloads", "_problems")

    def __init__(self, path: str, files: Files, problems: list[str]) -> None:
        self._path = path
        self._files = files
        self._problems = problems
        self._payloads: PayloadStore | None = None

    def read(self, record: JournalRecord) -> Mapping[str, Json]:
        fields = record.fields()
        if b'"external-payload"' not in record.line:
            return fields
        self._payloads = self._payloads or payloads_of(self._path, self._files)
        return resolve_payloads(record, fields, self._payloads, self._problems)


def _take(
    restored: RestoredConversation,
    builder: ConversationBuilder,
    record: JournalRecord,
    fields: Mapping[str, Json],
) -> None:
    stamp = str(fields.get("timestamp") or "")
    restored.updated_at = stamp or restored.updated_at
    restored.created_at = restored.created_at or stamp
    restored.closed = record.event == "session_shutdown"
    if record.event == "session_resumed":
        restored.changes.update({name: fields[name] for name in _RESUMED_WITH if fields.get(name)})
    if record.event in CONVERSATION_EVENTS:
        builder.take(record, fields)
    elif record.event == "session_init":
        restored.init = fields
    elif record.event == "session_change":
        restored.changes[str(fields["change"])] = fields.get("value")
        if "provider" in fields:  # the model was exchanged for one of another provider
            restored.changes["provider"] = fields["provider"]
    elif record.event == "user":
        restored.prompts += 1
        restored.first_prompt = restored.first_prompt or str(fields.get("input") or "")


def payloads_of(path: str, files: Files) -> PayloadStore:
    """The payload files that belong to a journal."""
    directory, _, name = path.rpartition("/")
    return PayloadStore(directory or ".", name.removesuffix(".jsonl"), files=files)


def resolve_payloads(
    record: JournalRecord, fields: Mapping[str, Json], payloads: PayloadStore, problems: list[str]
) -> Mapping[str, Json]:
    """The fields with their payloads; a payload that cannot be used stays a reference and is named."""
    try:
        resolved: Mapping[str, Json] = payloads.resolve(fields)
    except StorageError as error:
        problems.append(
            f"Record {record.seq} ({record.event}) refers to a payload that cannot be used: {error}"
        )
        return fields
    return resolved
