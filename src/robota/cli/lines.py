"""A turn as plain lines: the answer on stdout as it streams, tools and notices on stderr.

What is shown is stripped of terminal control on its way (`screen`); in a question it is written out instead.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from robota.cli.keyboard import Keyboard
from robota.cli.signals import INTERRUPTED, Signalled, Signals
from robota.core.errors import AbortError, RobotaError
from robota.core.events import (
    Noticed,
    ProviderRetried,
    RunCompleted,
    TextDelta,
    ToolEnded,
    ToolStarted,
    TurnEvent,
)
from robota.core.messages import JsonObject
from robota.sdk.ending import exit_code
from robota.sdk.execution import ExecutionResult
from robota.sdk.permission_prompt import describe_approval
from robota.sdk.view.neutral import strip_all, visible

if TYPE_CHECKING:
    from robota.core.questions import PermissionQuestion
    from robota.sdk.interactive import InteractiveSession

ARGUMENT_WIDTH = 80


class LinePrinter:
    """Shows turn events."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out = out
        self.err = err
        self.reader_is_gone = False
        """The answer cannot be written any more; there is nothing left to print it for."""
        self.failure = ""
        """Why, unless a reader simply left."""
        self._at_line_start = True

    def show(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self.write(strip_all(text))
            case ToolStarted(tool_name=name, arguments=arguments):
                first = next(iter(arguments.values()), "")
                self.remark(f"● {name}({_one_line(str(first))})")
            case ToolEnded(metadata={"sandboxNote": str(note)}):
                self.remark(note)
            case ToolEnded(outcome="denied" | "error", tool_name=name, error=error):
                self.remark(f"✗ {name}: {_one_line(error or 'failed')}")
            case ProviderRetried(message=message, delay=delay, attempt=attempt):
                when = f" Trying again in {delay:.1f} s (attempt {attempt})." if delay else ""
                self.remark(f"… {_one_line(message)}{when}")
            case Noticed(message=message):
                self.remark(message)
            case RunCompleted(stop_reason="context_overflow", text=text):
                self.remark(text)  # the engine's own words are not an answer
            case _:
                return

    def write(self, text: str) -> None:
        if self.reader_is_gone or not text or (self._at_line_start and text == "\n\n"):
            return
        try:
            self.out.write(text)
            self.out.flush()
        except BrokenPipeError:
            self.reader_is_gone = True
        except OSError as error:
            self.reader_is_gone, self.failure = True, str(error)
        self._at_line_start = text.endswith("\n")

    def remark(self, text: str) -> None:
        """A line beside the answer, never in the middle of one of its lines on a shared terminal."""
        if not self._at_line_start and self.out.isatty():
            self.write("\n")
        with suppress(OSError):  # nobody is left to be told, and the answer does not depend on it
            print(text, file=self.err, flush=True)

    def end(self) -> None:
        if not self._at_line_start:
            self.write("\n")


async def take_turn(
    session: InteractiveSession,
    prompt: str,
    printer: LinePrinter,
    signals: Signals,
    *,
    schema: JsonObject | None = None,
) -> int:
    """Run one prompt and show it; the exit code it deserves."""
    with _signals_abort(session, signals):

        def show(event: TurnEvent) -> None:
            printer.show(event)
            if printer.reader_is_gone:
                session.abort()

        stop = session.events.subscribe(show)
        try:
            result = (await session.submit(prompt, output=schema)).raise_for_error()
            if result.command is not None:
                printer.write(strip_all(result.text))
            code, said = exit_code(result), ""
        except AbortError:
            code, said = INTERRUPTED, "" if signals.code else "Interrupted by user."
        except RobotaError as error:
            code, said = exit_code(ExecutionResult(error=error)), f"robota: {error}"
        finally:
            stop()
    printer.end()
    if printer.reader_is_gone:
        code, said = 1, printer.failure and f"robota: The answer could not be written: {printer.failure}."
    if said:
        printer.remark(said)
    return code


class Questioner:
    """Asks the user on the terminal."""

    __slots__ = ("_keyboard",)

    def __init__(self, keyboard: Keyboard) -> None:
        self._keyboard = keyboard

    async def approve(self, request: PermissionQuestion) -> bool | str:
        """The question before a call; anything but a clear yes is a no, and a signal ends the turn."""
        lines = describe_approval(request)
        choices = "y/N"
        if request.rule:
            choices = "y/a/p/N"
            lines.append(
                f"  a: for this session also whatever fits {visible(request.rule)}; p: in this project"
            )
        print(*lines, sep="\n", file=sys.stderr, flush=True)
        seen = self._keyboard.signals.count
        await asyncio.sleep(0)  # an abort that waits for the loop comes before the question
        try:
            answer = self._keyboard.read_answer(f"Allow once? [{choices}] ", seen=seen)
        except Signalled as cause:
            self._keyboard.signals.pass_on(cause.number)
            return False
        word = (answer or "").strip().lower()
        if request.rule and word in ("a", "always"):
            return "allow-session"
        if request.rule and word in ("p", "project"):
            return "allow-project"
        return word in ("y", "yes")

    async def offer_trust(self, session: InteractiveSession) -> None:
        """Ask once whether what the project's files want may act, and whether they may bring in files from
        elsewhere; anything but a clear yes is a no."""
        await session.ready()
        trust = session.project.trust
        if trust.asks:
            print(*map(visible, trust.describe()), sep="\n", file=sys.stderr, flush=True)
            if self._agrees("Trust this directory?"):
                await session.trust_project(trust)
        if question := session.describe_outside_imports():
            print(*map(visible, question), sep="\n", file=sys.stderr, flush=True)
            if self._agrees("Read these files, too?"):
                await session.allow_outside_imports()

    def _agrees(self, question: str) -> bool:
        answer = self._keyboard.read_answer(f"{question} [y/N] ")
        return (answer or "").strip().lower() in ("y", "yes")

    def ask(self, question: str) -> str | None:
        """A question of the start; a list of what can be answered may come before it."""
        return self._keyboard.read_answer("\n".join(map(visible, question.split("\n"))))

    def confirm(self, question: str) -> bool:
        """A question of the start, to which Enter alone is a yes."""
        answer = self._keyboard.read_answer(f"{visible(question)} [Y/n] ")
        return answer is not None and answer.strip().lower() in ("", "y", "yes")


@contextmanager
def _signals_abort(session: InteractiveSession, signals: Signals) -> Iterator[None]:
    """While a turn runs, Ctrl-C stops the turn and not the program; a second one, and every other signal,
    both."""
    told = False

    def stop(number: int) -> None:
        nonlocal told
        if number != signal.SIGINT:
            signals.ask_to_end(number)
        elif told:
            outer(number)
        told = True
        session.abort()

    with signals.acting(stop) as outer:
        yield


def _one_line(text: str) -> str:
    flat = " ".join(strip_all(text).split())
    return flat if len(flat) <= ARGUMENT_WIDTH else f"{flat[: ARGUMENT_WIDTH - 1]}…"
