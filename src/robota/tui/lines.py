"""Line mode: the whole assistant on a terminal that shows lines and nothing else.

The same turns, commands, questions and lists as in the interface (`app.py`). Ctrl-C stops a turn, and leaves
when none runs or when it is pressed again; Ctrl-D on an empty line leaves.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from robota.core.errors import RobotaError
from robota.sdk.places import find_places
from robota.sdk.view.neutral import neutralise
from robota.sdk.view.presenter import Presenter
from robota.sdk.view.text_lines import LineSplitter
from robota.tui.asking import Asking
from robota.tui.front import begin
from robota.tui.history import history_path, keep_prompt, load_prompts
from robota.tui.line_dialogs import LineDialogs
from robota.tui.line_input import LineInput
from robota.tui.line_view import LineView
from robota.tui.pickers import pick_session as choose_session
from robota.tui.turns import Turns
from robota.tui.words import ENGLISH, Words, find_language, load_words

if TYPE_CHECKING:
    from robota.sdk.view.shown_session import ShownSession
    from robota.tui.host import TerminalHost

PROMPT, MORE = "robota> ", "... "
STEER = ">"
INTERRUPTED = 130
WHOLE = 1_000_000
"""Rows of a call that are shown when somebody has to decide about it: all of them."""


class LineMode:
    """One terminal; the session in it may be changed for another."""

    presenter: Presenter

    def __init__(self, session: ShownSession, host: TerminalHost, environment: Mapping[str, str]) -> None:
        self.session = session
        self.host = host
        self.words = choose_words(host, environment)
        self.input = LineInput(self._complete)
        self.view = LineView(sys.stdout, sys.stderr, self.input, self._lose)
        self.dialogs = LineDialogs(self.input, self.view.remark, self.words)
        self.asking = Asking(self, rows=WHOLE)
        self.turns = Turns(self)
        self.editing = self
        places = find_places(session.cwd, environment)
        self._history_path = history_path(places.robota_home, places.cwd)
        self._history = load_prompts(self._history_path)
        self._draft = ""
        """What stands in the next prompt before anybody types."""
        self._code: int | None = None
        self._stopping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._work: asyncio.Task[int] | None = None
        self._follow(session)

    # --- what turns, questions and lists ask for (`FrontEnd`) -----------------------------------------------

    def _follow(self, session: ShownSession) -> None:
        self.session = session
        self.presenter = Presenter(
            session,
            self.view,
            self.words,
            splitter=LineSplitter(),
            status=partial(self.host.read_status, session),
        )
        self._detach = session.questions.attach(self.asking)

    def adopt(self, session: ShownSession, *, recap: bool = False) -> None:
        self._detach()
        self.presenter.close()
        self._follow(session)
        self.spawn(begin(self, session, recap=recap))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def refill(self, text: str) -> None:
        if self.input.is_typed:  # what comes from a file is not for anybody to correct
            self._draft = " ".join(text.split("\n"))

    def notify(self, text: str) -> None:
        """A question is on the screen; there is no other place for it."""

    def turn_ended(self) -> None:
        self.presenter.flush()
        self.view.end_line()
        self._stopping = False

    def leave(self, code: int) -> None:
        self._code = code

    # --- life -----------------------------------------------------------------------------------------------

    async def run(self, first_prompt: str, *, pick: bool, recap: bool) -> int:
        self._work = asyncio.ensure_future(self._talk(first_prompt, pick=pick, recap=recap))
        with self._signals():
            try:
                return await self._work
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if self._code is None or (task is not None and task.cancelling()):
                    raise
                return self._code
            finally:
                await self._put_away()

    async def _talk(self, first_prompt: str, *, pick: bool, recap: bool) -> int:
        await begin(self, self.session, recap=recap)
        if pick:
            await choose_session(self)
        if first_prompt.strip():
            self._submit(first_prompt)
        else:
            self.presenter.notice(self.words("lines.hello"))
        while True:
            with self.input.overhearing(self._steer):
                while self._tasks:
                    await asyncio.wait(self._tasks)
            self.presenter.flush()
            if self._code is not None:
                return self._code
            line = await self._read_prompt()
            if line is None:
                return 0
            if line.strip():
                self._send(line)

    async def _read_prompt(self) -> str | None:
        """A prompt; a line that ends with a backslash goes on with the next."""
        draft, self._draft = self._draft, ""
        line = await self.input.read(PROMPT, text=draft, history=self._history)
        while line is not None and line.endswith("\\"):
            more = await self.input.read(MORE)
            line = line[:-1] if more is None else f"{line[:-1]}\n{more}"
        return line

    def _send(self, line: str) -> None:
        self._history.append(line)
        keep_prompt(self._history_path, line, self.session)
        self.view.typed = [neutralise(line)]
        self._submit(line)

    def _submit(self, line: str) -> None:
        if refused := self.turns.send(line, line):
            self.presenter.notice(refused)

    def _steer(self, line: str) -> bool:
        """A line that was typed while a turn runs: the model hears it before its next round if it begins with
        the sign for that, else it waits for the next prompt."""
        words = line.removeprefix(STEER).strip()
        if not line.startswith(STEER) or not words or not self.turns.busy:
            return False
        self.view.typed.append(neutralise(words))
        self.turns.steer(words)
        return True

    async def _put_away(self) -> None:
        self._detach()
        if self.turns.busy:
            self.host.stop_turn()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.presenter.close()
        self.view.end_line()

    # --- signals and the rest -------------------------------------------------------------------------------

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C is ours while this runs; other signals end the program as always."""
        loop = asyncio.get_running_loop()
        actions = {signal.SIGINT: self._interrupt, signal.SIGCONT: self.input.resume}
        before = {
            number: signal.signal(number, lambda *_, act=act: loop.call_soon_threadsafe(act))
            for number, act in actions.items()
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _interrupt(self) -> None:
        if not self._tasks or self._stopping:
            self._end(INTERRUPTED)
        elif self.turns.busy:
            self._stopping = True
            self.session.abort()
        else:
            for task in self._tasks:
                task.cancel()

    def _end(self, code: int) -> None:
        self.leave(code)
        if self._work is not None:
            self._work.cancel()

    def _lose(self, why: str) -> None:
        """Nobody reads the answer any more."""
        if why:
            self.view.remark(self.words("lines.lost", reason=why))
        self._end(1)

    def _complete(self, line: str) -> str:
        """The name of a command, as far as it is clear; the names if it is not."""
        if not line.startswith("/") or " " in line:
            return line
        names = [f"/{each.name}" for each in self.session.commands.commands(line[1:])]
        if len(names) == 1:
            return f"{names[0]} "
        if names:
            self.view.remark("  ".join(names))
        return line


def choose_words(host: TerminalHost, environment: Mapping[str, str]) -> Words:
    """In the user's language, if the terminal has its letters."""
    words = load_words(find_language(host.setting("language"), environment))
    try:
        words("yes").encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return load_words(ENGLISH)
    return words


async def run_lines(
    session: ShownSession,
    host: TerminalHost,
    *,
    first_prompt: str = "",
    pick_session: bool = False,
    recap: bool = False,
) -> int:
    """Line mode until somebody leaves it; the exit code."""
    with suppress(RobotaError):  # said again, and shown, when there is somebody to show it to
        await session.ready()
    mode = LineMode(session, host, os.environ)
    return await mode.run(first_prompt, pick=pick_session, recap=recap)
