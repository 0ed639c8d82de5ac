"""The files that a user keeps in the conversation with `/context add`: the model is told them once, and again
when they have changed.

They are kept in the session's record, so that they survive a resume, and stand word for word behind every
summary.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from robota.core.errors import ValidationError
from robota.core.messages import Json
from robota.sdk.context.reminders import Reminders, remind
from robota.sdk.context.text_file import TextFile, Unreadable, quote_file, read_text
from robota.sessions.compaction.kept_state import CompactionSection
from robota.sessions.journal.records import KeptField
from robota.tools.files.path import contained

if TYPE_CHECKING:
    from robota.sessions.session import Session

MAX_REFERENCES = 8
MAX_BYTES = 256 * 1024
"""Of all of them together."""
CONTEXT_REFERENCES: KeptField = "contextReferences"
SECTION = "Files that the user keeps in the conversation"
_ADDED = "The user keeps a file in the conversation."
_CHANGED = "A file that the user keeps in the conversation is now like this."


class ContextReference(Struct, frozen=True, kw_only=True):
    """A file in the conversation."""

    path: str
    """Relative to the working directory where it lies below it."""
    size: int = 0
    """Bytes, when it was last told."""


class ContextReferences:
    """The references of one session, in the order in which they were added."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reminders = Reminders(session)
        self.active: tuple[ContextReference, ...] = _read_kept(session.kept.get(CONTEXT_REFERENCES))

    def add(self, path: str) -> ContextReference:
        """Have the model told a file, with the next prompt at the latest. What cannot be added raises
        `ValidationError` with one sentence."""
        shown, full = self._place(path)
        if known := self._find(shown):
            return known
        if len(self.active) >= MAX_REFERENCES:
            raise _refuse(f"{MAX_REFERENCES} files are kept already: remove one with /context remove PATH.")
        file = self._read(shown, full)
        total = sum(reference.size for reference in self.active) + file.size
        if total > MAX_BYTES:
            raise _refuse(
                f"{shown} has {file.size:,} bytes, and all files together may have {MAX_BYTES:,}: "
                "add a smaller one, or remove others."
            )
        reference = ContextReference(path=shown, size=file.size)
        self._keep((*self.active, reference))
        remind(self._session, f"{_ADDED}\n{quote_file(shown, file.text)}")
        return reference

    def remove(self, path: str) -> ContextReference:
        """Stop following a file; what the model was told stays until a summary leaves it out."""
        known = self._find(self._place(path)[0]) or self._find(path)
        if known is None:
            names = ", ".join(reference.path for reference in self.active)
            raise _refuse(f"{path} is not among the files that are kept: {names or 'there are none'}.")
        self._keep(tuple(reference for reference in self.active if reference is not known))
        return known

    def clear(self) -> int:
        """Stop following all of them; how many there were."""
        count = len(self.active)
        if count:
            self._keep(())
        return count

    def refresh(self) -> list[str]:
        """Tell the model each file that is not as it was told last; the paths. Called before each prompt."""
        if not self.active:
            return []
        told = self._find_told()
        latest = tuple(self._renew(reference, told.get(reference.path)) for reference in self.active)
        if latest != self.active:
            self._keep(latest)
        now = self._find_told()
        return [path for path, words in now.items() if words != told.get(path)]

    def sections(self) -> Sequence[CompactionSection]:
        """What stands behind a summary: the files as the model was told them."""
        return (CompactionSection(SECTION, "\n\n".join(self._find_told().values())),)

    # --- details --------------------------------------------------------------------------------------------

    def _find_told(self) -> dict[str, str]:
        """What the model was told of each file last."""
        openings = {_open(reference.path): reference.path for reference in self.active}
        told: dict[str, str] = {}
        if openings:
            self._reminders.look()
        for words in self._reminders.words if openings else ():
            _, _, block = words.partition("\n")
            path = openings.get(block.partition("\n")[0])
            if path is not None:
                told[path] = block
        return told

    def _renew(self, reference: ContextReference, told: str | None) -> ContextReference:
        path = reference.path
        try:
            file = self._read(path)
        except ValidationError as error:
            gone = quote_file(path, f"[It cannot be read any more. {error}]")
            if told != gone:
                remind(self._session, f"{_CHANGED}\n{gone}")
            return reference
        block = quote_file(path, file.text)
        if told != block:
            remind(self._session, f"{_CHANGED}\n{block}")
        return replace(reference, size=file.size)

    def _place(self, path: str) -> tuple[str, str]:
        """A path as it is shown and as it is opened."""
        cwd = self._session.cwd
        full = os.path.normpath(os.path.join(cwd, os.path.expanduser(path.strip())))
        below = full.startswith(cwd.rstrip(os.sep) + os.sep)
        return os.path.relpath(full, cwd) if below else full, full

    def _read(self, shown: str, full: str = "") -> TextFile:
        full = full or self._place(shown)[1]
        session = self._session
        if not contained(full, (session.cwd, *session.rules.additional_dirs)):
            raise _refuse(f"{shown} lies outside the workspace: add its directory with --add-dir first.")
        is_denied = session.rules.path_filter(session.cwd)
        if is_denied is not None and is_denied(full):
            raise _refuse(f"{shown} may not be read: a deny rule of the settings covers it.")
        try:
            file = read_text(full, MAX_BYTES)
        except FileNotFoundError:
            raise _refuse(f"{shown} does not exist.") from None
        except Unreadable as error:
            raise _refuse(f"{shown} {error}.") from error
        if file.cut:
            raise _refuse(f"{shown} has {file.size:,} bytes, and no more than {MAX_BYTES:,} can be kept.")
        return file

    def _find(self, path: str) -> ContextReference | None:
        return next((reference for reference in self.active if reference.path == path), None)

    def _keep(self, references: tuple[ContextReference, ...]) -> None:
        self.active = references
        self._session.kept.put(CONTEXT_REFERENCES, [to_builtins(reference) for reference in references])


def _read_kept(kept: Iterable[Json]) -> tuple[ContextReference, ...]:
    """What a record has; entries of another making are passed over."""
    found = []
    for entry in kept:
        try:
            found.append(msgspec.convert(entry, ContextReference))
        except msgspec.ValidationError:
            continue
    return tuple(found[:MAX_REFERENCES])


def _open(path: str) -> str:
    """How the quotation of a file begins."""
    return quote_file(path, "").partition("\n")[0]


def _refuse(sentence: str) -> ValidationError:
    return ValidationError(sentence, field="path")
