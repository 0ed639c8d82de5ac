"""The Bash tool: one command line in a fresh bash, with limits on time and output.

It runs the very string it was given, in the shell whose grammar the permission rules parse. A command that
fails is still an answer: only a command that could not run, or did not end in time, makes the call fail.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from robota.core.errors import ToolExecutionError
from robota.core.given import require_texts
from robota.core.messages import Json
from robota.core.plain_text import looks_binary, shorten, to_plain_text
from robota.core.process import ProcessResult, clean_environment
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, boolean, string
from robota.tools.processes import Command, ProcessTable

if TYPE_CHECKING:
    from robota.tools.sandbox.sandbox import Confinement, Sandbox, SandboxMode


class Terminal(Protocol):
    """Runs commands in sight of a user; they were judged, saved for undo and confined before."""

    async def run(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float, call_id: str
    ) -> ProcessResult | None:
        """How the command ended; `None` if it was not begun, so that it runs here. Cancelling ends it."""
        ...


DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
MAX_OUTPUT_CHARACTERS = 30_000
_ERROR_ROOM = 64
"""For the sentence about a timeout: the whole result fits, so nobody cuts it again."""
NO_OUTPUT = "(no output)"
PROGRESS_LINES = 100
"""Lines shown one by one while a command runs; after that only one in ever more."""
PROGRESS_CHARACTERS = 200

PARAMETERS = arguments_schema(
    {
        "command": string("The command line to run.", minLength=1),
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": f"Milliseconds. Default: {DEFAULT_TIMEOUT_MS}, at most {MAX_TIMEOUT_MS}.",
        },
        "working_directory": string("Where to run it, if not in the session's working directory."),
        "description": string("What it does, in five to ten words."),
    },
    "command",
)
BACKGROUND = boolean(
    "For servers, watchers and long builds: start the command and return at once with a shell id. It "
    "has no time limit unless `timeout` is given, and ends with the session. BashOutput reads what it "
    "prints, KillBash ends it."
)
LEAVE = "dangerouslyDisableSandbox"
"""The argument by which a call asks to run outside the sandbox. Whoever judges calls asks a person then."""
LEAVING = boolean(
    "Run this command outside the sandbox. The user is asked first. Only for a command that needs what the "
    "sandbox refuses, such as writing elsewhere or talking to a daemon; `[sandbox: refused: …]` tells."
)
_GRAMMAR_SWITCHES = ("SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT")
"""Variables by which bash would read a command differently from how it was judged."""


class BashTool(FunctionTool):
    """The tool, and what a permission layer needs to know of it."""

    __slots__ = ("auto_allow_bash_if_sandboxed", "box")

    box: list[Sandbox | None]
    """What the sandbox is in, shared with the function that runs commands: it must not hold the tool, or both
    would outlive their use, and with them what a sandbox puts into the workspace."""
    auto_allow_bash_if_sandboxed: bool
    """The user's wish that commands need no approval where `sandbox.holds_protected()`."""

    @property
    def sandbox(self) -> Sandbox | None:
        """May be replaced: the next command runs in the new one."""
        return self.box[0]

    @sandbox.setter
    def sandbox(self, sandbox: Sandbox | None) -> None:
        self.box[0] = sandbox


def bash_tool(
    *,
    keep_variables: Collection[str] = (),
    variables: Callable[[], Mapping[str, str]] | None = None,
    table: ProcessTable | None = None,
    sandbox: SandboxMode | Sandbox = "off",
    auto_allow_bash_if_sandboxed: bool = False,
    terminal: Terminal | None = None,
) -> BashTool:
    """The tool; `keep_variables` names credentials of the environment that commands may have, and `variables`
    gives more of them, as they are when a command starts. With a `table` commands count against its limit and
    may run in the background while it is open; others run in the `terminal`, if there is one. A sandbox with
    options of its own is made with `Sandbox(…)`.
    """
    keep_variables = require_texts("keep_variables", keep_variables)
    processes = ProcessTable() if table is None else table
    first_box = _make_sandbox(sandbox)
    boxes = [first_box]

    async def run_command(
        ctx: ToolContext,
        command: str,
        *,
        timeout: float | None = None,
        working_directory: str | None = None,
        description: str = "",
        run_in_background: bool = False,
        dangerouslyDisableSandbox: bool = False,  # noqa: N803 - the name that models know
    ) -> ToolResult:
        here = ctx.cwd or os.getcwd()
        cwd = os.path.join(here, working_directory) if working_directory else here
        if (refusal := _check_directory(cwd)) is not None:
            return refusal
        box = boxes[0]
        confined = None if dangerouslyDisableSandbox and box is not None and box.mode == "auto" else box
        more = None if variables is None else variables()
        shell = _Shell(processes, confined, here, _environment(keep_variables, more), terminal)
        milliseconds = min(timeout or DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS)
        try:
            if run_in_background:
                return await shell.start(command, cwd, None if timeout is None else milliseconds)
            return await shell.run(command, cwd, milliseconds, ctx)
        except ToolExecutionError as error:
            return ToolResult.failure(str(error), "not_started")

    properties = PARAMETERS["properties"] | ({} if table is None else {"run_in_background": BACKGROUND})
    if first_box is not None and first_box.mode == "auto":
        properties |= {LEAVE: LEAVING}
    tool = BashTool(
        "Bash",
        text_beside(__file__),
        PARAMETERS | {"properties": properties},
        run_command,
        tool_class="execute",
        aliases={"workingDirectory": "working_directory", "runInBackground": "run_in_background"},
    )
    tool.box = boxes
    tool.auto_allow_bash_if_sandboxed = auto_allow_bash_if_sandboxed
    return tool


def _make_sandbox(sandbox: SandboxMode | Sandbox) -> Sandbox | None:
    if sandbox == "off":
        return None
    from robota.tools.sandbox.sandbox import Sandbox  # noqa: PLC0415 - loaded where one is wanted

    return Sandbox(sandbox) if isinstance(sandbox, str) else sandbox


def _environment(keep: Collection[str], more: Mapping[str, str] | None) -> dict[str, str]:
    variables = clean_environment(keep=keep, extra=more)
    return {name: value for name, value in variables.items() if name not in _GRAMMAR_SWITCHES}


def _check_directory(path: str) -> ToolResult | None:
    """Done for every call: the directory may be gone since the last one."""
    if os.path.isdir(path):
        return None
    state = "is not a directory" if os.path.exists(path) else "does not exist"
    return ToolResult.failure(
        f"The command was not run: its working directory {path} {state}. Pass another `working_directory`.",
        "not_started",
    )


class _Shell(NamedTuple):
    """One command line on its way through the sandbox into the table."""

    table: ProcessTable
    sandbox: Sandbox | None
    workspace: str
    env: dict[str, str]
    terminal: Terminal | None

    async def run(self, command: str, cwd: str, milliseconds: float, ctx: ToolContext) -> ToolResult:
        seconds = milliseconds / 1000
        prepared, confinement = await self.prepare(command, cwd, seconds)
        lines = {1: _LineProgress(ctx.progress), 2: _LineProgress(ctx.progress)}
        put_right: Sequence[str] = ()
        try:
            shown = None
            if self.terminal is not None:
                argv, env = prepared.argv, prepared.env or {}
                shown = await self.terminal.run(argv, cwd=cwd, env=env, timeout=seconds, call_id=ctx.call_id)
            result = shown or await self.table.run(
                prepared, lambda descriptor, data: lines[descriptor].add(data)
            )
        finally:
            if confinement is not None:
                put_right = confinement.release()
        return _report(result, milliseconds, confinement, put_right)

    async def start(self, command: str, cwd: str, milliseconds: float | None) -> ToolResult:
        timeout = None if milliseconds is None else milliseconds / 1000
        prepared, confinement = await self.prepare(command, cwd, timeout, lasting=True)
        process = await self.table.start(
            prepared,
            title=command,
            kind="bash",
            on_end=None if confinement is None else confinement.release,
        )
        if process.result is not None and process.result.error is not None:
            return ToolResult.failure(_explain(process.result.error), "not_started")
        return ToolResult(
            content=f"Running in the background as {process.id}. "
            f'Read its output with BashOutput(bash_id="{process.id}").',
            metadata={"shellId": process.id, **_sandbox_facts(confinement)},
        )

    async def prepare(
        self, command: str, cwd: str, timeout: float | None, *, lasting: bool = False
    ) -> tuple[Command, Confinement | None]:
        argv = ["bash", "-c", "--", command]
        if self.sandbox is None:
            return Command(argv=argv, cwd=cwd, env=self.env, timeout=timeout), None
        confined = await self.sandbox.confine(argv, cwd, self.env, workspace=self.workspace, lasting=lasting)
        prepared = Command(
            argv=confined.argv, cwd=cwd, env=confined.env, timeout=timeout, start=confined.start
        )
        return prepared, confined


class _LineProgress(Struct, eq=False):
    """Shows lines while a command prints them: the first hundred each, of more ever fewer."""

    _show: Callable[[str], None]
    _partial: bytes = b""
    _count: int = 0
    _next: int = 1

    def add(self, data: bytes) -> None:
        data = self._partial + data
        start, end = 0, data.rfind(b"\n")
        while start <= end and self._count < PROGRESS_LINES:
            line_end = data.index(b"\n", start)
            self._end_line(data[start:line_end])
            start = line_end + 1
        if start <= end:  # of many lines that come at once the last one tells as much, at no cost per line
            self._count += data.count(b"\n", start, end)
            self._end_line(data[max(data.rfind(b"\n", start, end) + 1, start) : end])
        self._partial = data[max(end + 1, len(data) - 4 * PROGRESS_CHARACTERS) :]

    def _end_line(self, line: bytes) -> None:
        self._count += 1
        if self._count < self._next or looks_binary(line):
            return
        self._next = self._count + max(self._count // PROGRESS_LINES, 1)
        text = to_plain_text(line[: 4 * PROGRESS_CHARACTERS]).strip()
        if text:
            self._show(text[:PROGRESS_CHARACTERS])


def _report(
    result: ProcessResult, milliseconds: float, confinement: Confinement | None, put_right: Sequence[str]
) -> ToolResult:
    if result.error is not None:
        return ToolResult.failure(_explain(result.error), "not_started")
    code = exit_code(result)
    remarks = [*_remarks(result, confinement), *(f"[sandbox: {sentence}]" for sentence in put_right)]
    remarks += _describe_sandbox(result, code, confinement)
    room = MAX_OUTPUT_CHARACTERS - _ERROR_ROOM - sum(len(remark) + 1 for remark in remarks)
    content = "\n".join((_output(result, max(room, MAX_OUTPUT_CHARACTERS // 2)), *remarks))
    facts = _sandbox_facts(confinement)
    interrupted = result.timed_out or result.signal is not None
    response = {
        "stdout": result.stdout,
        "stderr": result.stderr,
        "interrupted": interrupted,
        "isImage": False,
    }
    if result.timed_out:
        return ToolResult(
            ok=False,
            response=response,
            content=content,
            error=f"Command timed out after {milliseconds:.0f}ms",
            error_code="timeout",
            metadata={"timedOut": True, **facts},
        )
    return ToolResult(content=content, metadata={"exitCode": code, **facts}, response=response)


def _explain(error: str) -> str:
    import shutil  # noqa: PLC0415 - a command that cannot start is rare

    if shutil.which("bash") is None:
        return "bash was not found on the PATH; install it to run commands."
    return f"{error}."


def exit_code(result: ProcessResult) -> int:
    """The code as a shell would give it: 128 and the signal's number for a program ended by one."""
    if result.signal is not None and result.signal in signal.Signals.__members__:
        return 128 + signal.Signals[result.signal]
    return -1 if result.exit_code is None else result.exit_code


def _output(result: ProcessResult, limit: int) -> str:
    """Both streams, each with its beginning and end; what one does not need of the room is the other's."""
    if not result.stderr:
        return shorten(result.stdout, limit, dropped=result.stdout_dropped).removesuffix("\n") or NO_OUTPUT
    printed = result.stdout.rstrip()
    room = limit - len("\nstderr:\n")
    errors = shorten(result.stderr, max(room // 2, room - len(printed)), dropped=result.stderr_dropped)
    before = f"{shorten(printed, room - len(errors), dropped=result.stdout_dropped)}\n" if printed else ""
    return f"{before}stderr:\n{errors}".removesuffix("\n")


def _remarks(result: ProcessResult, confinement: Confinement | None = None) -> list[str]:
    """What the output alone does not tell."""
    ended, survivors = result.ended, result.survivors
    if confinement is not None and confinement.backend == "bubblewrap":
        # The sandbox's own processes are no news, and nothing outlives it.
        ended = tuple(process for process in (*ended, *survivors) if confinement.argv[0] not in process)
        survivors = ()
    remarks = [f"[ended with the command: {process}]" for process in ended]
    remarks += [f"[still running: {process}]" for process in survivors]
    return remarks + describe_end(result)


def describe_end(result: ProcessResult) -> list[str]:
    """A signal and a code other than 0, for the model."""
    if result.timed_out:
        return []
    code = exit_code(result)
    remarks = [f"[ended by {result.signal}]"] if result.signal is not None else []
    return [*remarks, f"[exit code {code}]"] if code else remarks


def _describe_sandbox(result: ProcessResult, code: int, confinement: Confinement | None) -> list[str]:
    """The model should know what was refused, and after a failure what may have been."""
    if confinement is None or confinement.policy is None or confinement.backend is None:
        return []
    from robota.tools.sandbox.refusal import describe, find_refusals  # noqa: PLC0415 - where one is used

    refusals = find_refusals(result, confinement.backend, confinement.policy)
    remarks = [f"[sandbox: refused: {line}]" for line in refusals]
    if refusals or code:
        facts = describe(confinement.backend, confinement.policy)
        hint = f"; a call with `{LEAVE}` asks the user to run it outside" if confinement.may_leave else ""
        remarks.append(f"[sandbox: {facts}{hint if refusals else ''}]")
    return remarks


def _sandbox_facts(confinement: Confinement | None) -> dict[str, Json]:
    if confinement is None:
        return {}
    facts: dict[str, Json] = {"sandbox": confinement.backend or "off"}
    return facts if confinement.note is None else facts | {"sandboxNote": confinement.note}
