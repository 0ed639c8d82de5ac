"""The Grep tool: text in files by regular expression, as paths, counts or lines."""

from __future__ import annotations

from robota.core.messages import JsonObject
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, boolean, integer, string
from robota.tools.search.arguments import DEFAULT_LIMIT, DEFAULT_TIMEOUT, FILE_TYPES

PARAMETERS = arguments_schema(
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

ALIASES = {
    "outputMode": "output_mode",
    "headLimit": "head_limit",
    "includeIgnored": "include_ignored",
    "contextLines": "-C",
    "context_lines": "-C",
    "context": "-C",
}


def grep_tool(*, ripgrep: str | bool = True, timeout: float = DEFAULT_TIMEOUT) -> FunctionTool:
    """`ripgrep`: where it is, or whether to look for it. What the rules of a call deny does not appear."""

    async def grep(ctx: ToolContext, arguments: JsonObject) -> ToolResult:
        from robota.tools.search.query import Searcher, search_text  # noqa: PLC0415 - loaded with the first call

        denied = None if ctx.rules is None else ctx.rules.path_filter(ctx.cwd)
        searcher = Searcher(ripgrep=ripgrep, denied=denied, timeout=timeout)
        return await search_text(searcher, arguments, ctx.cwd)

    return FunctionTool(
        "Grep", text_beside(__file__), PARAMETERS, grep, tool_class="inspect", aliases=ALIASES
    )
