"""Instructions that concern only a part of the project: the model is told them when it comes there.

A file below the working directory, or a rule with `paths:`, reaches the model once in a conversation, as a
message before its next round. What was told stands word for word behind every summary, and a resumed session
finds it in its messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from robota.core.events import RunStarted, ToolEnded
from robota.core.messages import UserMessage
from robota.core.permissions.subjects import FILE_KINDS, subjects
from robota.sdk.context.instructions import InstructionFile, InstructionReader
from robota.sdk.context.path_globs import compile_globs
from robota.sessions.compaction.sections import PROJECT_RULES, CompactionSection

if TYPE_CHECKING:
    from robota.sdk.context.loading import ProjectContext
    from robota.sessions.session import Session

_OPENING = (
    "<system-reminder>\nThese instructions count for a part of the project that you have come to now. Follow "
    "them there as you follow those for the whole project.\n"
)
_TOLD = re.compile(
    re.escape(_OPENING) + r'(?P<block><instructions path="(?P<path>[^"]*)">\n.*\n</instructions>)'
    r"\n</system-reminder>\Z",
    re.DOTALL,
)


class NestedInstructions:
    """What one session was told of that kind, and what there is to tell."""

    def __init__(self, session: Session, context: ProjectContext) -> None:
        self._session = session
        self._conversation = ""
        self._told: dict[str, str] = {}
        """By path as it is shown, word for word."""
        for message in session.messages:
            if isinstance(message, UserMessage) and message.metadata.get("origin") == "reminder":
                found = _TOLD.match(message.content)
                if found is not None:
                    self._told[found["path"]] = found["block"]
        self.context = context
        session.events.on(ToolEnded, self._look_at_call)
        session.events.on(RunStarted, self._note_conversation)

    @property
    def context(self) -> ProjectContext:
        """What the model knows from its system message; given anew when files have changed."""
        return self._context

    @context.setter
    def context(self, context: ProjectContext) -> None:
        self._context = context
        self._reader = InstructionReader(context.reading, context.files)
        self._rules = [(rule, compile_globs(rule.paths)) for rule in context.rules]
        self._visited: set[str] = set()

    def sections(self) -> Sequence[CompactionSection]:
        """What stands behind a summary."""
        return (CompactionSection(PROJECT_RULES, "\n\n".join(self._told.values())),)

    def touch(self, paths: Iterable[str]) -> None:
        """The model has come to these files or directories."""
        cwd = self._session.cwd
        for path in paths:
            full = os.path.normpath(os.path.join(cwd, path))
            root = next((root for root in self._roots() if _is_below(full, root)), None)
            if root is not None:
                self._read_directories(full, root)
                for rule, matches in self._rules:
                    if matches(os.path.relpath(full, rule.base)):
                        self._tell(rule)

    # --- details --------------------------------------------------------------------------------------------

    def _roots(self) -> tuple[str, ...]:
        return (self._session.cwd, *self._session.rules.additional_dirs)

    def _read_directories(self, full: str, root: str) -> None:
        """Those between the root, whose files are known, and this one."""
        directory = full if os.path.isdir(full) else os.path.dirname(full)
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
                    self._rules.append((file, compile_globs(file.paths)))
                else:
                    self._tell(file)
        for problem in reader.problems:
            self._session.log.notice(str(problem))
        reader.problems.clear()

    def _tell(self, file: InstructionFile) -> None:
        shown = self.context.reading.places.shown(file.path).replace('"', "&quot;")
        if shown in self._told:
            return
        self._told[shown] = block = quote_instructions(shown, file.text)
        self._session.inbox.put(f"{_OPENING}{block}\n</system-reminder>", origin="reminder")

    def _look_at_call(self, event: ToolEnded) -> None:
        if event.outcome != "success":
            return
        tool = next((tool for tool in self._session.agent.tools if tool.name == event.tool_name), None)
        touched = subjects(event.tool_name, event.arguments, tool)
        self.touch(
            subject.value
            for subject in touched
            if subject.kind in FILE_KINDS and isinstance(subject.value, str)
        )

    def _note_conversation(self, event: RunStarted) -> None:
        """A conversation that begins anew knows nothing of what was told before."""
        if self._conversation and event.conversation_id != self._conversation:
            self._told.clear()
            self.context = self._context
        self._conversation = event.conversation_id


def quote_instructions(path: str, text: str) -> str:
    """Instructions as they stand in a prompt."""
    return f'<instructions path="{path}">\n{text}\n</instructions>'


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip(os.sep) + os.sep)
