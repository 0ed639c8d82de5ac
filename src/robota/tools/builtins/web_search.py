"""The WebSearch tool: results of a search service as a JSON list of title, url and snippet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from robota.core.errors import RobotaError
from robota.core.messages import JsonObject
from robota.core.tool import ToolResult
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.json_schema import arguments_schema, integer, string

if TYPE_CHECKING:  # the network modules are loaded with the first search
    from robota.tools.web.search import SearchBackend, SearchHit

DEFAULT_LIMIT = 10
MAX_LIMIT = 50
MAX_TITLE_CHARACTERS = 200
MAX_SNIPPET_CHARACTERS = 1_000

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

    async def search_web(
        query: str,
        limit: float = DEFAULT_LIMIT,
        allowed_domains: list[str] | None = None,
        blocked_domains: list[str] | None = None,
    ) -> ToolResult:
        """Numbers may arrive as `3.0`, which JSON counts as an integer."""
        from robota.http.errors import UrlError  # noqa: PLC0415 - see above
        from robota.tools.web.failure import FetchError  # noqa: PLC0415 - see above
        from robota.tools.web.search import choose_backend  # noqa: PLC0415 - see above

        try:
            allowed, blocked = _read_domains(allowed_domains), _read_domains(blocked_domains)
            service = choose_backend(backend, env)
            count = min(int(limit), MAX_LIMIT)
            hits = await service.search(_refine(query, allowed, blocked), count)
        except FetchError as error:
            return ToolResult.failure(str(error), error.code)
        except (RobotaError, UrlError) as error:
            return ToolResult.failure(str(error))
        kept = [hit for hit in hits if _fits(hit, allowed, blocked)]
        return _report(kept[:count], len(hits) - len(kept), service.name)

    return FunctionTool("WebSearch", text_beside(__file__), PARAMETERS, search_web, tool_class="inspect")


def _read_domains(domains: Sequence[str] | None) -> tuple[str, ...]:
    from robota.http.errors import UrlError  # noqa: PLC0415 - see above
    from robota.http.url import canonical_host  # noqa: PLC0415 - see above
    from robota.tools.web.failure import FetchError  # noqa: PLC0415 - see above

    hosts: list[str] = []
    for domain in domains or ():
        try:
            hosts.append(canonical_host(domain.strip().removeprefix("*.")))
        except UrlError as error:
            raise FetchError(
                "configuration", f"{domain[:80]!r} is no domain; write it like example.org."
            ) from error
    return tuple(hosts)


def _refine(query: str, allowed: Sequence[str], blocked: Sequence[str]) -> str:
    """The query with the operators search services understand, so that a page of results is not wasted."""
    sites = " OR ".join(f"site:{host}" for host in allowed)
    if len(allowed) > 1:
        sites = f"({sites})"
    return " ".join(part for part in (query, sites, *(f"-site:{host}" for host in blocked)) if part)


def _fits(hit: SearchHit, allowed: Sequence[str], blocked: Sequence[str]) -> bool:
    """Whether the result may be shown: a web address, under an allowed domain, under no blocked one."""
    from robota.http.errors import UrlError  # noqa: PLC0415 - see above
    from robota.http.url import parse_url  # noqa: PLC0415 - see above

    try:
        host = parse_url(hit.url).host
    except UrlError:
        return False
    if any(_is_under(host, domain) for domain in blocked):
        return False
    return not allowed or any(_is_under(host, domain) for domain in allowed)


def _is_under(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


def _report(hits: Sequence[SearchHit], left_out: int, service: str) -> ToolResult:
    import json  # noqa: PLC0415 - only a search needs pretty JSON

    entries = [
        {
            "title": _plain(hit.title, MAX_TITLE_CHARACTERS),
            "url": hit.url,
            "snippet": _plain(hit.snippet, MAX_SNIPPET_CHARACTERS),
        }
        for hit in hits
    ]
    note = "" if hits or not left_out else f"\n[{left_out} results of other domains were left out.]"
    return ToolResult(
        content=json.dumps(entries, indent=2, ensure_ascii=False) + note,
        metadata={"backend": service, "results": len(hits)},
    )


def _plain(text: str, limit: int) -> str:
    """Words on one line, without control characters and without our marks."""
    from robota.core.plain_text import strip_controls  # noqa: PLC0415 - see above
    from robota.tools.web.frame import defuse_marks  # noqa: PLC0415 - see above

    words = " ".join(strip_controls(text).split())
    return defuse_marks(words if len(words) <= limit else f"{words[:limit]}…")
