"""BashOutput and KillBash: what a background command printed since it was last asked, and its end.

KillBash reaches only what this agent started, which was approved then; so it counts as inspecting and needs
no new approval.
"""

from __future__ import annotations

import sys

from robota.core.messages import JsonObject
from robota.core.plain_text import shorten
from robota.core.process import run_process
from robota.core.tool import ToolContext, ToolResult
from robota.tools.builtins.bash import MAX_OUTPUT_CHARACTERS, describe_end, exit_code
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, string
from robota.tools.processes import BackgroundProcess, ProcessTable

OUTPUT_PARAMETERS = arguments_schema(
    {
        "bash_id": string("The id of the background command."),
        "filter": string("A regular expression; return only lines that have it."),
    },
    "bash_id",
)
KILL_PARAMETERS = arguments_schema({"shell_id": string("The id of the background command.")}, "shell_id")
FILTER_SECONDS = 10.0
_FILTER = """
import re, sys
try:
    search = re.compile(sys.argv[1]).search
except (re.error, RecursionError, OverflowError) as error:
    sys.exit(f"{error}")
sys.stdin.reconfigure(encoding="utf-8", newline="\\n")
sys.stdout.reconfigure(encoding="utf-8", newline="\\n")
sys.stdout.writelines(line for line in sys.stdin if search(line.rstrip("\\n")))
"""


def bash_output_tool(table: ProcessTable) -> FunctionTool:
    """The `BashOutput` tool: what a background command has printed since."""

    async def read_output(ctx: ToolContext, bash_id: str, filter: str | None = None) -> ToolResult:
        process = table.find(bash_id)
        if process is None:
            return unknown_shell(table, bash_id)
        was_running = process.is_running
        text, position = process.read_new(whole_lines=filter is not None)
        if filter is not None:
            filtered = await _keep_lines(text, filter)
            if isinstance(filtered, ToolResult):
                return filtered
            text = filtered
        process.position = position
        return _report(process, text, was_running=was_running)

    return FunctionTool(
        "BashOutput",
        text_beside(__file__, 0),
        OUTPUT_PARAMETERS,
        read_output,
        tool_class="inspect",
        aliases={"shell_id": "bash_id", "bashId": "bash_id", "shellId": "bash_id"},
    )


def unknown_shell(table: ProcessTable, identity: str) -> ToolResult:
    known = ", ".join(process.id for process in table.processes) or "none was started"
    return ToolResult.failure(
        f"There is no background command {identity!r}. Known: {known}.", "unknown_shell"
    )


def describe_state(process: BackgroundProcess) -> list[str]:
    """How a background command is doing, for the model."""
    if process.is_running:
        return ["[still running]"]
    result = process.result
    if result is None:
        return ["[stopped]"]
    if result.error is not None:
        return [f"[failed: {result.error}]"]
    if result.timed_out:
        return ["[timed out and ended]"]
    return describe_end(result) or ["[exit code 0]"]


def _report(process: BackgroundProcess, text: str, *, was_running: bool) -> ToolResult:
    body = shorten(text, MAX_OUTPUT_CHARACTERS).removesuffix("\n") or "[no new output]"
    # It may have ended while lines were filtered; then its last output is still to be read.
    state = ["[still running]"] if was_running else describe_state(process)
    metadata: JsonObject = {"shellId": process.id, "status": "running" if was_running else process.status}
    if not was_running and process.result is not None and process.result.error is None:
        metadata["exitCode"] = exit_code(process.result)
    return ToolResult(content="\n".join([body, *state]), metadata=metadata)


async def _keep_lines(text: str, pattern: str) -> str | ToolResult:
    """The lines with the pattern; in a process of its own, because some patterns take for ever."""
    result = await run_process(
        [sys.executable, "-I", "-S", "-c", _FILTER, pattern],
        stdin=text.encode(),
        timeout=FILTER_SECONDS,
    )
    if result.timed_out:
        return ToolResult.failure("The filter takes too long; use a simpler regular expression.", "filter")
    if result.exit_code != 0:
        reason = result.error or result.stderr.strip().rpartition("\n")[2]
        return ToolResult.failure(f"Invalid regex pattern: {pattern} ({reason})", "filter")
    return result.stdout


def kill_bash_tool(table: ProcessTable) -> FunctionTool:
    """The `KillBash` tool: ends a background command."""

    async def kill(ctx: ToolContext, shell_id: str) -> ToolResult:
        process = table.find(shell_id)
        if process is None:
            return unknown_shell(table, shell_id)
        if not process.is_running:
            state = " ".join(describe_state(process))
            return ToolResult(content=f"{process.id} had already ended: {state}")
        await process.stop()
        return ToolResult(content=f"Stopped {process.id}: {process.title}")

    return FunctionTool(
        "KillBash",
        text_beside(__file__, 1),
        KILL_PARAMETERS,
        kill,
        tool_class="inspect",
        aliases={"bash_id": "shell_id", "bashId": "shell_id", "shellId": "shell_id"},
    )
