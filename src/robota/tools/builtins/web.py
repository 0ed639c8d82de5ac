"""WebFetch and WebSearch: one web page as text for a model, and the results of a search service.

What a page says is framed as data with its origin. Whatever goes wrong is a sentence with advice on whether
to try again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from robota.core.given import require_texts
from robota.core.messages import JsonObject
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, boolean, integer, string

if TYPE_CHECKING:  # the network modules are loaded with the first call
    from ssl import SSLContext

    from robota.http.address import Resolve
    from robota.tools.web.search import SearchBackend

TIMEOUT_SECONDS = 30.0
MAX_PAGE_BYTES = 5_000_000
ALLOWED_HEADERS = ("Accept", "Accept-Language")
"""Headers a model may choose: they say what it would like to get, and nothing about who asks."""
DEFAULT_LIMIT = 10
MAX_LIMIT = 50

FETCH_PARAMETERS = arguments_schema(
    {
        "url": string("The address, http or https.", minLength=1),
        "prompt": string("What you are looking for on the page."),
        "main_text": boolean("Only the main text, without menus and side columns. Default: false."),
        "headers": {
            "type": "object",
            "additionalProperties": {"type": "string", "maxLength": 200},
            "description": f"Request headers, {' or '.join(ALLOWED_HEADERS)} only.",
        },
    },
    "url",
)
_DOMAINS: JsonObject = {"type": "array", "items": {"type": "string", "minLength": 1}}
SEARCH_PARAMETERS = arguments_schema(
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


def web_fetch_tool(
    *,
    allowed_hosts: Sequence[str] = (),
    timeout: float = TIMEOUT_SECONDS,
    max_bytes: int = MAX_PAGE_BYTES,
    resolve: Resolve | None = None,
    tls: SSLContext | None = None,
) -> FunctionTool:
    """The tool.

    `allowed_hosts` (names, `*.example.org`) may be contacted whatever their address. The rules of a call are
    asked before a redirect on the same host is followed. `resolve` and `tls` replace the system's.
    """
    hosts = require_texts("allowed_hosts", allowed_hosts)

    async def fetch_page(
        ctx: ToolContext,
        url: str,
        prompt: str = "",
        main_text: bool = False,
        headers: dict[str, str] | None = None,
    ) -> ToolResult:
        from robota.http.address import AddressPolicy  # noqa: PLC0415 - see above
        from robota.tools.web.fetch import Fetcher  # noqa: PLC0415 - see above
        from robota.tools.web.page import answer_with_page  # noqa: PLC0415 - see above

        if wrong := _find_wrong_header(headers or {}):
            return ToolResult.failure(wrong, "invalid_arguments")
        rules = ctx.rules
        fetcher = Fetcher(
            policy=AddressPolicy(hosts),
            may_follow=None if rules is None else lambda target: rules.allows_url(target, ctx.cwd),
            timeout=timeout,
            max_bytes=max_bytes,
            resolve=resolve,
            tls=tls,
        )
        named = {name.title(): text for name, text in (headers or {}).items()}
        return await answer_with_page(fetcher, url, named, main_text=main_text)

    return FunctionTool(
        "WebFetch", text_beside(__file__, 0), FETCH_PARAMETERS, fetch_page, tool_class="inspect"
    )


def _find_wrong_header(headers: Mapping[str, str]) -> str | None:
    for name, value in headers.items():
        if name.title() not in ALLOWED_HEADERS:
            return f"The header {name[:40]!r} cannot be set; only {' and '.join(ALLOWED_HEADERS)} can."
        if not (value.isascii() and value.isprintable()):
            return f"The value of the header {name!r} must be printable ASCII."
    return None


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

    return FunctionTool(
        "WebSearch", text_beside(__file__, 1), SEARCH_PARAMETERS, search, tool_class="inspect"
    )
