from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from tests.tools.web_site import Request, Send, Site, answer, redirect

from robota.core.tool import Tool, ToolContext, ToolResult, tool_class, tool_schema
from robota.http.url import parse_url
from robota.tools.builtins.web import web_search_tool
from robota.tools.web.fetch import FetchError, exchange
from robota.tools.web.search import (
    BraveBackend,
    DuckDuckGoBackend,
    SearchBackend,
    SearchHit,
    SearXNGBackend,
    TavilyBackend,
    choose_backend,
)

pytestmark = pytest.mark.anyio

KEY = "sekret-key-123"


class FixedBackend:
    """A search service that always finds the same."""

    name = "Fixed"

    def __init__(self, *hits: SearchHit) -> None:
        self.hits = list(hits)
        self.asked: list[tuple[str, int]] = []

    async def search(self, query: str, limit: int) -> list[SearchHit]:
        self.asked.append((query, limit))
        return self.hits


def hits_at(*urls: str) -> FixedBackend:
    return FixedBackend(*(SearchHit("t", url, "s") for url in urls))


async def search(backend: Any = None, *, env: dict[str, str] | None = None, **arguments: Any) -> ToolResult:
    tool = web_search_tool(backend, env=env or {})
    return await tool.run({"query": "ducks", **arguments}, ToolContext())


def urls_of(result: ToolResult) -> list[str]:
    return [hit["url"] for hit in json.loads(result.content)]


def test_it_is_a_tool_that_inspects() -> None:
    tool = web_search_tool()
    assert isinstance(tool, Tool)
    assert (tool.name, tool_class(tool)) == ("WebSearch", "inspect")
    assert set(tool_schema(tool).parameters["properties"]) == {
        "query", "limit", "allowed_domains", "blocked_domains",
    }  # fmt: skip
    assert "allowed_domains" in tool.description


async def test_results_are_a_pretty_json_list() -> None:
    result = await search(FixedBackend(SearchHit("Dücks", "https://a.test/", "about\n ducks")))

    assert result.ok
    assert result.content == (
        '[\n  {\n    "title": "Dücks",\n    "url": "https://a.test/",\n    "snippet": "about ducks"\n  }\n]'
    )
    assert result.metadata == {"backend": "Fixed", "results": 1}


async def test_nothing_found_is_an_empty_list() -> None:
    assert (await search(FixedBackend())).content == "[]"


async def test_ten_results_are_asked_for_unless_the_call_says_otherwise() -> None:
    backend = hits_at(*(f"https://a.test/{n}" for n in range(60)))

    assert len(urls_of(await search(backend))) == 10
    assert len(urls_of(await search(backend, limit=3.0))) == 3
    assert len(urls_of(await search(backend, limit=1000))) == 50
    assert backend.asked == [("ducks", 10), ("ducks", 3), ("ducks", 50)]


async def test_results_cannot_carry_marks_controls_or_endless_text() -> None:
    hit = SearchHit("<system-reminder>x", "https://a.test/", "\x1b[31mred" + "x" * 5000)
    found = json.loads((await search(FixedBackend(hit))).content)[0]

    assert found["title"] == "&lt;system-reminder>x"
    assert found["snippet"] == "red" + "x" * 997 + "…"


async def test_what_is_no_web_address_is_left_out() -> None:
    backend = hits_at("javascript:alert(1)", "ftp://a.test/", "https://u:p@a.test/", "https://a.test/")
    assert urls_of(await search(backend)) == ["https://a.test/"]


# --- domains --------------------------------------------------------------------------------------

URLS = ("https://example.org/", "https://docs.Example.org/a", "https://notexample.org/", "https://b.test/")


@pytest.mark.parametrize(
    ("filters", "kept", "query"),
    [
        ({"allowed_domains": ["example.org"]}, URLS[:2], "ducks site:example.org"),
        (
            {"allowed_domains": ["docs.example.org", "B.test."]},
            (URLS[1], URLS[3]),
            "ducks (site:docs.example.org OR site:b.test)",
        ),
        ({"blocked_domains": ["*.example.org"]}, URLS[2:], "ducks -site:example.org"),
        (
            {"allowed_domains": ["example.org"], "blocked_domains": ["docs.example.org"]},
            URLS[:1],
            "ducks site:example.org -site:docs.example.org",
        ),
    ],
)
async def test_domains_are_compared_label_by_label(
    filters: dict[str, list[str]], kept: tuple[str, ...], query: str
) -> None:
    backend = hits_at(*URLS)

    assert tuple(urls_of(await search(backend, **filters))) == kept
    assert backend.asked == [(query, 10)]


async def test_results_that_were_all_filtered_out_are_mentioned() -> None:
    result = await search(hits_at(*URLS), allowed_domains=["other.test"])
    assert result.content == "[]\n[4 results of other domains were left out.]"


async def test_what_is_no_domain_is_named() -> None:
    result = await search(hits_at(), allowed_domains=["https://example.org/"])
    assert result.error == "'https://example.org/' is not a domain; write it like example.org."


# --- which service --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "env", "backend"),
    [
        (None, {"BRAVE_API_KEY": KEY, "TAVILY_API_KEY": KEY}, BraveBackend),
        (None, {"BRAVE_API_KEY": " ", "TAVILY_API_KEY": KEY, "SEARXNG_URL": "http://a"}, TavilyBackend),
        (None, {"SEARXNG_URL": "http://search.test"}, SearXNGBackend),
        ("searxng", {"BRAVE_API_KEY": KEY, "SEARXNG_URL": "http://search.test/"}, SearXNGBackend),
        ("duckduckgo", {}, DuckDuckGoBackend),
    ],
)
def test_the_environment_decides_unless_a_name_does(
    name: str | None, env: dict[str, str], backend: type[SearchBackend]
) -> None:
    assert type(choose_backend(name, env)) is backend


@pytest.mark.parametrize(
    ("name", "env", "message"),
    [
        (
            None,
            {},
            "No search service is set up. Ask the user to set one of the environment variables "
            "BRAVE_API_KEY, TAVILY_API_KEY or SEARXNG_URL (the address of a SearXNG server).",
        ),
        (
            "tavily",
            {"BRAVE_API_KEY": KEY},
            "Searching with tavily needs the environment variable TAVILY_API_KEY.",
        ),
        (
            "altavista",
            {},
            "There is no search service 'altavista'; there are brave, tavily, searxng, duckduckgo.",
        ),
        (
            None,
            {"SEARXNG_URL": "search"},
            "The value of SEARXNG_URL is not an address; it must look like https://search.example.",
        ),
        (
            None,
            {"BRAVE_API_KEY": "se\nkret"},
            "The value of BRAVE_API_KEY is not a key: it has blanks or odd letters.",
        ),
    ],
)
async def test_what_is_missing_is_named(name: str | None, env: dict[str, str], message: str) -> None:
    result = await search(name, env=env)
    assert (result.ok, result.error, result.error_code) == (False, message, "configuration")


def test_the_real_environment_is_read_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("BRAVE_API_KEY", "SEARXNG_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TAVILY_API_KEY", KEY)

    assert choose_backend().name == "Tavily"


# --- the services ---------------------------------------------------------------------------------


def json_answer(value: Any) -> bytes:
    return answer(json.dumps(value), "application/json")


async def test_brave_is_asked_as_it_wants() -> None:
    found = [{"title": "A &amp; B", "url": "https://a.test/", "description": "the <strong>best</strong>"}]
    async with Site({"*": json_answer({"web": {"results": found}})}) as site:
        hits = await BraveBackend(KEY, base_url=site.origin).search("wild ducks & geese", 30)

    assert hits == [SearchHit("A & B", "https://a.test/", "the best")]
    (request,) = site.requests
    assert (request.method, request.path) == ("GET", "/res/v1/web/search")
    assert request.query == [("q", "wild ducks & geese"), ("count", "20")]
    assert request.headers["x-subscription-token"] == KEY


async def test_tavily_is_asked_as_it_wants() -> None:
    found = {"results": [{"title": "A", "url": "https://a.test/", "content": "if a < b"}]}
    async with Site({"*": json_answer(found)}) as site:
        hits = await TavilyBackend(KEY, base_url=site.origin).search("ducks", 5)

    assert hits == [SearchHit("A", "https://a.test/", "if a < b")]
    (request,) = site.requests
    assert (request.method, request.path) == ("POST", "/search")
    assert json.loads(request.body) == {"query": "ducks", "max_results": 5}
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_searxng_is_asked_as_it_wants() -> None:
    found = {"results": [{"title": "A", "url": "https://a.test/", "content": "c"}, {"title": "no url"}]}
    async with Site({"*": json_answer(found)}) as site:
        hits = await SearXNGBackend(f"{site.origin}/searx/").search("ducks", 5)

    assert hits == [SearchHit("A", "https://a.test/", "c")]
    assert (site.requests[0].path, site.requests[0].query) == (
        "/searx/search",
        [("q", "ducks"), ("format", "json")],
    )


async def test_a_searxng_server_without_json_says_what_to_change() -> None:
    async with Site({"*": answer("no", status="403 Forbidden")}) as site:
        result = await search(SearXNGBackend(site.origin))

    assert "add `json` to `search.formats`" in result.text


def fake_ddgs(monkeypatch: pytest.MonkeyPatch, text: Callable[..., Any]) -> None:
    class DDGS:
        def __init__(self, *, timeout: int) -> None: ...

        def text(self, query: str, **options: Any) -> Any:
            return text(query, **options)

    module = ModuleType("ddgs")
    module.DDGS = DDGS  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ddgs", module)


async def test_duckduckgo_is_asked_through_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def text(query: str, **options: Any) -> Any:
        asked.append((query, options))
        return [{"title": "A", "href": "https://a.test/", "body": "b"}]

    fake_ddgs(monkeypatch, text)

    assert urls_of(await search("duckduckgo")) == ["https://a.test/"]
    assert asked == [("ducks", {"max_results": 10, "backend": "duckduckgo"})]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("No results found.", "[]"),
        (
            "DNSError for url https://x/?secret",
            "Error: DuckDuckGo gave no answer. Try again later, or set up another search service.",
        ),
    ],
)
async def test_a_failure_of_the_package_is_told(
    monkeypatch: pytest.MonkeyPatch, error: str, text: str
) -> None:
    def fail(query: str, **options: Any) -> Any:
        raise RuntimeError(error)

    fake_ddgs(monkeypatch, fail)

    assert (await search("duckduckgo")).text == text


async def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs", None)
    result = await search("duckduckgo")
    assert result.error == "Searching with DuckDuckGo needs the package ddgs: pip install 'robota[web]'."


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (answer(KEY, status="401 No"), "Brave refused the request (HTTP 401). Check BRAVE_API_KEY."),
        (
            answer(KEY, status="429 Slow down"),
            "Brave answered HTTP 429 Too Many Requests. "
            "The server asks for patience; retry later, not at once.",
        ),
        (
            answer(KEY, status="500 Oops"),
            "Brave answered HTTP 500 Internal Server Error. The server has a problem; you may retry later.",
        ),
        (answer(f"<html>{KEY}"), "Brave did not answer in JSON. Try again later."),
        (b"", "127.0.0.1 closed the connection before its answer was complete. You may retry once."),
        (answer(b"[" * 6_000_000), "The answer of 127.0.0.1 is larger than 5,000,000 bytes. Do not retry."),
        (answer(b"[" * 100_000), "Brave did not answer in JSON. Try again later."),
    ],
)
async def test_a_failure_is_told_without_the_key(reply: bytes, error: str) -> None:
    async with Site({"*": reply}) as site:
        result = await search(BraveBackend(KEY, base_url=site.origin))

    assert (result.ok, result.error) == (False, error)
    assert KEY not in repr(result)


@pytest.mark.parametrize("value", [[], {}, {"web": 1}, {"web": {"results": [1, {"url": 2}]}}, None])
async def test_an_answer_of_another_shape_has_found_nothing(value: Any) -> None:
    async with Site({"*": json_answer(value)}) as site:
        assert (await search(BraveBackend(KEY, base_url=site.origin))).content == "[]"


async def test_a_key_does_not_follow_a_redirect() -> None:
    async with Site({"*": json_answer({})}) as other, Site({"*": redirect(other.origin)}) as site:
        result = await search(BraveBackend(KEY, base_url=site.origin))

    assert (result.ok, other.requests) == (False, [])


async def test_a_service_that_does_not_answer_runs_out_of_time() -> None:
    async def wait(request: Request, send: Send) -> None:
        await asyncio.Event().wait()

    async with Site({"*": wait}) as site:
        result = await search(TavilyBackend(KEY, base_url=site.origin, timeout=0.3))

    assert result.error == "127.0.0.1 did not answer within 0.3 s. You may retry once."


async def test_a_query_that_is_too_long_for_a_url_is_refused() -> None:
    result = await search(BraveBackend(KEY), query="ä" * 5000)
    assert (result.ok, result.error) == (False, "The URL is refused: it is longer than 8,192 characters.")


async def test_a_header_that_http_does_not_allow_is_told_without_its_value() -> None:
    with pytest.raises(FetchError) as caught:
        await exchange("GET", parse_url("http://a.test/"), headers={"X-Key": f"{KEY}\n"}, timeout=1)
    assert (caught.value.code, KEY in str(caught.value)) == ("configuration", False)
