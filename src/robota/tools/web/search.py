"""Search services behind one small port: Brave, Tavily, SearXNG, and DuckDuckGo for those who ask for it.

A key is sent to its own service only and appears in no error. What goes wrong is a `FetchError`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from urllib.parse import quote_plus, urlencode

from msgspec import Struct

from robota.core.errors import RobotaError
from robota.core.jsontext import decode_leniently, encode, object_of, text_of
from robota.core.messages import Json, JsonObject
from robota.core.plain_text import strip_controls
from robota.core.tool import ToolResult
from robota.http.errors import UrlError
from robota.http.url import Url, canonical_host, parse_url
from robota.tools.web.fetch import FetchError, Reply, bad_status, exchange
from robota.tools.web.scan import strip_tags
from robota.tools.web.text import defuse_marks

TIMEOUT_SECONDS = 15.0
MAX_TITLE_CHARACTERS = 200
MAX_SNIPPET_CHARACTERS = 1_000
MAX_BRAVE_RESULTS = 20
MAX_TAVILY_RESULTS = 20


class SearchHit(Struct, frozen=True):
    title: str
    url: str
    snippet: str = ""


class SearchBackend(Protocol):
    @property
    def name(self) -> str:
        """For messages."""
        ...

    async def search(self, query: str, limit: int) -> list[SearchHit]:
        """At most about `limit` hits, best first; `FetchError` when there is no answer."""
        ...


class BraveBackend:
    name = "Brave"

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str = "https://api.search.brave.com",
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self._key = _check_key(api_key, "BRAVE_API_KEY")
        self._base = base_url
        self._timeout = timeout

    async def search(self, query: str, limit: int) -> list[SearchHit]:
        count = min(limit, MAX_BRAVE_RESULTS)
        url = parse_url(f"{self._base}/res/v1/web/search?q={quote_plus(query)}&count={count}")
        headers = {"Accept": "application/json", "X-Subscription-Token": self._key}
        reply = await exchange("GET", url, headers=headers, timeout=self._timeout)
        found = _read_reply(reply, self.name, "BRAVE_API_KEY").get("web")
        hits = _read_hits(object_of(found).get("results"), "url", "description")
        return [SearchHit(strip_tags(hit.title), hit.url, strip_tags(hit.snippet)) for hit in hits]


class TavilyBackend:
    name = "Tavily"

    def __init__(
        self, api_key: str, *, base_url: str = "https://api.tavily.com", timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._key = _check_key(api_key, "TAVILY_API_KEY")
        self._base = base_url
        self._timeout = timeout

    async def search(self, query: str, limit: int) -> list[SearchHit]:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        body = encode({"query": query, "max_results": min(limit, MAX_TAVILY_RESULTS)})
        url = parse_url(f"{self._base}/search")
        reply = await exchange("POST", url, headers=headers, body=body, timeout=self._timeout)
        return _read_hits(_read_reply(reply, self.name, "TAVILY_API_KEY").get("results"), "url", "content")


class SearXNGBackend:
    name = "SearXNG"

    def __init__(self, base_url: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._base = _check_base(base_url)
        self._timeout = timeout

    async def search(self, query: str, limit: int) -> list[SearchHit]:
        url = parse_url(f"{str(self._base).rstrip('/')}/search?{urlencode({'q': query, 'format': 'json'})}")
        reply = await exchange("GET", url, headers={"Accept": "application/json"}, timeout=self._timeout)
        if reply.status == 403:
            raise FetchError(
                "configuration",
                f"The SearXNG server {self._base.authority} gives no JSON. Its owner can allow it: "
                "add `json` to `search.formats` in settings.yml.",
            )
        return _read_hits(_read_reply(reply, self.name, "SEARXNG_URL").get("results"), "url", "content")


class DuckDuckGoBackend:
    """Reads result pages through the package `ddgs`; no key, no promise that it works tomorrow."""

    name = "DuckDuckGo"

    def __init__(self, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._timeout = timeout

    async def search(self, query: str, limit: int) -> list[SearchHit]:
        import anyio  # noqa: PLC0415 - the modules of the network are loaded on use

        try:
            with anyio.fail_after(self._timeout):
                found = await anyio.to_thread.run_sync(self._ask, query, limit, abandon_on_cancel=True)
        except TimeoutError as error:
            raise FetchError("timeout", "DuckDuckGo did not answer in time. Try again later.") from error
        return _read_hits(found, "href", "body")

    def _ask(self, query: str, limit: int) -> Json:
        from importlib import import_module  # noqa: PLC0415 - an extra, loaded on use

        try:
            package = import_module("ddgs")
        except ImportError as error:
            raise FetchError(
                "configuration",
                "Searching with DuckDuckGo needs the package ddgs: pip install 'robota[web]'.",
            ) from error
        try:
            client = package.DDGS(timeout=int(self._timeout))
            return client.text(query, max_results=limit, backend="duckduckgo")
        except Exception as error:  # foreign code that reads foreign pages
            if "no results" in str(error).lower():
                return []
            raise FetchError(
                "network", "DuckDuckGo gave no answer. Try again later, or set up another search service."
            ) from error


async def search_web(
    backend: SearchBackend | str | None,
    env: Mapping[str, str] | None,
    query: str,
    count: int,
    allowed_domains: Sequence[str],
    blocked_domains: Sequence[str],
) -> ToolResult:
    """The results as JSON: at most `count`, of allowed domains if there are any, of no blocked ones."""
    try:
        allowed, blocked = _read_domains(allowed_domains), _read_domains(blocked_domains)
        service = choose_backend(backend, env)
        hits = await service.search(_refine(query, allowed, blocked), count)
    except FetchError as error:
        return ToolResult.failure(str(error), error.code)
    except (RobotaError, UrlError) as error:
        return ToolResult.failure(str(error))
    kept = [hit for hit in hits if _fits(hit, allowed, blocked)]
    return _report(kept[:count], len(hits) - len(kept), service.name)


def _read_domains(domains: Sequence[str]) -> tuple[str, ...]:
    hosts: list[str] = []
    for domain in domains:
        try:
            hosts.append(canonical_host(domain.strip().removeprefix("*.")))
        except UrlError as error:
            raise FetchError(
                "configuration", f"{domain[:80]!r} is not a domain; write it like example.org."
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
    words = " ".join(strip_controls(text).split())
    return defuse_marks(words if len(words) <= limit else f"{words[:limit]}…")


_BY_VARIABLE: Mapping[str, tuple[str, Callable[[str], SearchBackend]]] = {
    "brave": ("BRAVE_API_KEY", BraveBackend),
    "tavily": ("TAVILY_API_KEY", TavilyBackend),
    "searxng": ("SEARXNG_URL", SearXNGBackend),
}


def choose_backend(
    name: SearchBackend | str | None = None, env: Mapping[str, str] | None = None
) -> SearchBackend:
    """The service itself, the one of that name, or the first whose variable is set."""
    if name is not None and not isinstance(name, str):
        return name
    env = os.environ if env is None else env
    if name == "duckduckgo":
        return DuckDuckGoBackend()
    if name is not None and name not in _BY_VARIABLE:
        known = ", ".join([*_BY_VARIABLE, "duckduckgo"])
        raise FetchError("configuration", f"There is no search service {name!r}; there are {known}.")
    for one, (variable, make) in _BY_VARIABLE.items():
        value = env.get(variable, "").strip()
        if value and name in (None, one):
            return make(value)
    if name is not None:
        raise FetchError(
            "configuration", f"Searching with {name} needs the environment variable {_BY_VARIABLE[name][0]}."
        )
    raise FetchError(
        "configuration",
        "No search service is set up. Ask the user to set one of the environment variables BRAVE_API_KEY, "
        "TAVILY_API_KEY or SEARXNG_URL (the address of a SearXNG server).",
    )


def _check_key(key: str, variable: str) -> str:
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise FetchError(
            "configuration", f"The value of {variable} is not a key: it has blanks or odd letters."
        )
    return key


def _check_base(address: str) -> Url:
    try:
        url = parse_url(address)
    except UrlError as error:
        raise FetchError(
            "configuration",
            "The value of SEARXNG_URL is not an address; it must look like https://search.example.",
        ) from error
    if "?" in url.target:
        raise FetchError("configuration", "The address in SEARXNG_URL must have no query.")
    return url


def _read_reply(reply: Reply, service: str, variable: str) -> JsonObject:
    """The object that a service answered with; anything else has no results."""
    if reply.status in (401, 403):
        raise FetchError(
            "configuration", f"{service} refused the request (HTTP {reply.status}). Check {variable}."
        )
    if not 200 <= reply.status < 300:
        raise bad_status(reply.status, f"{service} answered")
    try:
        return object_of(decode_leniently(reply.body))
    except ValueError as error:
        raise FetchError("protocol", f"{service} did not answer in JSON. Try again later.") from error


def _read_hits(results: Json, url_key: str, snippet_key: str) -> list[SearchHit]:
    if not isinstance(results, list):
        return []
    return [
        SearchHit(text_of(one.get("title")), str(one[url_key]), text_of(one.get(snippet_key)))
        for one in results
        if isinstance(one, dict) and isinstance(one.get(url_key), str)
    ]
