"""A turn as plain lines: the answer on stdout as it streams, tools and notices on stderr.

Everything a model, a tool or a file name says is stripped of terminal control before it is shown.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from robota.core.events import Noticed, ProviderRetried, TextDelta, ToolEnded, ToolStarted, TurnEvent
from robota.core.plain_text import strip_controls

if TYPE_CHECKING:
    from robota.sdk.assembly import Agent, ApprovalRequest

ARGUMENT_WIDTH = 80


class LinePrinter:
    """Shows turn events."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self.out = out
        self.err = err
        self.reader_is_gone = False
        """Nobody reads the answer any more; there is nothing left to print it for."""
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
                self.remark(f"… {_one_line(message)} Trying again in {delay:.1f} s (attempt {attempt}).")
            case Noticed(message=message):
                self.remark(message)
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
        self._at_line_start = text.endswith("\n")

    def remark(self, text: str) -> None:
        """A line beside the answer, never in the middle of one of its lines on a shared terminal."""
        if not self._at_line_start and self.out.isatty():
            self.write("\n")
        print(strip_controls(text), file=self.err, flush=True)

    def end(self) -> None:
        if not self._at_line_start:
            self.write("\n")


async def take_turn(agent: Agent, prompt: str, printer: LinePrinter) -> int:
    """Run one prompt and show it; the exit code it deserves."""
    with _ctrl_c_aborts(agent):

        def show(event: TurnEvent) -> None:
            printer.show(event)
            if printer.reader_is_gone:
                agent.abort()

        stop = agent.events.subscribe(show)
        try:
            result = await agent.run(prompt)
        finally:
            stop()
    if printer.reader_is_gone:
        return 1
    if result.error is not None:
        printer.end()
        print(f"robota: {strip_controls(str(result.error))}", file=printer.err)
        return 1
    if result.stop_reason == "context_overflow":
        printer.write(strip_controls(result.text))  # the engine's own words do not stream
    printer.end()
    if result.interrupted:
        print("Interrupted by user.", file=printer.err)
        return 130
    return 0


async def ask_on_terminal(request: ApprovalRequest) -> bool:
    """The question of the line prompt; anything but a clear yes is a no."""
    from anyio import to_thread  # noqa: PLC0415 - loaded by the run that asks

    print(f"\n[Permission Required] Tool: {request.tool_name}", file=sys.stderr)
    for name, value in request.tool_input.items():
        print(f"  {name}: {strip_controls(str(value))}", file=sys.stderr)
    print(f"  {request.reason}", file=sys.stderr)
    try:
        answer = await to_thread.run_sync(lambda: input("Allow once? [y/N] "), abandon_on_cancel=True)
    except EOFError:
        return False
    return answer.strip().lower() in ("y", "yes")


@contextmanager
def _ctrl_c_aborts(agent: Agent) -> Iterator[None]:
    """While a turn runs, Ctrl-C stops the turn, not the program."""
    before = signal.signal(signal.SIGINT, lambda *_: agent.abort())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _one_line(text: str) -> str:
    flat = " ".join(strip_controls(text).split())
    return flat if len(flat) <= ARGUMENT_WIDTH else f"{flat[: ARGUMENT_WIDTH - 1]}…"
