"""Prompts on their way to the session: sent, queued, steered; shell lines; and what commands want done."""

from __future__ import annotations

import asyncio
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
from robota.sdk.view.model import SHELL
from robota.tui.pickers import pick_model, pick_rewind, pick_session, pick_task

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult
    from robota.tui.front import FrontEnd

LEAVE = ("/exit", "/quit", "exit", "quit")
LISTS = {"/model": pick_model, "/resume": pick_session, "/rewind": pick_rewind}
"""What is a list to choose from when it stands alone; programs are told how it is used."""
_ONE_NAME = re.compile(r"/[\w:.-]*")
logger = logging.getLogger(__name__)


class Turns:
    """The prompts of one terminal."""

    def __init__(self, app: FrontEnd) -> None:
        self._app = app
        self._shells: set[asyncio.Task[object]] = set()

    @property
    def busy(self) -> bool:
        return self._app.session.is_executing

    def send(self, prompt: Prompt, shown: str) -> str:
        """Have it worked on, now or after the turn under way; why not, if it is not taken."""
        app = self._app
        if shown.strip() in LEAVE:
            app.leave(0)
        elif shown.startswith(SHELL):
            command = (prompt if isinstance(prompt, str) else shown)[1:].strip()
            if not command:
                return app.words("shell.empty")
            app.spawn(self._run_shell(command))
        elif app.session.pending_prompt is not None:
            return app.words("queue-full")
        elif unknown := self._miss_command(shown):
            return unknown
        elif (pick := LISTS.get(shown.strip())) and (pick is pick_model or not self.busy):
            app.spawn(pick(app))
        else:
            app.spawn(self._take(prompt, shown))
        return ""

    def _miss_command(self, line: str) -> str:
        """What to say to one word behind a slash that names nothing, neither a command nor a file."""
        word, app = line.strip(), self._app
        if not line.startswith("/") or not _ONE_NAME.fullmatch(word) or (word[1:] and os.path.exists(word)):
            return ""
        commands = app.session.commands
        if commands.find(word[1:]) is not None:
            return ""
        near = nearest(word[1:], [each.name for each in commands.commands()])
        if near is None:
            return app.words("command.unknown", name=word)
        return app.words("command.near", name=word, near=f"/{near}")

    def command(self, name: str, arguments: str) -> None:
        """Call a command for the user."""
        line = f"/{name} {arguments}"
        self._app.spawn(self._take(line, line))

    async def call_now(self, name: str, arguments: str) -> str:
        """Call a command at once, also in the middle of a turn, and print nothing; what it answers."""
        try:
            answer = await self._app.session.execute_command(name, arguments)
        except RobotaError as error:
            return str(error)
        self._app.presenter.refresh()
        return "" if answer is None else answer.message

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
                app.editing.refill(shown)
            if result.command is not None:
                presenter.show_command(shown, result.command)
                await self._carry_out(result.command, shown)
        except SessionBusyError:
            app.editing.refill(shown)
        except RobotaError as error:
            presenter.error(str(error))
            app.editing.refill(shown)
        except Exception as error:
            logger.exception("turn")
            presenter.error(app.words("internal-error", error=f"{type(error).__name__}: {error}"))
        finally:
            app.turn_ended()

    async def _run_shell(self, command: str) -> None:
        """A command of the user's own: in sight while it runs, then shown as a command."""
        app = self._app
        presenter = app.presenter
        answer = CommandResult(app.words("view.interrupted"), success=False)
        task = asyncio.current_task()
        assert task is not None  # the front end spawned it
        self._shells.add(task)
        try:
            with presenter.running(command) as hear:
                result = await app.host.run_shell_line(command, hear)
            answer = CommandResult(result.content if result.ok else result.error or "", success=result.ok)
        except RobotaError as error:
            answer = CommandResult(str(error), success=False)
        finally:
            self._shells.discard(task)
            presenter.show_command(f"{SHELL}{command}", answer)

    def stop_shells(self) -> bool:
        """End the user's own commands; whether there were any."""
        for task in self._shells:
            task.cancel()
        return bool(self._shells)

    # --- what commands want of a terminal -----------------------------------------------------------

    async def _carry_out(self, answer: CommandResult, typed: str) -> None:
        app = self._app
        match answer.effect:
            case ExitRequested():
                app.leave(0)
            case ResumePicker():
                await pick_session(app, typed.partition(" ")[2].strip())
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
