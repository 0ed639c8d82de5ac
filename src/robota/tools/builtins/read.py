"""The Read tool: a text file as numbered lines, an image or PDF attached, a notebook cell by cell.

The hash of a file that was read whole is kept in `context.files` under its real path, so that a later change
by somebody else is noticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, integer, string

if TYPE_CHECKING:
    from robota.tools.files.editor import EditorFiles

PARAMETERS = arguments_schema(
    {
        "file_path": string("The file: an absolute path, or one relative to the working directory."),
        "offset": integer("The first line to return, counted from 1. Default: 1."),
        "limit": integer("How many lines to return. Default: 2000.", minimum=1),
    },
    "file_path",
)


def read_tool(*, editor: EditorFiles | None = None) -> FunctionTool:
    """The `Read` tool: files, images, PDFs and notebooks; texts as the `editor` has them."""

    async def read_file(
        ctx: ToolContext, file_path: str, offset: float = 1, limit: float | None = None
    ) -> ToolResult:
        """Numbers may arrive as `3.0`, which JSON counts as an integer."""
        from anyio import to_thread  # noqa: PLC0415 - loaded with the first call

        from robota.tools.files.reading import read  # noqa: PLC0415

        first, count = max(1, int(offset)), None if limit is None else int(limit)
        return await to_thread.run_sync(read, ctx, file_path, first, count, editor, abandon_on_cancel=True)

    return FunctionTool(
        "Read",
        text_beside(__file__),
        PARAMETERS,
        read_file,
        tool_class="inspect",
        aliases={"filePath": "file_path"},
    )
