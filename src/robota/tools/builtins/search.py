"""Grep and Glob: text in files by regular expression, and files whose paths fit a pattern.

`ripgrep` says where it is, or whether to look for it. What the rules of a call deny does not appear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.messages import JsonObject
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, boolean, camel_spellings, integer, string
from robota.tools.search import DEFAULT_LIMIT, DEFAULT_TIMEOUT, FILE_TYPES

if TYPE_CHECKING:
    from robota.tools.search.query import Searcher

GREP_PARAMETERS = arguments_schema(
    {
        "pattern": string("The regular expression to look for, in Rust's syntax: write `\\{` for a brace."),
        "path": string("The file or directory to search in. Default: the working directory."),
        "glob": string("Search only files whose names fit: `*.{ts,tsx}`. With a slash, whose paths do."),
        "type": string("Search only files of this kind: " + ", ".join(FILE_TYPES) + "."),
        "output_mode": string(
            "Paths (default), the matching lines, or how many lines match in each file.",
            enum=["files_with_matches", "content", "count"],
        ),
        "-i": boolean("Ignore case. Default: false."),
        "-n": boolean("Show line numbers (content only). Default: true."),
        "-A": integer("Lines to show after each match (content only).", minimum=0),
        "-B": integer("Lines to show before each match (content only).", minimum=0),
        "-C": integer("Lines to show before and after each match (content only).", minimum=0),
        "multiline": boolean("Let a match span lines; the dot matches a newline too. Default: false."),
        "head_limit": integer(f"How many results to show. Default, and for 0: {DEFAULT_LIMIT}.", minimum=0),
        "offset": integer("How many results to skip first. Default: 0.", minimum=0),
        "include_ignored": boolean("Also search files that git ignores. Default: false."),
    },
    "pattern",
)
GLOB_PARAMETERS = arguments_schema(
    {
        "pattern": string("What paths must look like, seen from the searched directory, such as `**/*.py`."),
        "path": string("The directory to search in. Default: the working directory."),
        "limit": integer(f"How many files to list. Default: {DEFAULT_LIMIT}.", minimum=1),
        "include_ignored": boolean("Also list files that git ignores. Default: false."),
    },
    "pattern",
)


def grep_tool(*, ripgrep: str | bool = True, timeout: float = DEFAULT_TIMEOUT) -> FunctionTool:
    """The `Grep` tool: paths, counts or lines."""

    async def grep(ctx: ToolContext, arguments: JsonObject) -> ToolResult:
        from robota.tools.search.query import search_text  # noqa: PLC0415 - loaded with the first call

        return await search_text(_make_searcher(ctx, ripgrep, timeout), arguments, ctx.cwd)

    context = dict.fromkeys(("contextLines", "context_lines", "context"), "-C")
    aliases = camel_spellings(GREP_PARAMETERS) | context
    return FunctionTool(
        "Grep", text_beside(__file__, 0), GREP_PARAMETERS, grep, tool_class="inspect", aliases=aliases
    )


def glob_tool(*, ripgrep: str | bool = True, timeout: float = DEFAULT_TIMEOUT) -> FunctionTool:
    """The `Glob` tool: the newest files first."""

    async def glob(
        ctx: ToolContext,
        pattern: str,
        path: str = "",
        limit: float = DEFAULT_LIMIT,
        include_ignored: bool = False,
    ) -> ToolResult:
        """Numbers may arrive as `3.0`, which JSON counts as an integer."""
        from robota.tools.files.path import locate  # noqa: PLC0415 - loaded with the first call
        from robota.tools.search.query import search_files  # noqa: PLC0415

        searcher, directory = _make_searcher(ctx, ripgrep, timeout), locate(path or ".", ctx.cwd)
        return await search_files(
            searcher, pattern, directory, limit=int(limit), include_ignored=include_ignored
        )

    aliases = camel_spellings(GLOB_PARAMETERS)
    return FunctionTool(
        "Glob", text_beside(__file__, 1), GLOB_PARAMETERS, glob, tool_class="inspect", aliases=aliases
    )


def _make_searcher(ctx: ToolContext, ripgrep: str | bool, timeout: float) -> Searcher:
    from robota.tools.search.query import Searcher  # noqa: PLC0415 - see above

    denied = None if ctx.rules is None else ctx.rules.path_filter(ctx.cwd)
    return Searcher(ripgrep=ripgrep, denied=denied, timeout=timeout)
