"""Instructions that concern only a part of the project: the model is told them when it comes there.

A file below the working directory, or a rule with `paths:`, reaches the model once in a conversation, as a
message before its next round. What was told stands word for word behind every summary, and a resumed session
finds it in its messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota._lazy_pattern import lazy_pattern
from robota.core.events import ToolEnded
from robota.core.permissions.subjects import FILE_KINDS, subjects
from robota.sdk.context.instructions import InstructionFile, InstructionReader
from robota.sdk.context.path_globs import compile_globs
from robota.sdk.context.reminders import Reminders, remind

if TYPE_CHECKING:
    from robota.sdk.context.loading import ProjectContext
    from robota.sessions.session import Session

_FOREIGN = frozenset(("node_modules", "site-packages", "vendor", "third_party", ".venv", "venv", ".git"))
"""What others wrote: their instructions are for those who work on that, and nobody here has read them."""
_OPENING = (
    "These instructions count for a part of the project that you have come to now. Follow them there as you "
    "follow those for the whole project.\n"
)
_TOLD = lazy_pattern(re.escape(_OPENING) + r'<instructions path="(?P<path>[^"]*)">\n')


class NestedInstructions:
    """What one session was told of that kind, and what there is to tell."""

    def __init__(self, session: Session, context: ProjectContext) -> None:
        self._session = session
        self._told: set[str] = set()
        """Paths as they are shown."""
        self._reminders = Reminders(session)
        self.context = context
        self.recall()
        session.events.on(ToolEnded, self._look_at_call)

    def recall(self) -> None:
        """Find in the conversation what the model was told: it may have begun anew, or been rewound."""
        if not self._reminders.look():
            return
        found = filter(None, map(_TOLD.match, self._reminders.words))
        told = {each["path"] for each in found}
        if told != self._told:
            self._told = told
            self.context = self._context

    @property
    def context(self) -> ProjectContext:
        """What the model knows from its system message; given anew when files have changed."""
        return self._context

    @context.setter
    def context(self, context: ProjectContext) -> None:
        self._context = context
        reading = replace(context.reading, is_denied=self._is_denied)
        self._reader = InstructionReader(reading, context.files)
        self._rules = list(context.rules)
        self._visited: set[str] = set()

    def touch(self, paths: Iterable[str]) -> None:
        """The model has come to these files or directories."""
        cwd = self._session.cwd
        self.recall()
        for path in paths:
            full = os.path.normpath(os.path.join(cwd, path))
            root = next((root for root in self._roots() if _is_below(full, root)), None)
            if root is not None:
                self._read_directories(full, root)
                for rule in self._rules:
                    if compile_globs(rule.paths)(os.path.relpath(full, rule.base)):
                        self._tell(rule)

    # --- details --------------------------------------------------------------------------------------------

    def _is_denied(self, path: str) -> bool:
        """By the rules that count now, not those that counted when the session began."""
        is_denied = self._session.rules.path_filter(self._session.cwd)
        return is_denied is not None and is_denied(path)

    def _roots(self) -> tuple[str, ...]:
        return (self._session.cwd, *self._session.rules.additional_dirs)

    def _read_directories(self, full: str, root: str) -> None:
        """Those between the root, whose files are known, and this one."""
        directory = full if os.path.isdir(full) else os.path.dirname(full)
        if not _FOREIGN.isdisjoint(directory[len(root) :].split(os.sep)):
            return
        new: list[str] = []
        while _is_below(directory, root) and directory not in self._visited:
            new.append(directory)
            directory = os.path.dirname(directory)
        reader = self._reader
        for directory in reversed(new):
            self._visited.add(directory)
            known = len(reader.files)
            reader.read_directory(directory)
            for file in reader.files[known:]:
                if file.paths:
                    self._rules.append(file)
                else:
                    self._tell(file)
        for problem in reader.problems:
            self._session.log.notice(str(problem))
        reader.problems.clear()

    def _tell(self, file: InstructionFile) -> None:
        shown = self.context.reading.places.shown(file.path).replace('"', "&quot;")
        if shown in self._told:
            return
        self._told.add(shown)
        remind(self._session, f"{_OPENING}{quote_instructions(shown, file.text)}", keep=True)

    def _look_at_call(self, event: ToolEnded) -> None:
        self.touch(find_touched(self._session, event))


def find_touched(session: Session, event: ToolEnded) -> Iterator[str]:
    """The files that a call was about, if it did what it should."""
    if event.outcome == "success":
        tool = next((tool for tool in session.agent.tools if tool.name == event.tool_name), None)
        for subject in subjects(event.tool_name, event.arguments, tool):
            if subject.kind in FILE_KINDS and isinstance(subject.value, str):
                yield subject.value


def quote_instructions(path: str, text: str) -> str:
    """Instructions as they stand in a prompt."""
    return f'<instructions path="{path}">\n{text}\n</instructions>'


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip(os.sep) + os.sep)
