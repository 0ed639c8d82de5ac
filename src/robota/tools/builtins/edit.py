"""The Edit tool: an exact piece of text replaced in a file, everything around it kept byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.messages import JsonObject
from robota.core.schema import check
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, boolean, integer, string

if TYPE_CHECKING:
    from robota.tools.files.directory import SystemCalls
    from robota.tools.files.editor import EditorFiles

PARAMETERS = arguments_schema(
    {
        "file_path": string("The file: an absolute path, or one relative to the working directory."),
        "old_string": string("The exact text to replace."),
        "new_string": string("The text to put in its place."),
        "replace_all": boolean("Replace every match. Default: false."),
        "start_line": integer("Of several matches, take the first in this line or behind it.", minimum=1),
    },
    "file_path",
    "old_string",
    "new_string",
)
ALIASES = {
    "filePath": "file_path",
    "oldString": "old_string",
    "newString": "new_string",
    "replaceAll": "replace_all",
    "startLine": "start_line",
}


class EditTool(FunctionTool):
    """The tool, and what an approval shows of a call."""

    __slots__ = ()

    def preview(self, arguments: JsonObject, cwd: str) -> str:
        """A diff of what the call would change; empty for a call that would change nothing or fail."""
        from robota.tools.files.change import preview_edit  # noqa: PLC0415 - loaded with the first question

        given = self._respell(arguments)
        return "" if check(given, PARAMETERS) else preview_edit(given, cwd)


def edit_tool(*, system: SystemCalls | None = None, editor: EditorFiles | None = None) -> EditTool:
    """`system` takes the place of the calls to the operating system; an `editor` has texts of its own."""

    async def edit(ctx: ToolContext, arguments: JsonObject) -> ToolResult:
        from anyio import to_thread  # noqa: PLC0415 - loaded with the first call

        from robota.tools.files.change import edit_file  # noqa: PLC0415

        # Not abandoned on cancellation: no file may change after the user took over again. It is short.
        return await to_thread.run_sync(edit_file, ctx, arguments, system, editor)

    text = text_beside(__file__)
    return EditTool("Edit", text, PARAMETERS, edit, tool_class="modify", aliases=ALIASES)
