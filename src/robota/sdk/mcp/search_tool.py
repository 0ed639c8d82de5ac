"""`ToolSearch`: finds tools of servers by words, so that their schemas need not be in every request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from robota._lazy_pattern import lazy_pattern
from robota.core.messages import JsonObject
from robota.core.tool import ToolContext, ToolResult
from robota.sdk.mcp.deferral import TOOL_SEARCH
from robota.tools.mcp.tool import McpTool

MAX_RESULTS = 20
USUAL_RESULTS = 5
SHOWN = 200
"""Characters of each description in an answer."""
LISTED = 4000
"""Characters of the servers' names in the tool's own description."""
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "description": "Words about what is to be done, such as 'create issue'; or select: and the exact "
            "names of tools with commas between them.",
        },
        "max_results": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS},
    },
    "required": ["query"],
}
_WORDS = lazy_pattern(r"[A-Za-z0-9]+|[^\W\d_]+")


class ToolSearchTool:
    """The tool. `find` gives the tools that fit a question and makes them callable, with a remark."""

    name = TOOL_SEARCH
    tool_class = "inspect"
    parameters = PARAMETERS

    def __init__(
        self,
        servers: Callable[[], Iterable[str]],
        find: Callable[[str, int], Awaitable[tuple[list[McpTool], str]]],
    ) -> None:
        self._servers = servers
        self._find = find

    @property
    def description(self) -> str:
        names = ", ".join(self._servers())
        names = names if len(names) <= LISTED else names[:LISTED] + "…"
        return (
            "Finds tools of the connected MCP servers and makes them callable from the next step on. Their "
            f"tools are not listed here until they are found. Servers: {names}."
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        limit = arguments.get("max_results") or USUAL_RESULTS
        found, remark = await self._find(str(arguments["query"]), int(limit))
        lines = [f"- {tool.name}: {shorten_line(tool.description)}" for tool in found]
        head = "These tools can be called now:" if found else "No tool fits these words."
        return ToolResult(
            content="\n".join([head, *lines, *([remark] if remark else [])]),
            metadata={"tools": [tool.name for tool in found]},
        )


def choose(tools: Sequence[McpTool], query: str, limit: int) -> list[McpTool]:
    """The tools that fit best, the best first."""
    if query.startswith("select:"):
        wanted = [name.strip() for name in query.removeprefix("select:").split(",")]
        return [tool for tool in tools if tool.name in wanted or tool.offered.name in wanted][:limit]
    words = {word.lower() for word in _WORDS.findall(query)}
    scored = [(rate(tool, words), tool) for tool in tools]
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    return [tool for _, tool in best[:limit]]


def rate(tool: McpTool, words: set[str]) -> int:
    """How well a tool fits: its own name counts most, then its server's, then what is said about it."""
    name = {word.lower() for word in _WORDS.findall(tool.offered.name)}
    server = {word.lower() for word in _WORDS.findall(tool.connection.definition.name)}
    about = tool.description.lower()
    score = 0
    for word in words:
        score += 6 if word in name else 3 if any(each.startswith(word) for each in name) else 0
        score += 3 if word in server else 0
        score += 1 if word in about else 0
    return score


def shorten_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
