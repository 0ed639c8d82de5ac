"""Where a Gemini reply has its facts from: what was searched, which pages were found, read and cited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from robota.core.messages import Json, JsonObject
from robota.core.provider import Chunk, ServerToolChunk

_TOOLS = {"GOOGLE_SEARCH_WEB": "web_search", "URL_CONTEXT": "web_fetch"}


class WebSources:
    """Gathers the reports, which repeat in a stream, and tells of each search and page once."""

    __slots__ = ("_citations", "_found", "_pages", "_queries")

    def __init__(self) -> None:
        self._queries: dict[str, None] = {}
        self._found: dict[str, JsonObject] = {}
        self._pages: dict[str, JsonObject] = {}
        self._citations: dict[str, JsonObject] = {}

    @property
    def provenance(self) -> JsonObject:
        """For the message's metadata; empty when nothing was looked up."""
        gathered: JsonObject = {
            "queries": list(self._queries),
            "sources": list(self._found.values()),
            "pages": list(self._pages.values()),
            "citations": list(self._citations.values()),
        }
        return {name: values for name, values in gathered.items() if values}

    def announce(self, call: JsonObject, chunks: list[Chunk]) -> None:
        """A tool call on Google's side, told while it runs."""
        kind = str(call.get("toolType") or "")
        arguments = call.get("args")
        single = arguments.get("query") if isinstance(arguments, dict) else None
        for query in (*_texts(arguments, "queries"), *([single] if isinstance(single, str) else ())):
            self._queries[query] = None  # told by this chunk
        chunks.append(ServerToolChunk(_TOOLS.get(kind, kind.lower() or "server_tool"), arguments))

    def read(self, candidate: JsonObject, chunks: list[Chunk]) -> None:
        grounding = candidate.get("groundingMetadata")
        for query in _texts(grounding, "webSearchQueries"):
            if query not in self._queries:
                self._queries[query] = None
                chunks.append(ServerToolChunk("web_search", {"query": query}))
        for chunk in _objects(grounding, "groundingChunks"):
            web = chunk.get("web")
            if isinstance(web, dict) and isinstance(web.get("uri"), str):
                self._found[web["uri"]] = {"url": web["uri"], "title": web.get("title") or ""}
        for page in _objects(candidate.get("urlContextMetadata"), "urlMetadata"):
            self._read_page(page, chunks)
        citations = candidate.get("citationMetadata")
        for source in (*_objects(citations, "citationSources"), *_objects(citations, "citations")):
            url = source.get("uri")
            if isinstance(url, str):
                self._citations[url] = {"url": url, "license": source.get("license") or ""}

    def _read_page(self, page: JsonObject, chunks: list[Chunk]) -> None:
        url = page.get("retrievedUrl")
        if not isinstance(url, str):
            return
        if url not in self._pages:
            chunks.append(ServerToolChunk("web_fetch", {"url": url}))
        status = str(page.get("urlRetrievalStatus") or "")
        self._pages[url] = {"url": url, "status": status.removeprefix("URL_RETRIEVAL_STATUS_").lower()}


def _items(record: Json, name: str) -> Iterable[Json]:
    items = record.get(name) if isinstance(record, dict) else None
    return items if isinstance(items, list) else ()


def _texts(record: Json, name: str) -> Iterator[str]:
    return (item for item in _items(record, name) if isinstance(item, str))


def _objects(record: Json, name: str) -> Iterator[JsonObject]:
    return (item for item in _items(record, name) if isinstance(item, dict))
