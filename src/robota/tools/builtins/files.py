"""Read, Write and Edit: a file shown, its whole content put in place, or an exact piece of its text replaced.

The hash of a file that was read whole is kept in `context.files` under its real path, so that a later change
by somebody else is noticed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.messages import JsonObject
from robota.core.schema import check
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, boolean, camel_spellings, integer, string

if TYPE_CHECKING:
    from robota.tools.files.change import EditorFiles
    from robota.tools.files.directory import SystemCalls

_PATH = string("The file: an absolute path, or one relative to the working directory.")
READ_PARAMETERS = arguments_schema(
    {
        "file_path": _PATH,
        "offset": integer("The first line to return, counted from 1. Default: 1."),
        "limit": integer("How many lines to return. Default: 2000.", minimum=1),
    },
    "file_path",
)
WRITE_PARAMETERS = arguments_schema(
    {"file_path": _PATH, "content": string("The complete new text of the file.")}, "file_path", "content"
)
EDIT_PARAMETERS = arguments_schema(
    {
        "file_path": _PATH,
        "old_string": string("The exact text to replace."),
        "new_string": string("The text to put in its place."),
        "replace_all": boolean("Replace every match. Default: false."),
        "start_line": integer("Of several matches, take the first in this line or behind it.", minimum=1),
    },
    "file_path",
    "old_string",
    "new_string",
)


class ChangingTool(FunctionTool):
    """A tool that changes a file, and what an approval shows of a call."""

    __slots__ = ()

    def preview(self, arguments: JsonObject, cwd: str) -> str:
        """A diff of what the call would change; empty for a call that would change nothing or fail."""
        from robota.tools.files.change import (  # noqa: PLC0415 - loaded with the first question
            preview_edit,
            preview_write,
        )

        given = self._respell(arguments)
        preview = preview_write if self.parameters is WRITE_PARAMETERS else preview_edit
        return "" if check(given, self.parameters) else preview(given, cwd)


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
        text_beside(__file__, 0),
        READ_PARAMETERS,
        read_file,
        tool_class="inspect",
        aliases=camel_spellings(READ_PARAMETERS),
    )


def write_tool(*, system: SystemCalls | None = None, editor: EditorFiles | None = None) -> ChangingTool:
    """`system` takes the place of the calls to the operating system; an `editor` has texts of its own."""

    async def write(ctx: ToolContext, file_path: str, content: str) -> ToolResult:
        from anyio import to_thread  # noqa: PLC0415 - loaded with the first call

        from robota.tools.files.change import write_file  # noqa: PLC0415

        # Not abandoned on cancellation: no file may change after the user took over again. It is short.
        return await to_thread.run_sync(write_file, ctx, file_path, content, system, editor)

    text, aliases = text_beside(__file__, 1), camel_spellings(WRITE_PARAMETERS)
    return ChangingTool("Write", text, WRITE_PARAMETERS, write, tool_class="modify", aliases=aliases)


def edit_tool(*, system: SystemCalls | None = None, editor: EditorFiles | None = None) -> ChangingTool:
    """Like `write_tool`, for a piece of a file's text; everything around it is kept byte for byte."""

    async def edit(ctx: ToolContext, arguments: JsonObject) -> ToolResult:
        from anyio import to_thread  # noqa: PLC0415 - loaded with the first call

        from robota.tools.files.change import edit_file  # noqa: PLC0415

        return await to_thread.run_sync(edit_file, ctx, arguments, system, editor)  # not abandoned either

    text, aliases = text_beside(__file__, 2), camel_spellings(EDIT_PARAMETERS)
    return ChangingTool("Edit", text, EDIT_PARAMETERS, edit, tool_class="modify", aliases=aliases)
