"""The WebSearch tool: results of a search service as a JSON list of title, url and snippet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from robota.core.messages import JsonObject
from robota.core.tool import ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, integer, string

if TYPE_CHECKING:  # the network modules are loaded with the first search
    from robota.tools.web.search import SearchBackend

DEFAULT_LIMIT = 10
MAX_LIMIT = 50

_DOMAINS: JsonObject = {"type": "array", "items": {"type": "string", "minLength": 1}}
PARAMETERS = arguments_schema(
    {
        "query": string("What to search for.", minLength=1),
        "limit": integer(
            f"How many results to return. Default: {DEFAULT_LIMIT}, at most {MAX_LIMIT}.", minimum=1
        ),
        "allowed_domains": {**_DOMAINS, "description": "Only results of these domains."},
        "blocked_domains": {**_DOMAINS, "description": "No results of these domains."},
    },
    "query",
)


def web_search_tool(
    backend: SearchBackend | str | None = None, *, env: Mapping[str, str] | None = None
) -> FunctionTool:
    """The tool.

    `backend` is a search service or the name of one: brave, tavily, searxng, duckduckgo. Without it the
    environment decides at each call: BRAVE_API_KEY, TAVILY_API_KEY, SEARXNG_URL.
    """

    async def search(
        query: str,
        limit: float = DEFAULT_LIMIT,
        allowed_domains: list[str] | None = None,
        blocked_domains: list[str] | None = None,
    ) -> ToolResult:
        """Numbers may arrive as `3.0`, which JSON counts as an integer."""
        from robota.tools.web.search import search_web  # noqa: PLC0415 - see above

        count = min(int(limit), MAX_LIMIT)
        return await search_web(backend, env, query, count, allowed_domains or (), blocked_domains or ())

    return FunctionTool("WebSearch", text_beside(__file__), PARAMETERS, search, tool_class="inspect")
