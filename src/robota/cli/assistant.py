"""The assistant: a provider, a session, and the front end that works with it until somebody leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Unpack

from msgspec.structs import replace

from robota.cli.chosen_provider import chosen_provider
from robota.cli.diagnostics import log_events, start_log
from robota.cli.keyboard import Keyboard
from robota.cli.lines import LinePrinter, Questioner, take_turn
from robota.cli.session_choice import SessionChoice
from robota.cli.signals import Signalled, Signals
from robota.core.errors import ConfigurationError
from robota.providers.choice import ProviderArguments
from robota.sdk.auth import KeyStore
from robota.sdk.ending import DENIED, Denials, describe_end
from robota.sdk.places import find_places
from robota.sdk.project import find_keys
from robota.sdk.settings import Settings, load_settings

if TYPE_CHECKING:
    from robota.cli.options import Options
    from robota.sdk.assembly import MoreOptions
    from robota.sdk.interactive import InteractiveSession

LEAVE = ("/exit", "/quit")


class Assistant:
    """One call of the command, in the task that makes it."""

    __slots__ = (
        "_keyboard",
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
        self._printer = LinePrinter(sys.stdout, sys.stderr)
        self._keyboard = None if options.print_mode or options.is_driven else Keyboard(signals)
        self._user = None if self._keyboard is None else Questioner(self._keyboard)
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._tells_all = False
        self._leaving = False
        """What is under way is put away, which a signal must not leave half-way."""

    async def run(self) -> int:
        """Work through the prompts; the exit code, unless a signal has another."""
        with self._signals.acting(self._end):
            try:
                return await self._work()
            except Signalled as cause:
                self._signals.ask_to_end(cause.number)
                return 0

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
        options, printer = self._options, self._printer
        self._tells_all = start_log(os.environ, debug=options.debug)
        if options.is_driven or options.output_format != "text":
            raise ConfigurationError(f"--output-format {options.output_format} is not there yet.")
        async with self.open(options) as session:
            if self._user is not None:
                await self._user.offer_trust(session)
            denials = Denials(session)
            code = await self._take_turns(session)
        if denials.tools and options.print_mode and not code:
            printer.remark(denials.describe())
            code = DENIED
        if session.trouble:
            what = session.trouble.partition(". ")[0]  # the rest is for a session that goes on
            printer.remark(f"robota: This session was not saved: {what}.")
            return code or 1
        if session.is_kept and (self._keyboard is not None or code):
            printer.remark(describe_end(session))
        return code

    @asynccontextmanager
    async def open(self, options: Options, **more: Unpack[MoreOptions]) -> AsyncIterator[InteractiveSession]:
        """A session as the options want it, with its provider, and with `more` than they can say. Behind the
        block both are closed."""
        printer, user = self._printer, self._user
        choice = SessionChoice(options, None if user is None else user.ask)
        if choice.note:
            printer.remark(choice.note)
        options = choice.settle(options)
        settings = read_own_settings(os.environ)
        given = ProviderArguments(
            provider=options.provider,
            model=options.model or settings.own_model,
            base_url=options.base_url,
            environment=os.environ,
            confirm=None if user is None else user.confirm,
            kept=KeyStore(find_places().robota_home).get,
            report=printer.remark,
        )
        async with chosen_provider(given, settings.profiles) as chosen:
            if chosen.note:
                printer.remark(chosen.note)
            session = choice.open(options, chosen, approve=None if user is None else user.approve, **more)
            if self._tells_all:
                log_events(session)
            try:
                yield session
            finally:
                self._leaving = True
                await session.shutdown("other" if self._signals.code else "prompt_input_exit")

    async def _take_turns(self, session: InteractiveSession) -> int:
        prompt, keyboard = self._options.prompt, self._keyboard
        if keyboard is None:
            schema = self._options.json_schema
            return await take_turn(session, prompt, self._printer, self._signals, schema=schema)
        self._printer.remark("Type a prompt, or /exit to leave.")
        while True:
            code = 0
            if prompt.strip():
                code = await take_turn(session, prompt, self._printer, self._signals)
            if self._signals.code or self._printer.reader_is_gone:
                return code
            words = keyboard.read_prompt("robota> ")
            if words is None or words.strip() in LEAVE:
                return 0
            prompt = words


def read_own_settings(environment: Mapping[str, str]) -> Settings:
    """The user's settings, which choose who answers; what variables and options say is known already."""
    others = {name: value for name, value in environment.items() if not name.startswith("ROBOTA_")}
    places = find_places()
    settings = load_settings(places, sources=("user",), environment=others, trusted=False)
    return replace(settings, profiles=find_keys(places, settings, []))  # the session tells what is wrong


async def assist(options: Options, signals: Signals) -> int:
    return await Assistant(options, signals).run()
