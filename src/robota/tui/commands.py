"""Commands that only a terminal has: they are in its palette beside those of the session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from robota.core.messages import AssistantMessage
from robota.sdk.commands.effects import CommandResult, failure
from robota.sdk.commands.registry import Command
from robota.tui.signs import copied

if TYPE_CHECKING:
    from robota.sdk.view.shown_session import ShownSession
    from robota.tui.app import TerminalApp


class TerminalCommands:
    """A source for the registry of the session that the terminal shows."""

    name = "terminal"

    def __init__(self, app: TerminalApp) -> None:
        self._app = app
        words = app.words
        self._commands = (
            Command(name="copy", description=words("command.copy"), execute=self._copy),
            Command(name="redraw", description=words("command.redraw"), execute=self._redraw),
            Command(name="keys", description=words("command.keys"), execute=self._keys),
        )

    def commands(self) -> Iterable[Command]:
        return self._commands

    def _copy(self, session: ShownSession, args: str) -> CommandResult:
        """The last answer, into the clipboard of whoever sits at the terminal."""
        answers = [each for each in session.messages if isinstance(each, AssistantMessage)]
        if not answers:
            return failure(self._app.words("copy.nothing"))
        sequence = copied(answers[-1].content)
        if sequence is None:
            return failure(self._app.words("copy.too-long"))
        self._app.surface.write(sequence)
        return CommandResult(self._app.words("copy.done", count=len(answers[-1].content)))

    def _redraw(self, session: ShownSession, args: str) -> CommandResult:
        self._app.printing.reprint()
        return CommandResult(self._app.words("redraw.done"))

    def _keys(self, session: ShownSession, args: str) -> CommandResult:
        from robota.tui.keys import DEFAULT_KEYS, name_keys  # noqa: PLC0415 - for those who ask

        words = self._app.words
        keys = {**DEFAULT_KEYS, **self._app.wishes.keys}
        rows = []
        for action, given in keys.items():
            about = words(f"key.{action}")
            rows.append(f"{', '.join(map(name_keys, given)):<20}  {action:<9}  {about}")
        return CommandResult("\n".join([*rows, words("keys.others")]))
