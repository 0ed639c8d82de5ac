"""What the objects of a Gemini reply say, as chunks: text, thinking, calls, usage, sources, why it stopped.

Calls come whole, but are given out by `close` alone: a reply that was cut must not act. The protocol has no
end mark: a reply is whole when a reason to stop was given and the connection ended.
"""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec import Struct

from robota.core.errors import RobotaError
from robota.core.jsontext import encode, list_of, object_of, objects_of
from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage, ToolCall
from robota.core.provider import (
    Chunk,
    ReasoningChunk,
    ServerToolChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.providers.gemini.errors import describe_status
from robota.providers.gemini.request import MARK
from robota.providers.wire.errors import Peer
from robota.providers.wire.reply import ReplyContent, count_of, image_of, text_of

_FILTERS = (
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ESCALATION", "MODEL_ARMOR",
    "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
)  # fmt: skip
_FAILURES = (
    "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
)  # fmt: skip
_STOP_REASONS: dict[str, StopReason] = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "max_tokens",
    **dict.fromkeys(_FILTERS, "content_filter"),
    **dict.fromkeys(_FAILURES, "error"),
}
_KNOWN = ("candidates", "promptFeedback", "usageMetadata")
_PLAIN = frozenset(("content", "index"))
"""All that a candidate has in the middle of a stream."""
_SERVER_PARTS = ("toolCall", "toolResponse", "executableCode", "codeExecutionResult")
"""Parts of tools that ran on Google's side; they are wanted back."""
_TOOLS = {"GOOGLE_SEARCH_WEB": "web_search", "URL_CONTEXT": "web_fetch"}


class GeminiContent(ReplyContent):
    surface = "gemini-generate-content"
    format = "Gemini"
    plain_key = "candidates"

    def __init__(self) -> None:
        super().__init__()
        self._detail = ""
        self._blocked = False
        """The prompt was refused, so there is no candidate."""
        self._thoughts: list[str] = []
        self._thought_signature: str | None = None
        self._text_signature: str | None = None
        self._server_parts: list[ReasoningBlock] = []
        self._calls = GeminiCalls()
        self._images: list[JsonObject] = []
        self._sources = _WebSources()
        self._last_usage: Json = None
        """Every event counts anew what came so far; the last count stands."""

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        if not self.announced:
            self.announce(reply.get("modelVersion"), reply.get("responseId"), chunks)
        self._last_usage = reply.get("usageMetadata") or self._last_usage
        candidates = reply.get("candidates")
        if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
            self._read_feedback(reply.get("promptFeedback"))
            return raw
        candidate = candidates[0]
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        if isinstance(parts, list):
            for part in parts:
                if isinstance(part, dict):
                    raw = self._read_part(part, raw, chunks)
        if candidate.keys() - _PLAIN:
            self._sources.read(candidate, chunks)
            self._read_finish(candidate)
        return raw

    def read_whole(self, reply: JsonObject, chunks: list[Chunk]) -> bool:
        """A reply without event stream, as a proxy makes it or the service without `alt=sse`."""
        if not any(name in reply for name in _KNOWN):
            return False
        self.read(reply, None, chunks)
        return True

    def describe_error(self, error: Json, peer: Peer) -> RobotaError:
        known = describe_status(error, peer.provider, peer.secrets)
        return known or super().describe_error(error, peer)

    def close(self) -> list[Chunk]:
        word = self.finish_reason
        reason = "refusal" if self._blocked else _STOP_REASONS.get(word, "other")
        calls = self._calls.whole
        if reason == "end_turn" and calls:
            reason = "tool_use"
        chunks: list[Chunk] = []
        if self._thoughts or self._thought_signature:
            thought = "".join(self._thoughts)
            chunks.append(ReasoningBlock(thought, self._thought_signature, {MARK: "thought"}))
        chunks += self._server_parts
        if self._text_signature:
            chunks.append(ReasoningBlock("", self._text_signature, {MARK: "text"}))
        chunks += calls
        if isinstance(self._last_usage, dict):
            self.usage = _read_usage(self._last_usage)
        facts: JsonObject = {"provenance": self._sources.provenance, "images": self._images}
        return self.conclude(chunks, facts, reason, f"{word}: {self._detail}" if self._detail else word)

    # --- parts ---------------------------------------------------------------------------------------

    def _read_part(self, part: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        text = part.get("text")
        if isinstance(text, str):
            if part.get("thought"):
                self._read_thought(text, part, chunks)
                return raw
            self._text_signature = text_of(part, "thoughtSignature") or self._text_signature
            if text:
                chunks.append(TextChunk(text, raw))
                return None
        elif isinstance(part.get("functionCall"), dict):
            call = self._calls.add(part["functionCall"], text_of(part, "thoughtSignature"))
            chunks += [call] if call is not None else []
        elif isinstance(part.get("inlineData"), dict):
            self._read_image(part["inlineData"], text_of(part, "thoughtSignature"))
        else:
            self._read_server_part(part, chunks)
        return raw

    def _read_thought(self, text: str, part: JsonObject, chunks: list[Chunk]) -> None:
        self._thought_signature = text_of(part, "thoughtSignature") or self._thought_signature
        if text:
            self._thoughts.append(text)
            chunks.append(ReasoningChunk(text))

    def _read_image(self, blob: JsonObject, signature: str) -> None:
        image = image_of(blob.get("data"), blob.get("mimeType"), signature)
        if image is not None:
            self._images.append(image)

    def _read_server_part(self, part: JsonObject, chunks: list[Chunk]) -> None:
        kind = next((known for known in _SERVER_PARTS if known in part), None)
        if kind is None:
            return  # a part from the future
        self._server_parts.append(ReasoningBlock(data={MARK: part}))
        content = part[kind]
        if kind == "toolCall" and isinstance(content, dict):
            self._sources.announce(content, chunks)
        elif kind == "executableCode":
            chunks.append(ServerToolChunk("code_execution", content))

    # --- besides the parts -----------------------------------------------------------------------------

    def _read_finish(self, candidate: JsonObject) -> None:
        reason = candidate.get("finishReason")
        if reason:
            self.finish_reason = str(reason)
            self._detail = str(candidate.get("finishMessage") or "")

    def _read_feedback(self, feedback: Json) -> None:
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            self._blocked = True
            self.finish_reason = str(feedback["blockReason"])
            self._detail = str(feedback.get("blockReasonMessage") or "")


def _read_usage(usage: JsonObject) -> TokenUsage:
    """Thinking, and what hosted tools read, are counted apart by this API."""
    thoughts = count_of(usage, "thoughtsTokenCount")
    return TokenUsage(
        count_of(usage, "promptTokenCount") + count_of(usage, "toolUsePromptTokenCount"),
        count_of(usage, "candidatesTokenCount") + thoughts,
        count_of(usage, "cachedContentTokenCount"),
        0,
        thoughts,
    )


class _WebSources(Struct, eq=False):
    """Where a reply has its facts from: what was searched, which pages were found, read and cited.

    Gathers the reports, which repeat in a stream, and tells of each search and page once.
    """

    _queries: dict[str, None] = {}
    _found: dict[str, JsonObject] = {}
    _pages: dict[str, JsonObject] = {}
    _citations: dict[str, JsonObject] = {}

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
        asked = object_of(arguments)
        for query in _texts([*list_of(asked.get("queries")), asked.get("query")]):
            self._queries[query] = None  # told by this chunk
        chunks.append(ServerToolChunk(_TOOLS.get(kind, kind.lower() or "server_tool"), arguments))

    def read(self, candidate: JsonObject, chunks: list[Chunk]) -> None:
        grounding = object_of(candidate.get("groundingMetadata"))
        for query in _texts(grounding.get("webSearchQueries")):
            if query not in self._queries:
                self._queries[query] = None
                chunks.append(ServerToolChunk("web_search", {"query": query}))
        for chunk in objects_of(grounding.get("groundingChunks")):
            web = object_of(chunk.get("web"))
            if isinstance(web.get("uri"), str):
                self._found[web["uri"]] = {"url": web["uri"], "title": web.get("title") or ""}
        for page in objects_of(object_of(candidate.get("urlContextMetadata")).get("urlMetadata")):
            self._read_page(page, chunks)
        cited = object_of(candidate.get("citationMetadata"))
        for source in (*objects_of(cited.get("citationSources")), *objects_of(cited.get("citations"))):
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


def _texts(value: Json) -> list[str]:
    return [item for item in list_of(value) if isinstance(item, str)]


# --- calls: whole, or in pieces that each name their place in the arguments ------------------------------

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[['\"](.*?)['\"]\]")
_PATH = re.compile(rf"\$(?:{_STEP.pattern})+")
_LONGEST_LIST = 10_000
"""Places beyond are not believed."""


class _Open(Struct):
    """A call that is not whole yet."""

    id: str
    name: str
    signature: str
    arguments: JsonObject


class GeminiCalls(Struct, eq=False):
    whole: list[ToolCall] = []
    _open: _Open | None = None

    def add(self, function: JsonObject, signature: str) -> ToolInputChunk | None:
        """Take a call or a piece of one; what of its arguments can be shown, once it is whole.

        A piece says that it will be continued; the last one says nothing at all.
        """
        begun, name = self._open, text_of(function, "name")
        if begun is None and not name:
            return None
        if begun is None:
            begun = _Open(text_of(function, "id"), name, signature, {})
        begun.signature = begun.signature or signature
        begun.arguments.update(object_of(function.get("args")))
        for piece in objects_of(function.get("partialArgs")):
            _put(begun.arguments, piece)
        if function.get("willContinue"):
            self._open = begun
            return None
        self._open = None
        text = encode(begun.arguments).decode()
        self.whole.append(ToolCall(begun.id, begun.name, text, begun.signature or None))
        return ToolInputChunk(len(self.whole) - 1, text, begun.id, begun.name)


def _put(arguments: JsonObject, piece: JsonObject) -> None:
    """Put a piece where its path leads; texts that lead to the same place are one text."""
    path = text_of(piece, "jsonPath")
    steps: list[str | int] = [
        int(place) if place else plain or quoted for plain, place, quoted in _STEP.findall(path)
    ]
    if not _PATH.fullmatch(path) or isinstance(steps[0], int):
        return
    holder: Json = arguments
    for step, following in pairwise(steps):
        holder = _enter(holder, step, [] if isinstance(following, int) else {})
    known = _enter(holder, steps[-1], None)
    value = _value(piece)
    if isinstance(known, str) and isinstance(value, str):
        value = known + value
    if _fits(holder, steps[-1]):
        holder[steps[-1]] = value


def _enter(holder: Json, step: str | int, new: Json) -> Json:
    """What is at this place; `new` if there is nothing yet."""
    if not _fits(holder, step):
        return new  # a path that contradicts an earlier one: what it says is lost, and nothing else
    if isinstance(holder, list) and isinstance(step, int):
        holder.extend([None] * (step + 1 - len(holder)))
    elif step not in holder:
        holder[step] = None
    if holder[step] is None:
        holder[step] = new
    return holder[step]


def _fits(holder: Json, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(holder, list) and step < _LONGEST_LIST
    return isinstance(holder, dict)


def _value(piece: JsonObject) -> Json:
    for kind in ("stringValue", "numberValue", "boolValue"):
        if kind in piece:
            return piece[kind]
    return None
