"""The Bash tool: one command line in a fresh bash, with limits on time and output.

It runs the very string it was given, in the shell whose grammar the permission rules parse. A command that
fails is still an answer: only a command that could not run, or did not end in time, makes the call fail.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection

from robota.core.messages import JsonObject
from robota.core.plain_text import shorten
from robota.core.process import ProcessResult, clean_environment, run_process
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
MAX_OUTPUT_CHARACTERS = 30_000

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "description": "The command line to run."},
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": f"Milliseconds. Default: {DEFAULT_TIMEOUT_MS}, at most {MAX_TIMEOUT_MS}.",
        },
        "working_directory": {
            "type": "string",
            "description": "Where to run it, if not in the session's working directory.",
        },
        "description": {"type": "string", "description": "What it does, in five to ten words."},
    },
    "required": ["command"],
    "additionalProperties": False,
}
_GRAMMAR_SWITCHES = ("SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT")
"""Variables by which bash would read a command differently from how it was judged."""


def bash_tool(*, keep_variables: Collection[str] = ()) -> FunctionTool:
    """The tool; `keep_variables` names credentials of the environment that commands may have."""

    async def run_command(
        ctx: ToolContext,
        command: str,
        timeout: float = DEFAULT_TIMEOUT_MS,
        working_directory: str | None = None,
        description: str = "",
    ) -> ToolResult:
        cwd = os.path.join(ctx.cwd or os.getcwd(), working_directory or "")
        milliseconds = min(timeout, MAX_TIMEOUT_MS)
        result = await run_process(
            ["bash", "-c", "--", command],
            cwd=cwd,
            env=_environment(keep_variables),
            timeout=milliseconds / 1000,
        )
        return _report(result, milliseconds)

    return FunctionTool(
        "Bash",
        text_beside(__file__),
        PARAMETERS,
        run_command,
        tool_class="execute",
        aliases={"workingDirectory": "working_directory"},
    )


def _environment(keep: Collection[str]) -> dict[str, str]:
    variables = clean_environment(keep=keep)
    return {name: value for name, value in variables.items() if name not in _GRAMMAR_SWITCHES}


def _report(result: ProcessResult, milliseconds: float) -> ToolResult:
    if result.error is not None:
        return ToolResult.failure(_explain(result.error), "not_started")
    code = _exit_code(result)
    content = "\n".join(part for part in (_output(result), *_remarks(result, code)) if part)
    if result.timed_out:
        return ToolResult(
            ok=False,
            content=content,
            error=f"Command timed out after {milliseconds:.0f}ms",
            error_code="timeout",
            metadata={"timedOut": True},
        )
    return ToolResult(content=content, metadata={"exitCode": code})


def _explain(error: str) -> str:
    import shutil  # noqa: PLC0415 - a command that cannot start is rare

    if shutil.which("bash") is None:
        return "bash was not found on the PATH; install it to run commands."
    return f"{error}."


def _exit_code(result: ProcessResult) -> int:
    """The code as a shell would give it: 128 and the signal's number for a program ended by one."""
    if result.signal is not None and result.signal in signal.Signals.__members__:
        return 128 + signal.Signals[result.signal]
    return -1 if result.exit_code is None else result.exit_code


def _output(result: ProcessResult) -> str:
    text, dropped = result.stdout, result.stdout_dropped + result.stderr_dropped
    if result.stderr:
        text = f"{text.rstrip()}\nstderr:\n{result.stderr}" if text else f"stderr:\n{result.stderr}"
    return shorten(text, MAX_OUTPUT_CHARACTERS, dropped=dropped).removesuffix("\n")


def _remarks(result: ProcessResult, code: int) -> list[str]:
    """What the output alone does not tell."""
    remarks = [f"[ended with the command: {process}]" for process in result.ended]
    remarks += [f"[still running: {process}]" for process in result.survivors]
    if result.signal is not None and not result.timed_out:
        remarks.append(f"[ended by {result.signal}]")
    if code != 0 and not result.timed_out:
        remarks.append(f"[exit code {code}]")
    return remarks
