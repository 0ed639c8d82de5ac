"""The Edit tool: an exact piece of text replaced in a file, everything around it kept byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.messages import JsonObject
from robota.core.schema import check
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside

if TYPE_CHECKING:
    from robota.tools.files.directory import SystemCalls

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "file_path": {
            "type": "string",
            "description": "The file: an absolute path, or one relative to the working directory.",
        },
        "old_string": {"type": "string", "description": "The exact text to replace."},
        "new_string": {"type": "string", "description": "The text to put in its place."},
        "replace_all": {"type": "boolean", "description": "Replace every match. Default: false."},
        "start_line": {
            "type": "integer",
            "minimum": 1,
            "description": "Of several matches, take the first in this line or behind it.",
        },
    },
    "required": ["file_path", "old_string", "new_string"],
    "additionalProperties": False,
}
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
        from robota.tools.files.preview import preview_edit  # noqa: PLC0415 - loaded with the first question

        given = self._respell(arguments)
        return "" if check(given, PARAMETERS) else preview_edit(given, cwd)


def edit_tool(*, system: SystemCalls | None = None) -> EditTool:
    """`system` takes the place of the calls to the operating system."""

    async def edit(
        ctx: ToolContext,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
        start_line: float | None = None,
    ) -> ToolResult:
        from anyio import to_thread  # noqa: PLC0415 - loaded with the first call

        from robota.tools.files.editing import edit_file  # noqa: PLC0415
        from robota.tools.files.replacement import Edit  # noqa: PLC0415

        line = None if start_line is None else int(start_line)
        change = Edit(old=old_string, new=new_string, replace_all=replace_all, start_line=line)
        # Not abandoned on cancellation: no file may change after the user took over again. It is short.
        return await to_thread.run_sync(edit_file, ctx, file_path, change, system)

    text = text_beside(__file__)
    return EditTool("Edit", text, PARAMETERS, edit, tool_class="modify", aliases=ALIASES)
