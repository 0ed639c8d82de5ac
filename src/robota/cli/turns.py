"""One prompt, printed, while signals stop it and not the program."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from robota.cli.signals import INTERRUPTED, Signals
from robota.transports.headless import TEXT, LinePrinter, PrintOptions, print_frames, print_text

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


async def take_turn(
    session: InteractiveSession,
    prompt: str,
    printer: LinePrinter,
    signals: Signals,
    options: PrintOptions = TEXT,
) -> int:
    """Run one prompt and print it; the exit code it deserves."""
    with _signals_abort(session, signals):
        if options.output_format != "text":
            return await print_frames(session, prompt, options, printer)
        code = await print_text(session, prompt, options, printer)
    if code == INTERRUPTED and not signals.code:
        printer.remark("Interrupted by user.")
    return code


@contextmanager
def _signals_abort(session: InteractiveSession, signals: Signals) -> Iterator[None]:
    """While a turn runs, Ctrl-C stops the turn and not the program; a second one, and every other signal,
    both."""
    told, outer = False, signals.act

    def stop(number: int) -> None:
        nonlocal told
        if number != signal.SIGINT:
            signals.ask_to_end(number)
        if (told and number == signal.SIGINT) or not session.is_executing:  # no turn yet, or none any more
            outer(number)
        told = True
        session.abort()

    with signals.acting(stop):
        yield
