"""The terminal interface: inline, append-only. What is finished goes into the terminal's own scrollback."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from prompt_toolkit.buffer import Buffer

from robota.core.errors import RobotaError
from robota.sdk.places import find_places
from robota.sdk.view.model import Block, Live, Status
from robota.sdk.view.neutral import neutral_line
from robota.sdk.view.presenter import Presenter
from robota.tui.asking import ScreenAsking
from robota.tui.capture import Capture
from robota.tui.commands import TerminalCommands
from robota.tui.complete import InputCompleter
from robota.tui.dialogs import Dialogs
from robota.tui.editing import Editing
from robota.tui.front import begin
from robota.tui.history import history_path
from robota.tui.keys import make_keys
from robota.tui.live import SPINS_A_SECOND, Region
from robota.tui.memory import keep_what_is_loaded
from robota.tui.pickers import pick_rewind, pick_session
from robota.tui.preferences import Preferences
from robota.tui.printing import Printing
from robota.tui.signs import notification, title
from robota.tui.status_script import StatusScript
from robota.tui.style import make_style
from robota.tui.surface import Surface
from robota.tui.turns import Turns

if TYPE_CHECKING:
    from robota.sdk.view.shown_session import ShownSession
    from robota.tui.host import TerminalHost

AGAIN_SECONDS = 2.0
"""A second Ctrl-C, or Esc, within this means more than the first."""
INTERRUPTED = 130
MODES = ("default", "acceptEdits", "plan")
logger = logging.getLogger(__name__)


class TerminalApp:
    """One terminal; the session in it may be changed for another."""

    presenter: Presenter

    def __init__(self, session: ShownSession, host: TerminalHost, environment: Mapping[str, str]) -> None:
        self.session = session
        self.host = host
        self.wishes = Preferences.of(host.setting, environment)
        self.words = self.wishes.words
        places = find_places(session.cwd, environment)
        self.asking = ScreenAsking(self)
        self.dialogs = Dialogs(self.asking.changed)
        self.editing = Editing(self, history_path(places.robota_home, places.cwd))
        self.input = self.editing.buffer
        self.entry = Buffer(multiline=False)
        self.region = Region(self.input, self.entry, self.dialogs, self.words)
        self.layout = self.region.layout
        self.surface = Surface(
            self.layout,
            make_keys(self, self.wishes.keys),
            make_style(self.wishes.theme),
            environment=environment,
            vim=self.wishes.vim,
            escape_seconds=self.wishes.escape_seconds,
        )
        self.region.surface = self.surface
        self.printing = Printing(self.surface, self.wishes.theme, self._show_live)
        self.turns = Turns(self)
        self.script = StatusScript(self)
        self._leaving = ExitStack()
        self._log = places.user("logs", "terminal.log")
        self._tasks: set[asyncio.Task[None]] = set()
        self._pressed: dict[str, float] = {}
        self._spinning: asyncio.TimerHandle | None = None
        self._hinting: asyncio.TimerHandle | None = None
        self.surface.app.key_processor.before_key_press += lambda _: self.dialogs.key_pressed()
        self._follow(session)

    def _follow(self, session: ShownSession) -> None:
        """Show this session from now on, and answer its questions."""
        self.session = session
        session.commands.replace_source(TerminalCommands(self))
        self.presenter = Presenter(
            session,
            self,
            self.words,
            frame_seconds=self.wishes.frame_seconds,
            status=partial(self.host.read_status, session),
        )
        self._detach = session.questions.attach(self.asking)
        self.editing.serve(InputCompleter(session.commands, session.cwd))

    def adopt(self, session: ShownSession, *, recap: bool = False) -> None:
        """Go on with another session."""
        self._detach()
        self.presenter.close()
        self._follow(session)
        self.spawn(begin(self, session, recap=recap))

    # --- what is shown: the presenter calls these ---------------------------------------------------

    def block(self, block: Block) -> None:
        self.printing.add(block)

    def live(self, live: Live) -> None:
        self.printing.then(live)

    def _show_live(self, live: Live) -> None:
        self.region.live = live
        self.presenter.frame_seconds = max(self.wishes.frame_seconds, self.surface.output.pause)
        self._spin()
        self.surface.invalidate()

    def status(self, status: Status) -> None:
        if status.name != self.region.status.name:
            self.surface.write(title(status.name))
        self.region.status = status
        self.script.run(status)
        self.surface.invalidate()

    def _spin(self) -> None:
        """Keep the clock of a turn going where nothing else draws; nothing happens while it is idle."""
        if self._spinning is None and self.region.live.activity not in ("idle", "waiting"):
            self._spinning = asyncio.get_running_loop().call_later(1 / SPINS_A_SECOND, self._turn_wheel)

    def _turn_wheel(self) -> None:
        self._spinning = None
        if time.monotonic() - self.surface.output.drawn >= 1 / SPINS_A_SECOND:
            self.surface.invalidate()
        self._spin()

    def typed(self) -> None:
        """What stands in the line is another text: a key that waits for its second press begins again."""
        self._pressed.clear()
        if self.region.hint:
            self.hint("")

    def hint(self, text: str, seconds: float = 0.0) -> None:
        """A line for the moment, in the place of the status."""
        if self._hinting is not None:
            self._hinting.cancel()
            self._hinting = None
        self.region.hint = text
        if seconds:
            self._hinting = asyncio.get_running_loop().call_later(seconds, self.hint, "")
        self.surface.invalidate()

    def notify(self, text: str) -> None:
        """Tell somebody who looks elsewhere, in the way they chose."""
        if sequence := notification(self.wishes.notifications, text):
            self.surface.write(sequence)

    # --- life ---------------------------------------------------------------------------------------

    async def run(self, first_prompt: str, *, pick: bool, recap: bool) -> int:
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(self._heard_of_failure)
        loop.call_soon(self.spawn, self._start(first_prompt, pick=pick, recap=recap))
        try:
            with Capture(self._log, self.presenter.notice), self._leaving:
                try:
                    return await self.surface.run()
                except EOFError:
                    return 0  # the terminal is gone
                finally:
                    await self._put_away()
        finally:
            loop.set_exception_handler(before)

    async def _start(self, first_prompt: str, *, pick: bool, recap: bool) -> None:
        self.spawn(self._warm_up())
        if self.wishes.wrong_keys:
            wrong = ", ".join(map(neutral_line, self.wishes.wrong_keys))
            self.presenter.notice(self.words("keys.wrong", actions=wrong))
        await begin(self, self.session, recap=recap)
        if pick:
            await pick_session(self)
        if first_prompt.strip():
            refused = self.turns.send(first_prompt, first_prompt)
            if refused:
                self.editing.refill(first_prompt)
                self.hint(refused)

    async def _warm_up(self) -> None:
        await self.printing.warm_up()
        self._leaving.callback(keep_what_is_loaded())

    async def _put_away(self) -> None:
        for timer in (self._spinning, self._hinting):
            if timer is not None:
                timer.cancel()
        self._detach()
        if self.turns.busy:
            self.host.stop_turn()
        self.script.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.presenter.close()
        await self.printing.finish()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Have it done beside the keys; it ends with the interface."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _heard_of_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A task nobody waits for has failed: a sentence for the user, the rest for the log."""
        error = context.get("exception")
        logger.error("%s", context.get("message"), exc_info=error)
        with suppress(RuntimeError):  # at the very end there is nobody to tell
            self.presenter.error(self.words("internal-error", error=error or context.get("message")))

    def leave(self, code: int) -> None:
        self.surface.leave(code)

    def turn_ended(self) -> None:
        self.presenter.flush()
        self.presenter.refresh()
        if not self.turns.busy:
            self.notify(self.words("notify.done"))

    # --- keys ---------------------------------------------------------------------------------------

    def _again(self, key: str) -> bool:
        """Whether a key was pressed a moment ago already."""
        now = time.monotonic()
        again = now - self._pressed.get(key, 0.0) < AGAIN_SECONDS
        self._pressed[key] = 0.0 if again else now
        return again

    def escape(self) -> None:
        """Close the list, else stop the turn, else, twice, go back."""
        if self.editing.close_completion():
            return
        if self.turns.busy:
            self._stop_turn()
        elif not self.turns.stop_shells() and not self.input.text:
            if self._again("escape"):
                self.hint("")
                self.spawn(pick_rewind(self))
            else:
                self.hint(self.words("again-to-rewind"), AGAIN_SECONDS)

    def interrupt(self) -> None:
        """Ctrl-C: stop the turn, else clear the line; twice leaves."""
        if self._again("interrupt"):
            self.leave(INTERRUPTED)
            return
        dialog = self.dialogs.current
        if self.turns.busy:
            self._stop_turn()
        elif dialog is not None:
            dialog.settle(dialog.escape)
        elif not self.turns.stop_shells():
            self.input.reset()
            self._pressed["interrupt"] = time.monotonic()  # to empty the line is not to type
        self.hint(self.words("again-to-leave"), AGAIN_SECONDS)

    def _stop_turn(self) -> None:
        """What waits for the turn is not sent, and comes back into the line."""
        self.editing.take_back()
        self.session.abort()

    def cycle_mode(self) -> None:
        """The next permission mode; the one that allows everything is not among them."""
        mode = self.session.permission_mode
        after = MODES[(MODES.index(mode) + 1) % len(MODES)] if mode in MODES else MODES[0]
        self.spawn(self._set_mode(after))

    async def _set_mode(self, mode: str) -> None:
        self.hint(await self.turns.call_now("mode", mode), AGAIN_SECONDS)

    def expand(self) -> None:
        """Print what was left out of the last block that is shortened."""
        if not self.printing.expand():
            self.hint(self.words("nothing-to-expand"), AGAIN_SECONDS)

    def toggle_thinking(self) -> None:
        self.region.show_thinking = self.printing.show_thinking = not self.region.show_thinking
        shown = "thinking.shown" if self.region.show_thinking else "thinking.hidden"
        self.hint(self.words(shown), AGAIN_SECONDS)


async def run_terminal(
    session: ShownSession,
    host: TerminalHost,
    *,
    first_prompt: str = "",
    pick_session: bool = False,
    recap: bool = False,
) -> int:
    """The interface until somebody leaves it; the exit code."""
    with suppress(RobotaError):  # said again, and shown, when the interface is there
        await session.ready()
    app = TerminalApp(session, host, os.environ)
    return await app.run(first_prompt, pick=pick_session, recap=recap)
