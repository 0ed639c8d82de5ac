"""The assistant: a provider, a session, and the front end that works with it until somebody leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Unpack

from robota.cli.diagnostics import log_events, start_log
from robota.cli.flags import UsageError
from robota.cli.signals import Signalled, Signals
from robota.core.errors import RobotaError, UnknownNameError
from robota.sdk.ending import DENIED, Denials, describe_end
from robota.sdk.places import find_places
from robota.transports.headless import LinePrinter, PrintOptions

if TYPE_CHECKING:
    from robota.cli.options import Options
    from robota.cli.questions import Questioner
    from robota.cli.session_choice import SessionChoice
    from robota.sdk.assembly import MoreOptions
    from robota.sdk.interactive import InteractiveSession

LEAVE = ("/exit", "/quit")
ENTRY = "CLAUDE_CODE_ENTRYPOINT"
"""Set by clients of the stream-json protocol, to a name of their own."""
TOUR = "ROBOTA_TOUR"
"""Set by the tour, whose session is gone when it is left."""
NOTICES = 4096
"""Bytes, one for each signal, that are taken at once."""


class Assistant:
    """One call of the command, in the task that makes it."""

    __slots__ = (
        "_leaving",
        "_loop",
        "_options",
        "_printer",
        "_signals",
        "_task",
        "_tells_all",
        "_user",
    )

    def __init__(self, options: Options, signals: Signals) -> None:
        self._options = options
        self._signals = signals
        self._printer = LinePrinter(sys.stdout, sys.stderr, verbose=options.verbose)
        self._user = None if options.print_mode or options.is_driven else self._meet_user()
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._tells_all = False
        self._leaving = False
        """What is under way is put away, which a signal must not leave half-way."""

    def _meet_user(self) -> Questioner:
        from robota.cli.questions import Questioner  # noqa: PLC0415 - scripts and programs have no user
        from robota.tui.choice import wants_lines  # noqa: PLC0415

        has_screen = not (self._options.no_tui or wants_lines(os.environ))
        return Questioner(self._signals, has_screen=has_screen)

    async def run(self) -> int:
        """Work through the prompts; the exit code, unless a signal has another."""
        with self._signals.waking() as noticed, self._signals.acting(self._end):
            self._loop.add_reader(noticed, os.read, noticed, NOTICES)
            try:
                return await self._work()
            except Signalled as cause:
                self._signals.ask_to_end(cause.number)
                return 0
            finally:
                self._loop.remove_reader(noticed)

    def _end(self, number: int) -> None:
        """Leave in good order. Ctrl-C may be repeated, by people who cannot wait."""
        impatient = number == signal.SIGINT and bool(self._signals.code)
        self._signals.ask_to_end(number)
        self._loop.call_soon_threadsafe(self._leave, impatient)

    def _leave(self, impatient: bool) -> None:
        if self._task is not None and (impatient or not self._leaving):
            self._task.cancel()
        self._leaving = True

    async def _work(self) -> int:
        """Choose the front end. Each gets a session that is ready, or `open` to make it itself."""
        options = self._options
        self._tells_all = start_log(os.environ, debug=options.debug)
        if options.is_driven:
            from robota.cli.driven import drive  # noqa: PLC0415 - for programs

            return await drive(self, options)
        if options.worktree is not None:
            from robota.cli.session_choice import describe_checkout  # noqa: PLC0415 - few want one
            from robota.sdk.own_worktree import own_worktree  # noqa: PLC0415

            places = find_places()
            checkout = describe_checkout(options, places)
            async with own_worktree(checkout, options.worktree, self._printer.remark) as directory:
                os.chdir(directory)
                try:
                    return await self._serve(options)
                finally:
                    os.chdir(places.cwd)
        return await self._serve(options)

    async def _serve(self, options: Options) -> int:
        """Print one turn, or leave it to a front end; then say what the user should know."""
        if self._user is not None and options.attach is not None:
            from robota.cli.attached import show_attached  # noqa: PLC0415 - loads a client

            return await show_attached(options, self._user)
        if self._user is not None:
            from robota.cli.front_end import show  # noqa: PLC0415 - not for scripts

            code, session = await show(self, options, self._user)
            return self._tell_end(session, code)
        async with self.open(options) as session:
            denials = Denials(session)
            code = await self._print_answer(session)
        if denials.tools and not code:
            self._printer.remark(denials.describe())
            code = 0 if _is_for_client(options) else DENIED
        return self._tell_end(session, code)

    def tell_trouble(self, session: InteractiveSession) -> bool:
        """Say that a session was not saved, if that is so."""
        if session.trouble:
            what = session.trouble.partition(". ")[0]  # the rest is for a session that goes on
            self._printer.remark(f"robota: This session was not saved: {what}.")
        return bool(session.trouble)

    def _tell_end(self, session: InteractiveSession, code: int) -> int:
        """Whether it was saved and how it goes on; the exit code."""
        if self.tell_trouble(session):
            return code or 1
        if session.is_kept and (self._user is not None or code) and TOUR not in os.environ:
            self._printer.remark(describe_end(session))
        return code

    @asynccontextmanager
    async def open(
        self, options: Options, choice: SessionChoice | None = None, **more: Unpack[MoreOptions]
    ) -> AsyncIterator[InteractiveSession]:
        """A session as the options want it, with `more` than they can say; closed behind the block."""
        from robota.cli.opening import opened  # noqa: PLC0415 - loads whatever a session needs

        async with opened(options, self._printer.remark, self._user, choice, **more) as session:
            if self._tells_all:
                log_events(session)
            try:
                if options.tools is not None and not options.is_driven:
                    await _check_tools(session)
                yield session
            finally:
                self._leaving = True
                await session.shutdown("other" if self._signals.code else "prompt_input_exit")

    async def _print_answer(self, session: InteractiveSession) -> int:
        from robota.cli.turns import take_turn  # noqa: PLC0415 - not for programs that drive us

        options = self._options
        wanted = PrintOptions(
            output_format=options.output_format,
            schema=options.json_schema,
            partial_messages=options.partial_messages,
            hook_events=options.hook_events,
            fails_on_error_alone=_is_for_client(options),
        )
        return await take_turn(session, options.prompt, self._printer, self._signals, wanted)


def _is_for_client(options: Options) -> bool:
    """Whether a client of the stream-json protocol has started this for a single prompt. To those, any exit
    code but 0 is a broken connection."""
    return options.output_format != "text" and os.environ.get(ENTRY, "").startswith("sdk-")


async def _check_tools(session: InteractiveSession) -> None:
    """A tool on the command line that there is none of is a mistake on the command line."""
    try:
        await session.ready()
    except UnknownNameError as error:
        raise UsageError(str(error)) from error
    except RobotaError:
        pass  # said with the first turn, as always


async def assist(options: Options, signals: Signals) -> int:
    return await Assistant(options, signals).run()
