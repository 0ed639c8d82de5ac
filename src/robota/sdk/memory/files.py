"""The files of a project's memory: `.robota/memory/MEMORY.md`, `topics/<topic>.md`, `pending.json`.

They belong to the people of the project, who may change them as they like: a new note is one more line, and
everything else stays as it is. No link is followed: what lies elsewhere is neither read nor written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from robota.core.errors import ConfigurationError, ValidationError
from robota.sdk.context.text_file import Unreadable, read_text
from robota.sdk.memory.note import Note, NoteType, make_slug, normalise, read_note
from robota.sdk.places import Places
from robota.sdk.shared_file import change_file

INDEX = "MEMORY.md"
PENDING = "pending.json"
START_LINES = 200
START_BYTES = 25_600
MAX_TOPICS = 500
MAX_PENDING = 200
_MAX_BYTES = 1 << 20
_HEADING = "# Memory"


class PendingNote(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something worth remembering that nobody has agreed to yet."""

    id: str
    text: str
    type: NoteType = "project"
    topic: str = "general"
    confidence: float = 1.0
    created_at: str = ""


class _PendingFile(Struct, frozen=True):
    version: int = 1
    records: list[PendingNote] = []


class Saved(Struct, frozen=True):
    note: Note
    deduplicated: bool
    """It was there already, in these words or nearly."""


class MemoryFiles:
    def __init__(self, places: Places, is_denied: Callable[[str], bool] = lambda path: False) -> None:
        """`is_denied` knows which files must not be read: for readers these are not there."""
        self._places = places
        self._is_denied = is_denied
        self.directory = places.project(".robota", "memory")

    # --- reading ------------------------------------------------------------------------------------------

    def read_start(self) -> str:
        """What a session knows from the start: the beginning of the index."""
        lines = self._read(INDEX, START_BYTES).splitlines()[:START_LINES]
        return "\n".join(lines).strip()

    def topics(self) -> list[str]:
        """Their names, in order."""
        folder = os.path.join(self.directory, "topics")
        self._refuse_links("topics")
        try:
            names = sorted(each for each in os.listdir(folder) if each.endswith(".md"))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise ConfigurationError(f"{folder} cannot be read ({error.strerror}).") from error
        seen = [name for name in names[:MAX_TOPICS] if not self._is_denied(os.path.join(folder, name))]
        return [name.removesuffix(".md") for name in seen]

    def read_topic(self, topic: str) -> str:
        return self._read(f"topics/{make_slug(topic)}.md", _MAX_BYTES)

    def pending(self) -> list[PendingNote]:
        return self._decode(self._read(PENDING, _MAX_BYTES)).records

    def find_pending(self, id: str) -> PendingNote:
        found = next((each for each in self.pending() if each.id == id), None)
        if found is None:
            raise ValidationError(f"No note {id!r} is waiting: /memory pending lists those that are.")
        return found

    # --- writing ------------------------------------------------------------------------------------------

    def save(self, type: NoteType, topic: str, text: str) -> Saved:
        """Add a note to its topic and to the index, unless the topic has it."""
        slug = make_slug(topic)
        note = Note(date=datetime.now(UTC).date().isoformat(), type=type, topic=slug, text=text)
        known: list[Note] = []

        def add(content: str) -> str:
            wanted = normalise(text)
            notes = [read_note(line) for line in content.splitlines()]
            known[:] = [each for each in notes if each is not None and normalise(each.text) == wanted]
            if known:
                return content
            return f"{content.rstrip() or f'# {slug}'}\n{note.line}\n"

        self._change(f"topics/{slug}.md", add)
        if known:
            return Saved(known[0], deduplicated=True)
        self._change(INDEX, lambda content: _put_first(content, note.line))
        return Saved(note, deduplicated=False)

    def queue(self, note: PendingNote) -> bool:
        """Have it wait for somebody's consent; false if it does already."""

        def add(records: list[PendingNote]) -> list[PendingNote]:
            if any(each.id == note.id for each in records):
                return records
            return [*records, note][-MAX_PENDING:]

        return self._change_pending(add)

    def take(self, id: str) -> PendingNote:
        """Take one out of those that wait."""
        taken = self.find_pending(id)
        self._change_pending(lambda records: [each for each in records if each.id != id])
        return taken

    # --- inside -------------------------------------------------------------------------------------------

    def _change_pending(self, change: Callable[[list[PendingNote]], list[PendingNote]]) -> bool:
        def rewrite(content: str) -> str:
            before = self._decode(content).records
            after = change(before)
            if after == before:
                return content
            encoded = msgspec.json.encode(_PendingFile(records=after))
            return f"{msgspec.json.format(encoded, indent=2).decode()}\n"

        return self._change(PENDING, rewrite)

    def _decode(self, content: str) -> _PendingFile:
        try:
            return msgspec.json.decode(content, type=_PendingFile) if content.strip() else _PendingFile()
        except msgspec.DecodeError as error:
            path = os.path.join(self.directory, PENDING)
            raise ConfigurationError(f"{path} cannot be read: {error}. Correct it or delete it.") from error

    def _read(self, name: str, limit: int) -> str:
        self._refuse_links(name)
        path = os.path.join(self.directory, name)
        if self._is_denied(path):
            return ""
        try:
            return read_text(path, limit).text
        except FileNotFoundError:
            return ""
        except Unreadable as error:
            raise ConfigurationError(f"{path} {error}.") from error

    def _change(self, name: str, change: Callable[[str], str]) -> bool:
        self._refuse_links(name)
        return change_file(os.path.join(self.directory, name), change, within=self._places.cwd)

    def _refuse_links(self, name: str) -> None:
        path = os.path.join(self.directory, name)
        if os.path.realpath(path) != os.path.join(os.path.realpath(self._places.cwd), ".robota/memory", name):
            raise ConfigurationError(f"{path} is or lies behind a link: memory is not kept there.")


def _put_first(content: str, line: str) -> str:
    """New notes come first: so they are among those that a session knows from the start."""
    heading, _, rest = content.partition("\n")
    if not heading.startswith("# "):
        heading, rest = _HEADING, content
    return f"{heading}\n\n{line}\n{rest.lstrip(chr(10))}".rstrip() + "\n"
