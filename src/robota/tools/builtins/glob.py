"""The Glob tool: files whose paths fit a pattern, newest first."""

from __future__ import annotations

from robota.core.messages import JsonObject
from robota.core.tool import ToolContext, ToolResult
from robota.tools.files.path import locate
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.search.answer import DEFAULT_TIMEOUT, NO_MATCHES, Searcher
from robota.tools.search.child import Stop
from robota.tools.search.command import Search
from robota.tools.search.results import show_text
from robota.tools.search.scope import Denied, ScopeError, Selection, find_place, read_pattern

DEFAULT_LIMIT = 1_000

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "pattern": {
            "type": "string",
            "description": "What paths must look like, seen from the searched directory, such as `**/*.py`.",
        },
        "path": {
            "type": "string",
            "description": "The directory to search in. Default: the working directory.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "description": f"How many files to list. Default: {DEFAULT_LIMIT}.",
        },
        "include_ignored": {
            "type": "boolean",
            "description": "Also list files that git ignores. Default: false.",
        },
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


def glob_tool(
    *, ripgrep: str | bool = True, denied: Denied | None = None, timeout: float = DEFAULT_TIMEOUT
) -> FunctionTool:
    """`ripgrep`: where it is, or whether to look for it. `denied`: absolute paths that must not appear."""
    searcher = Searcher(ripgrep=ripgrep, denied=denied, timeout=timeout)

    async def glob(
        ctx: ToolContext,
        pattern: str,
        path: str = "",
        limit: float = DEFAULT_LIMIT,
        include_ignored: bool = False,
    ) -> ToolResult:
        directory = locate(path or ".", ctx.cwd)
        return await searcher.answer(
            lambda stop: _list_files(
                searcher, stop, pattern, directory, limit=int(limit), include_ignored=include_ignored
            )
        )

    return FunctionTool(
        "Glob",
        text_beside(__file__),
        PARAMETERS,
        glob,
        tool_class="inspect",
        aliases={"includeIgnored": "include_ignored"},
    )


def _list_files(
    searcher: Searcher, stop: Stop, pattern: str, directory: str, *, limit: int, include_ignored: bool
) -> str:
    place = find_place(directory)
    if place.file:
        raise ScopeError(f"Path is not a directory: {directory}", "not_a_directory")
    wanted = read_pattern(pattern, place.directory, include_ignored=include_ignored)
    search = Search(
        report="files",
        start=wanted.start,
        names=wanted.names,
        max_depth=wanted.max_depth,
        include_ignored=include_ignored,
    )
    visible = Selection.of(wanted).visible_in(place, searcher.denied)
    output = searcher.run(search, place.directory, stop, window=limit, visible=visible)
    shown = [show_text(path) for path in output.paths[:limit]] or [NO_MATCHES]
    if len(output.paths) > limit:
        shown.append(f"[Showing {limit} of {len(output.paths)} matches. Use limit parameter to see more.]")
    return "\n".join([*shown, *searcher.notes(output)])
