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
from robota.sdk.context.text_file import TextFile, Unreadable, quote_file, read_text
from robota.sessions.compaction.sections import CompactionSection
from robota.sessions.journal.records import KeptField
from robota.tools.files.path import contained

if TYPE_CHECKING:
    from robota.sessions.session import Session

MAX_REFERENCES = 8
MAX_BYTES = 256 * 1024
"""Of all of them together."""
FIELD: KeptField = "contextReferences"
SECTION = "Files that the user keeps in the conversation"


class ContextReference(Struct, frozen=True, kw_only=True):
    """A file in the conversation."""

    path: str
    """Relative to the working directory where it lies below it."""
    size: int = 0
    digest: str = ""
    """Of the text that the model was told last; empty when the file is gone."""


class ContextReferences:
    """The references of one session, in the order in which they were added."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._texts: dict[str, str] = {}
        self.active: tuple[ContextReference, ...] = _read_kept(session.kept.get(FIELD))

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
        reference = ContextReference(path=shown, size=file.size, digest=file.digest)
        self._keep((*self.active, reference))
        self._tell(shown, file.text, "The user added a file to the conversation")
        return reference

    def remove(self, path: str) -> ContextReference:
        """Stop following a file; what the model was told stays until a summary leaves it out."""
        known = self._find(self._place(path)[0]) or self._find(path)
        if known is None:
            names = ", ".join(reference.path for reference in self.active)
            raise _refuse(f"{path} is not among the files that are kept: {names or 'there are none'}.")
        self._keep(tuple(reference for reference in self.active if reference is not known))
        self._texts.pop(known.path, None)
        return known

    def clear(self) -> int:
        """Stop following all of them; how many there were."""
        count = len(self.active)
        if count:
            self._texts.clear()
            self._keep(())
        return count

    def refresh(self) -> list[str]:
        """Tell the model what has changed since it was told; the paths. Called before each prompt."""
        changed: list[str] = []
        latest = tuple(self._renew(reference) for reference in self.active)
        for before, after in zip(self.active, latest, strict=True):
            if before.digest != after.digest:
                changed.append(after.path)
        if changed:
            self._keep(latest)
        return changed

    def sections(self) -> Sequence[CompactionSection]:
        """What stands behind a summary: the files as the model knows them."""
        for reference in self.active:
            if reference.path not in self._texts and reference.digest:  # told by an earlier process
                try:
                    self._texts[reference.path] = self._read(reference.path).text
                except ValidationError:
                    continue
        told = (quote_file(path, text) for path, text in self._texts.items())
        return (CompactionSection(SECTION, "\n\n".join(told)),)

    # --- details --------------------------------------------------------------------------------------------

    def _renew(self, reference: ContextReference) -> ContextReference:
        try:
            file = self._read(reference.path)
        except ValidationError as error:
            if reference.digest:
                self._texts.pop(reference.path, None)
                self._remind(
                    f"A file that the user keeps in the conversation cannot be read any more. {error}"
                )
            return replace(reference, digest="")
        if file.digest != reference.digest:
            self._tell(reference.path, file.text, "A file that the user keeps in the conversation changed")
        return replace(reference, digest=file.digest, size=file.size)

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
        self._session.kept.put(FIELD, [to_builtins(reference) for reference in references])

    def _tell(self, path: str, text: str, why: str) -> None:
        self._texts[path] = text
        self._remind(f"{why}. Its content is now:\n{quote_file(path, text)}")

    def _remind(self, words: str) -> None:
        self._session.inbox.put(f"<system-reminder>\n{words}\n</system-reminder>", origin="reminder")


def _read_kept(kept: Iterable[Json]) -> tuple[ContextReference, ...]:
    """What a record has; entries of another making are passed over."""
    found = []
    for entry in kept:
        try:
            found.append(msgspec.convert(entry, ContextReference))
        except msgspec.ValidationError:
            continue
    return tuple(found[:MAX_REFERENCES])


def _refuse(sentence: str) -> ValidationError:
    return ValidationError(sentence, field="path")
