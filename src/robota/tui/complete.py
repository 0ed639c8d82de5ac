"""What the input offers to complete: commands behind a slash, files behind an at sign."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document

from robota.sdk.fuzzy import find
from robota.sdk.project_files import ProjectFiles
from robota.sdk.view.neutral import neutral_line

if TYPE_CHECKING:
    from robota.sdk.commands.registry import Command, CommandRegistry

MOST = 50
_COMMAND = re.compile(r"/(\S*)\Z")
_LETTERS = re.compile(r"/[^\s/]+")
_ARGUMENT = re.compile(r"/(\S+) +(\S*)\Z")
_FILE = re.compile(r"(?:^|(?<=\s))@(\S*)\Z")


def first_offer(buffer: Buffer) -> Completion | None:
    """What Enter takes while nothing is marked: the best of the palette, behind letters that are no command
    of their own and no path."""
    state, typed = buffer.complete_state, buffer.text
    if state is None or state.complete_index is not None or not state.completions:
        return None
    if not _LETTERS.fullmatch(typed) or any(each.text == typed for each in state.completions):
        return None
    return None if os.path.exists(typed) else state.completions[0]


class CommandCompleter(Completer):
    """The palette: a command's name by some of its letters, then the words that may follow it."""

    def __init__(self, commands: CommandRegistry) -> None:
        self.commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if match := _COMMAND.match(before):
            known = self.commands.commands()
            return (self._offer(each, "/", match[1]) for each in find(match[1], known, _name, MOST))
        if match := _ARGUMENT.match(before):
            below = self.commands.subcommands(match[1])
            return (self._offer(each, "", match[2]) for each in find(match[2], below, _name, MOST))
        return ()

    def _offer(self, command: Command, mark: str, typed: str) -> Completion:
        hint = f"  {neutral_line(command.argument_hint)}" if command.argument_hint else ""
        return Completion(
            f"{mark}{command.name}",
            start_position=-len(mark) - len(typed),
            display=f"{mark}{neutral_line(command.name)}",
            display_meta=f"{neutral_line(command.description)}{hint}",
        )


def _name(command: Command) -> str:
    return command.name


class FileCompleter(Completer):
    """Files of the project; the slow part, so it is asked in a thread."""

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        match = _FILE.search(document.text_before_cursor)
        if match is None:
            return
        from robota.sdk.context.references import refer_to  # noqa: PLC0415 - in its thread

        for path in find(match[1], self._files.paths(), str, MOST):
            if reference := refer_to(path):
                yield Completion(reference, start_position=-len(match[1]) - 1, display=path)


class InputCompleter(Completer):
    """Commands at once, files from a thread."""

    def __init__(self, commands: CommandRegistry, cwd: str) -> None:
        self.commands = CommandCompleter(commands)
        self._files = ThreadedCompleter(FileCompleter(ProjectFiles(cwd)))

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        return self.commands.get_completions(document, complete_event)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        if _FILE.search(document.text_before_cursor):
            async for each in self._files.get_completions_async(document, complete_event):
                yield each
        else:
            for each in self.commands.get_completions(document, complete_event):
                yield each
