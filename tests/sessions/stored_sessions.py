"""Sessions on disk for the tests of the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.journal_files import JournalFile

from robota.core.jsontext import encode
from robota.core.messages import AssistantMessage, Json, JsonObject, Message, UserMessage
from robota.sessions.store.message_codec import message_to_record

QUESTION = UserMessage("Where is the parser?", id="m1")
ANSWER = AssistantMessage("In parser.py.", id="m2")
THANKS = UserMessage("Thanks!", id="m3")


def records_of(*messages: Message) -> list[JsonObject]:
    return [message_to_record(message) for message in messages]


def message_event(index: int, message: Message) -> JsonObject:
    return {"event": "message", "run": 1, "round": 1, "index": index, "message": message_to_record(message)}


SESSION_INIT: JsonObject = {
    "event": "session_init",
    "cwd": "/srv/project",
    "model": "some-model",
    "name": "parsing",
    "systemPrompt": "Be brief.",
    "toolSchemas": [{"name": "Read"}],
}


def write_journal(
    directory: Path, id: str, *bodies: Mapping[str, Json], now: float = 1_772_366_400.0
) -> Path:
    """Append records that all happen at one moment; the path of the journal."""
    path = directory / f"{id}.jsonl"
    journal = JournalFile(str(path), id, now=lambda: now)
    for body in bodies:
        journal.append(encode(body)[1:])
    journal.sync()
    journal.close()
    return path
