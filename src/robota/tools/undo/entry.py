"""What the store tells about a saved call, about undoing it, and about making room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.tools.undo.journal import Begun, Ended, Record
from robota.tools.undo.snapshot import Unprotected
from robota.tools.undo.state import PathState

Action: TypeAlias = Literal["restore", "delete", "change mode or time", "nothing"]


class Entry(Struct, frozen=True, kw_only=True):
    id: str
    at: float
    label: str
    ended: bool
    """False while the call runs, and for ever when the process died meanwhile."""
    files: int = 0
    size: int = 0
    """Bytes of what was changed or deleted."""
    tool: str = ""
    session_id: str = ""
    call_id: str = ""
    undoes: str = ""
    """The entry that this one took back."""
    unprotected: tuple[str, ...] = ()


class Saved(Struct, frozen=True):
    """What `save` did. Without an id nothing was saved."""

    entry_id: str | None
    unprotected: tuple[Unprotected, ...] = ()


class PathPreview(Struct, frozen=True, kw_only=True):
    path: str
    action: Action
    before: PathState | None
    now: PathState | None
    conflict: bool
    """Whether it became something else after the call ended, or nobody saw how the call left it."""

    @property
    def size(self) -> int:
        """Bytes that would be written."""
        return self.before.size if self.before is not None and self.action == "restore" else 0


class Preview(Struct, frozen=True):
    entry: Entry
    paths: tuple[PathPreview, ...]

    @property
    def conflicts(self) -> tuple[PathPreview, ...]:
        return tuple(each for each in self.paths if each.conflict)

    @property
    def size(self) -> int:
        return sum(each.size for each in self.paths)


class KeptPath(Struct, frozen=True):
    path: str
    reason: str


class Undone(Struct, frozen=True):
    entry_id: str | None
    """The entry of this undo, by which it can be undone; none when there was nothing to do."""
    restored: tuple[str, ...] = ()
    kept: tuple[KeptPath, ...] = ()
    """What was left as it is: changed meanwhile, or not possible."""


class RemovedEntry(Struct, frozen=True):
    id: str
    at: float
    label: str
    files: int


class Removal(Struct, frozen=True, kw_only=True):
    """What `gc` removed, or would remove."""

    done: bool
    entries: tuple[RemovedEntry, ...]
    blobs: int
    bytes_before: int
    bytes_after: int
    leftovers: int = 0
    """Among the blobs, those that no entry ever named: a process died while it saved them."""


class OpenEntry(Struct, frozen=True):
    """A pair of records."""

    begun: Begun
    ended: Ended | None = None

    @property
    def entry(self) -> Entry:
        begun, ended = self.begun, self.ended
        return Entry(
            id=begun.id,
            at=begun.at,
            label=begun.label,
            ended=ended is not None,
            files=0 if ended is None else ended.files,
            size=0 if ended is None else ended.size,
            tool=begun.tool,
            session_id=begun.session_id,
            call_id=begun.call_id,
            undoes=begun.undoes,
            unprotected=begun.unprotected,
        )


def pair_records(records: Iterable[Record]) -> dict[str, OpenEntry]:
    """The entries in the order they began."""
    found: dict[str, OpenEntry] = {}
    for record in records:
        if isinstance(record, Begun):
            found[record.id] = OpenEntry(record)
        elif isinstance(record, Ended) and record.id in found:
            found[record.id] = OpenEntry(found[record.id].begun, record)
    return found
