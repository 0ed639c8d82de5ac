"""The Read tool: a text file as numbered lines, an image or PDF attached, a notebook cell by cell.

The hash of a file that was read whole is kept in `context.files` under its real path, so that a later change
by somebody else is noticed.
"""

from __future__ import annotations

from robota.core.messages import JsonObject
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "file_path": {
            "type": "string",
            "description": "The file: an absolute path, or one relative to the working directory.",
        },
        "offset": {"type": "integer", "description": "The first line to return, counted from 1. Default: 1."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "description": "How many lines to return. Default: 2000.",
        },
    },
    "required": ["file_path"],
    "additionalProperties": False,
}


def read_tool() -> FunctionTool:
    return FunctionTool(
        "Read",
        text_beside(__file__),
        PARAMETERS,
        read_file,
        tool_class="inspect",
        aliases={"filePath": "file_path"},
    )


async def read_file(
    ctx: ToolContext, file_path: str, offset: float = 1, limit: float | None = None
) -> ToolResult:
    """Numbers may arrive as `3.0`, which JSON counts as an integer."""
    from anyio import to_thread  # noqa: PLC0415 - loaded with the first call

    from robota.tools.files.reading import read  # noqa: PLC0415

    first, count = max(1, int(offset)), None if limit is None else int(limit)
    return await to_thread.run_sync(read, ctx, file_path, first, count, abandon_on_cancel=True)
