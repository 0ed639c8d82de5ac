"""One prompt and its answer on standard output: as text, as one JSON object, or as a stream of frames.

The answer goes to `out`, everything else to `err`. Whatever happens, there is exactly one terminal record in
the JSON forms. Saving the session is the business of whoever made it, before the process ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from robota.core.errors import ConfigurationError, RobotaError
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
from robota.sdk.commands.effects import ResetRequested, ResumePicker
from robota.sdk.ending import FAILED, exit_code
from robota.sdk.view.neutral import strip_all

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult
    from robota.sdk.interactive import InteractiveSession

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]

ARGUMENT_WIDTH = 80


class PrintOptions(Struct, frozen=True, kw_only=True):
    """How an answer is printed."""

    output_format: OutputFormat = "text"
    schema: JsonObject | None = None
    """The JSON schema that the answer has to fit."""
    partial_messages: bool = False
    """With `stream-json`: answers piece by piece, too."""
    hook_events: bool = False
    """With `stream-json`: what hooks said."""
    fails_on_error_alone: bool = False
    """With a JSON form: the exit code says what `is_error` says, and no more."""


TEXT = PrintOptions()


async def run_print(
    session: InteractiveSession,
    prompt: str,
    options: PrintOptions = TEXT,
    *,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> int:
    """Take one prompt to its end and print it; the exit code it deserves."""
    show = print_text if options.output_format == "text" else print_frames
    return await show(session, prompt, options, LinePrinter(out or sys.stdout, err or sys.stderr))


async def meet_servers(session: InteractiveSession) -> None:
    """Have the session ready, and its MCP servers too: a script has no second prompt for their tools."""
    await session.ready()
    if not session.is_ready_made:
        await session.kit.servers.settle()


def check_done(result: ExecutionResult[Any]) -> ExecutionResult[Any]:
    """A command may want something that only a front end with a user can do."""
    effect = result.command and result.command.effect
    undone = next((why for kind, why in _UNDONE.items() if isinstance(effect, kind)), None)
    return result if undone is None else replace(result, error=ConfigurationError(undone))


_UNDONE = {
    ResetRequested: "Nothing is deleted here: robota --reset --yes deletes your settings.",
    ResumePicker: "No other session is opened here: robota -p PROMPT -r ID goes on with one.",
}


# --- text -------------------------------------------------------------------------------------------------


async def print_text(
    session: InteractiveSession, prompt: str, options: PrintOptions, printer: LinePrinter
) -> int:
    def show(event: TurnEvent) -> None:
        if options.schema is None or not isinstance(event, TextDelta):  # else it may have to be corrected
            printer.show(event)
        if printer.reader_is_gone:
            session.abort()

    stop = session.events.subscribe(show)
    try:
        with suppress(RobotaError):  # the turn meets it again, and says so
            await meet_servers(session)
        result = check_done(await session.submit(prompt, output=options.schema))
    finally:
        stop()
    if result.error is not None and not isinstance(result.error, RobotaError):
        raise result.error
    if result.success and (result.command is not None or options.schema is not None):
        printer.write(strip_all(result.text))
    printer.end()
    code, said = exit_code(result), ""
    if result.error is not None:
        said = f"robota: {result.error}"
    if printer.reader_is_gone:
        code, said = (
            FAILED,
            printer.failure and f"robota: The answer could not be written: {printer.failure}.",
        )
    if said:
        printer.remark(said)
    return code


class LinePrinter:
    """Shows a turn as plain lines."""

    def __init__(self, out: TextIO, err: TextIO, *, verbose: bool = False) -> None:
        """`verbose`: tool calls with all their arguments, and what they gave."""
        self.out = out
        self.err = err
        self._verbose = verbose
        self.reader_is_gone = False
        """The answer cannot be written any more; there is nothing left to print it for."""
        self.failure = ""
        """Why, unless a reader simply left."""
        self._at_line_start = True

    def show(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self.write(strip_all(text))
            case ToolStarted(tool_name=name, arguments=arguments) if self._verbose:
                self.remark(f"● {name}\n{_indent(f'{key}: {value}' for key, value in arguments.items())}")
            case ToolStarted(tool_name=name, arguments=arguments):
                first = next(iter(arguments.values()), "")
                self.remark(f"● {name}({_one_line(str(first))})")
            case ToolEnded(metadata={"sandboxNote": str(note)}):
                self.remark(note)
            case ToolEnded(outcome="success", tool_name=name, content=content) if self._verbose:
                self.remark(f"✓ {name}\n{_indent((content,))}")
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
            self.reader_is_gone, self.failure = True, error.strerror or str(error)
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


def _indent(texts: Iterable[str]) -> str:
    return "\n".join(f"  {line}" for text in texts for line in strip_all(text).splitlines())


def _one_line(text: str) -> str:
    flat = " ".join(strip_all(text).split())
    return flat if len(flat) <= ARGUMENT_WIDTH else f"{flat[: ARGUMENT_WIDTH - 1]}…"


# --- JSON -------------------------------------------------------------------------------------------------


async def print_frames(
    session: InteractiveSession, prompt: str, options: PrintOptions, printer: LinePrinter
) -> int:
    from robota.transports.init_frame import init_frame  # noqa: PLC0415 - for those who want frames
    from robota.transports.line_writer import LineWriter  # noqa: PLC0415
    from robota.transports.result_frame import Ending, failure_frame  # noqa: PLC0415
    from robota.transports.turn_frames import FrameOptions, TurnFrames  # noqa: PLC0415

    writer = LineWriter(printer.out.fileno(), lambda why: session.abort())
    streams = options.output_format == "stream-json"
    wanted = FrameOptions(partial=options.partial_messages, hook_events=options.hook_events)
    frames = TurnFrames(session, writer.send if streams else lambda frame: None, wanted)
    stops = [frames.follow()]
    if not streams:  # a single object has no place for what the user should know
        stops.append(session.events.on(Noticed, lambda event: printer.remark(event.message)))
    try:
        await meet_servers(session)
        frames.send(init_frame(session))
        ending = Ending(session, frames)
        result = check_done(await session.submit(prompt, output=options.schema))
        frames.end()
        last, code = ending.frame(result), exit_code(result)
    except Exception as error:  # noqa: BLE001 - a reader of records gets one, whatever broke
        last, code = failure_frame(error), FAILED
    finally:
        for stop in stops:
            stop()
    TurnFrames(session, writer.send, wanted).send(last)
    await writer.drain()
    if writer.broken:
        printer.remark(f"robota: The answer could not be written: {writer.broken}.")
    if options.fails_on_error_alone:
        code = FAILED if last["is_error"] else 0
    return code if writer.broken is None else FAILED


# --- the doors for programs -------------------------------------------------------------------------------


class HeadlessRunner:
    """Runs prompts of one session, each with its answer on standard output."""

    __slots__ = ("_options", "_session")

    def __init__(self, session: InteractiveSession, options: PrintOptions) -> None:
        self._session = session
        self._options = options

    async def run(self, prompt: str) -> int:
        """The exit code."""
        return await run_print(self._session, prompt, self._options)


class HeadlessTransport:
    """A transport that runs one prompt when it is started."""

    name = "headless"

    def __init__(self, prompt: str, options: PrintOptions) -> None:
        self._prompt = prompt
        self._options = options
        self._session: InteractiveSession | None = None
        self._code = 0

    def attach(self, session: InteractiveSession) -> None:
        self._session = session

    async def start(self) -> None:
        """Run the prompt to its end."""
        if self._session is None:
            raise RobotaError("This transport has no session: session.attach_transport(transport) first.")
        self._code = await run_print(self._session, self._prompt, self._options)

    async def stop(self) -> None:
        """Stop the prompt, if it runs."""
        if self._session is not None and self._session.is_executing:
            self._session.abort()

    def get_exit_code(self) -> int:
        """What the process should end with."""
        return self._code


def create_headless_runner(
    session: InteractiveSession, output_format: OutputFormat = "text", *, partial_messages: bool = True
) -> HeadlessRunner:
    """A runner of prompts for this session."""
    options = PrintOptions(output_format=output_format, partial_messages=partial_messages)
    return HeadlessRunner(session, options)


def create_headless_transport(
    prompt: str, output_format: OutputFormat = "text", *, partial_messages: bool = True
) -> HeadlessTransport:
    """A transport for one prompt: attach it to a session, start it, ask it for the exit code."""
    options = PrintOptions(output_format=output_format, partial_messages=partial_messages)
    return HeadlessTransport(prompt, options)
