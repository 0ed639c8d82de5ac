"""The Glob tool: files whose paths fit a pattern, newest first."""

from __future__ import annotations

from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, boolean, integer, string
from robota.tools.search.arguments import DEFAULT_LIMIT, DEFAULT_TIMEOUT

PARAMETERS = arguments_schema(
    {
        "pattern": string("What paths must look like, seen from the searched directory, such as `**/*.py`."),
        "path": string("The directory to search in. Default: the working directory."),
        "limit": integer(f"How many files to list. Default: {DEFAULT_LIMIT}.", minimum=1),
        "include_ignored": boolean("Also list files that git ignores. Default: false."),
    },
    "pattern",
)


def glob_tool(*, ripgrep: str | bool = True, timeout: float = DEFAULT_TIMEOUT) -> FunctionTool:
    """`ripgrep`: where it is, or whether to look for it. What the rules of a call deny does not appear."""

    async def glob(
        ctx: ToolContext,
        pattern: str,
        path: str = "",
        limit: float = DEFAULT_LIMIT,
        include_ignored: bool = False,
    ) -> ToolResult:
        """Numbers may arrive as `3.0`, which JSON counts as an integer."""
        from robota.tools.files.path import locate  # noqa: PLC0415 - loaded with the first call
        from robota.tools.search.query import Searcher, search_files  # noqa: PLC0415

        denied = None if ctx.rules is None else ctx.rules.path_filter(ctx.cwd)
        searcher = Searcher(ripgrep=ripgrep, denied=denied, timeout=timeout)
        directory = locate(path or ".", ctx.cwd)
        return await search_files(
            searcher, pattern, directory, limit=int(limit), include_ignored=include_ignored
        )

    return FunctionTool(
        "Glob",
        text_beside(__file__),
        PARAMETERS,
        glob,
        tool_class="inspect",
        aliases={"includeIgnored": "include_ignored"},
    )
