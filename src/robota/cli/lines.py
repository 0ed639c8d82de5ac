"""A turn as plain lines: the answer on stdout as it streams, tools and notices on stderr.

Everything a model, a tool or a file name says is stripped of terminal control before it is shown.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

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
from robota.core.plain_text import strip_controls

if TYPE_CHECKING:
    from robota.sdk.assembly import PermissionQuestion, Session

ARGUMENT_WIDTH = 80


class LinePrinter:
    """Shows turn events."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out = out
        self.err = err
        self.reader_is_gone = False
        """The answer cannot be written any more; there is nothing left to print it for."""
        self.failure: OSError | None = None
        """Why, unless a reader simply left."""
        self._at_line_start = True

    def show(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self.write(strip_controls(text))
            case ToolStarted(tool_name=name, arguments=arguments):
                first = next(iter(arguments.values()), "")
                self.remark(f"● {name}({_one_line(str(first))})")
            case ToolEnded(outcome="denied" | "error", tool_name=name, error=error):
                self.remark(f"✗ {name}: {_one_line(error or 'failed')}")
            case ProviderRetried(message=message, delay=delay, attempt=attempt):
                when = f" Trying again in {delay:.1f} s (attempt {attempt})." if delay else ""
                self.remark(f"… {_one_line(message)}{when}")
            case Noticed(message=message):
                self.remark(message)
            case RunCompleted(stop_reason="context_overflow", text=text):
                self.write(strip_controls(text))  # the engine's own words do not stream
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
            self.reader_is_gone, self.failure = True, error
        self._at_line_start = text.endswith("\n")

    def remark(self, text: str) -> None:
        """A line beside the answer, never in the middle of one of its lines on a shared terminal."""
        if not self._at_line_start and self.out.isatty():
            self.write("\n")
        print(strip_controls(text), file=self.err, flush=True)

    def end(self) -> None:
        if not self._at_line_start:
            self.write("\n")


async def take_turn(session: Session, prompt: str, printer: LinePrinter) -> int:
    """Run one prompt and show it; the exit code it deserves."""
    with _ctrl_c_aborts(session):

        def show(event: TurnEvent) -> None:
            printer.show(event)
            if printer.reader_is_gone:
                session.abort()

        stop = session.events.subscribe(show)
        try:
            await session.run(prompt)
            code, said = 0, ""
        except AbortError:
            code, said = 130, "Interrupted by user."
        except RobotaError as error:
            code, said = 1, f"robota: {strip_controls(str(error))}"
        finally:
            stop()
    if printer.reader_is_gone:
        if printer.failure is not None:
            print(f"robota: The answer could not be written: {printer.failure}.", file=printer.err)
        return 1
    printer.end()
    if said:
        print(said, file=printer.err)
    return code


async def ask_on_terminal(request: PermissionQuestion) -> bool | str:
    """The question of the line prompt; anything but a clear yes is a no, and Ctrl-C ends the turn."""
    print(f"\n[Permission Required] Tool: {request.tool_name}", file=sys.stderr)
    for name, value in request.tool_input.items():
        print(f"  {name}:\n{_quoted(str(value))}", file=sys.stderr)
    if request.diff:
        print(f"  changes:\n{_quoted(request.diff)}", file=sys.stderr)
    print(f"  {request.reason}", file=sys.stderr)
    choices = "y/N"
    if request.rule:
        choices = "y/a/N"
        print(f"  a: for this session also whatever fits {visible(request.rule)}", file=sys.stderr)
    try:
        answer = read_line(f"Allow once? [{choices}] ")
    except KeyboardInterrupt:
        signal.raise_signal(signal.SIGINT)
        return False
    word = (answer or "").strip().lower()
    if request.rule and word in ("a", "always"):
        return "allow-session"
    return word in ("y", "yes")


def confirm(question: str) -> bool:
    """A question of the start, to which Enter alone is a yes."""
    answer = read_line(f"{visible(question)} [Y/n] ")
    return answer is not None and answer.strip().lower() in ("", "y", "yes")


def _quoted(text: str) -> str:
    return "\n".join(f"    | {visible(line)}" for line in text.split("\n"))


def read_line(question: str) -> str | None:
    """A line the user types, `None` at the end of the input; Ctrl-C raises.

    It waits in the loop's own thread: nothing else goes on meanwhile, and a thread left behind in `input`
    would take the next line away. Not `input`: a Ctrl-C just before it waits would be noticed only at the
    next key; here a pipe remembers it.
    """
    noticed, notice = os.pipe()
    os.set_blocking(notice, False)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    earlier = signal.set_wakeup_fd(notice)
    try:
        print(question, end="", flush=True)
        select.select([sys.stdin, noticed], [], [])
        line = sys.stdin.readline()
    finally:
        signal.set_wakeup_fd(earlier)
        signal.signal(signal.SIGINT, before)
        os.close(noticed)
        os.close(notice)
    if not line:
        print()
        return None
    return line.rstrip("\n")


def visible(text: str) -> str:
    """Text in which nothing is hidden: control and invisible characters are written out."""
    return "".join(
        letter if letter.isprintable() or letter == "\t" else ascii(letter)[1:-1] for letter in text
    )


@contextmanager
def _ctrl_c_aborts(session: Session) -> Iterator[None]:
    """While a turn runs, Ctrl-C stops the turn, not the program."""
    before = signal.signal(signal.SIGINT, lambda *_: session.abort())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _one_line(text: str) -> str:
    flat = " ".join(strip_controls(text).split())
    return flat if len(flat) <= ARGUMENT_WIDTH else f"{flat[: ARGUMENT_WIDTH - 1]}…"
