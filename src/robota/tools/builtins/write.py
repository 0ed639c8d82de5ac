"""The Write tool: a file's whole content, put in place in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.messages import JsonObject
from robota.core.schema import check
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, string

if TYPE_CHECKING:
    from robota.tools.files.directory import SystemCalls
    from robota.tools.files.editor import EditorFiles

PARAMETERS = arguments_schema(
    {
        "file_path": string("The file: an absolute path, or one relative to the working directory."),
        "content": string("The complete new text of the file."),
    },
    "file_path",
    "content",
)


class WriteTool(FunctionTool):
    """The tool, and what an approval shows of a call."""

    __slots__ = ()

    def preview(self, arguments: JsonObject, cwd: str) -> str:
        """A diff of what the call would change; empty for a call that would change nothing or fail."""
        from robota.tools.files.change import preview_write  # noqa: PLC0415 - loaded with the first question

        given = self._respell(arguments)
        return "" if check(given, PARAMETERS) else preview_write(given["file_path"], given["content"], cwd)


def write_tool(*, system: SystemCalls | None = None, editor: EditorFiles | None = None) -> WriteTool:
    """`system` takes the place of the calls to the operating system; an `editor` has texts of its own."""

    async def write(ctx: ToolContext, file_path: str, content: str) -> ToolResult:
        from anyio import to_thread  # noqa: PLC0415 - loaded with the first call

        from robota.tools.files.change import write_file  # noqa: PLC0415

        # Not abandoned on cancellation: no file may change after the user took over again. It is short.
        return await to_thread.run_sync(write_file, ctx, file_path, content, system, editor)

    aliases = {"filePath": "file_path"}
    text = text_beside(__file__)
    return WriteTool("Write", text, PARAMETERS, write, tool_class="modify", aliases=aliases)
