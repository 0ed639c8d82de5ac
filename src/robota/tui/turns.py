"""Prompts on their way to the session: sent, queued, steered; shell lines; and what commands want done."""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING

from robota.core.errors import RobotaError, SessionBusyError
from robota.core.given import nearest
from robota.core.messages import Prompt
from robota.sdk.commands.effects import (
    AgentSwitcher,
    CommandResult,
    ExitRequested,
    ProviderChosen,
    ResetRequested,
    ResumePicker,
    Rewound,
)
from robota.tui.pickers import pick_session, pick_task

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult
    from robota.tui.front import FrontEnd

LEAVE = ("/exit", "/quit", "exit", "quit")
SHELL = "!"
_ONE_NAME = re.compile(r"/[\w:.-]+")
logger = logging.getLogger(__name__)


class Turns:
    """The prompts of one terminal."""

    def __init__(self, app: FrontEnd) -> None:
        self._app = app
        self._shells = 0

    @property
    def busy(self) -> bool:
        return self._app.session.is_executing

    def send(self, prompt: Prompt, shown: str) -> bool:
        """Have it worked on, now or after the turn under way; false when another waits already."""
        app = self._app
        if shown.strip() in LEAVE:
            app.leave(0)
        elif shown.startswith(SHELL) and shown[1:].strip():
            app.spawn(
                self._run_shell(str(prompt)[1:].strip() if isinstance(prompt, str) else shown[1:].strip())
            )
        elif app.session.pending_prompt is not None:
            return False
        elif near := self._find_meant(shown):
            app.presenter.notice(app.words("command.unknown", name=shown.strip(), near=f"/{near}"))
        else:
            app.spawn(self._take(prompt, shown))
        return True

    def _find_meant(self, line: str) -> str | None:
        """The command that somebody meant who typed one word behind a slash that names nothing, neither a
        command nor a file."""
        word = line.strip()
        if not line.startswith("/") or not _ONE_NAME.fullmatch(word) or os.path.exists(word):
            return None
        commands = self._app.session.commands
        if commands.find(word[1:]) is not None:
            return None
        return nearest(word[1:], [each.name for each in commands.commands()])

    def command(self, name: str, arguments: str) -> None:
        """Call a command for the user."""
        line = f"/{name} {arguments}"
        self._app.spawn(self._take(line, line))

    def steer(self, prompt: Prompt) -> None:
        """Tell the model before its next round."""
        self._app.session.steer(prompt)

    async def _take(self, prompt: Prompt, shown: str) -> None:
        """One turn; whatever goes wrong in it is said and logged, and the interface goes on."""
        app = self._app
        session, presenter = app.session, app.presenter
        try:
            display, failures = shown if prompt != shown else None, presenter.failures
            with presenter.answering(shown):
                result: ExecutionResult[object] = await session.submit(prompt, display)
            presenter.flush()
            if result.error is not None and result.command is None and presenter.failures == failures:
                presenter.error(str(result.error))  # it failed before there was anything to tell of
            if result.command is not None:
                presenter.show_command(shown, result.command)
                await self._carry_out(result.command)
        except SessionBusyError:
            app.editing.refill(shown)
        except RobotaError as error:
            presenter.error(str(error))
        except Exception as error:
            logger.exception("turn")
            presenter.error(app.words("internal-error", error=f"{type(error).__name__}: {error}"))
        finally:
            app.turn_ended()

    async def _run_shell(self, command: str) -> None:
        """A command of the user's own, shown as one."""
        app = self._app
        try:
            result = await app.host.run_shell_line(command)
            answer = CommandResult(result.content if result.ok else result.error or "", success=result.ok)
            app.presenter.show_command(f"{SHELL}{command}", answer)
        except RobotaError as error:
            app.presenter.error(str(error))

    # --- what commands want of a terminal -----------------------------------------------------------

    async def _carry_out(self, answer: CommandResult) -> None:
        app = self._app
        match answer.effect:
            case ExitRequested():
                app.leave(0)
            case ResumePicker():
                await pick_session(app)
            case ProviderChosen(profile):
                app.presenter.notice(await app.host.use_provider(profile))
            case ResetRequested():
                await self._reset()
            case AgentSwitcher(tasks=tasks):
                await pick_task(app, tasks)
            case Rewound(prompt=str(prompt)):
                app.editing.refill(prompt)

    async def _reset(self) -> None:
        app = self._app
        if await app.asking.confirm(app.words("reset.question")):
            app.presenter.notice(await app.host.reset_settings())
            app.leave(0)
