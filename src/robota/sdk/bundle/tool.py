"""The tools of plugins: a command gets the arguments as JSON on its input, and prints the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

from robota.core.hooks.definition import HookDefinition
from robota.core.hooks.executors import OUTPUT_LIMIT, command_line
from robota.core.jsontext import encode
from robota.core.messages import JsonObject
from robota.core.plain_text import clip
from robota.core.process import ProcessResult, clean_environment, run_process
from robota.core.tool import ToolContext, ToolResult
from robota.sdk.bundle.bundle import ToolDefinition

_SAID = 2_000
"""Characters of what a failed command printed to its error output."""


class BundleTool:
    """Runs like a hook command, with its limits. It is of no class, whatever the plugin claims: it asks."""

    def __init__(self, definition: ToolDefinition, keep_variables: Callable[[], Collection[str]]) -> None:
        """`keep_variables` says which credentials of the environment commands may have."""
        self.definition = definition
        self.name = definition.name
        self.description = definition.description
        self.parameters = definition.input_schema
        self._keep = keep_variables

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        definition = self.definition
        cwd = context.cwd or os.getcwd()
        extra = {"CLAUDE_PROJECT_DIR": cwd, "CLAUDE_SESSION_ID": context.session_id, **definition.env}
        hook = HookDefinition(type="command", command=definition.command, args=definition.args)
        result = await run_process(
            command_line(hook, extra),
            cwd=cwd,
            env=clean_environment(keep=self._keep(), extra=extra),
            stdin=encode(arguments) + b"\n",
            timeout=definition.timeout,
            output_limit=OUTPUT_LIMIT // 2,
        )
        return _read_result(result, definition)


def _read_result(result: ProcessResult, definition: ToolDefinition) -> ToolResult:
    said = clip(result.stderr.strip(), _SAID)
    if result.timed_out:
        return ToolResult.failure(
            f"The command took longer than {definition.timeout:g} s and was ended.", "TIMEOUT"
        )
    if result.error is not None:
        return ToolResult.failure(f"The command could not be started: {result.error}")
    if result.exit_code == 0:
        dropped = f"\n[{result.stdout_dropped:,} bytes left out]" if result.stdout_dropped else ""
        return ToolResult(content=result.stdout.strip("\n") + dropped)
    how = f"was ended by {result.signal}" if result.signal else f"failed with exit code {result.exit_code}"
    return ToolResult(
        ok=False, content=result.stdout.strip("\n"), error=f"The command {how}{f': {said}' if said else '.'}"
    )
