"""What the events of a Responses reply say, as chunks: text, thinking, calls, usage, why it stopped.

The whole response, which ends a stream or is all that a server sends, is read like the events it sums up:
whatever of it came before is not told again. Calls and reasoning are certain only at the end (`close`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from robota.core.jsontext import decode
from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage, ToolCall
from robota.core.provider import (
    Chunk,
    MetadataChunk,
    ReasoningChunk,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.providers.chat.content import ReplyContent
from robota.providers.responses.schema import drop_nulls

_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}
_HOSTED = "_call"
"""How the types of items end that the service works on by itself."""


class ResponseContent(ReplyContent):
    """`schemas` are the tools' own, for calls whose arguments were written to a stricter one."""

    def __init__(self, schemas: Mapping[str, JsonObject] | None = None) -> None:
        super().__init__()
        self._schemas = schemas or {}
        self._open: dict[int, ToolInputChunk] = {}
        """The beginning of each call, by the place of its item."""
        self._done: dict[int, JsonObject] = {}
        """The items that are whole, by their place."""
        self._told: set[int] = set()
        """Places of the items whose text has come in pieces."""
        self._incomplete = ""

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        """Add the event's chunks. The raw bytes go with its text; if it has none, they are returned."""
        kind = reply.get("type")
        if kind == "response.output_text.delta":
            text = reply.get("delta")
            if text and isinstance(text, str):
                self._told.add(reply.get("output_index", 0))
                chunks.append(TextChunk(text, raw))
                return None
            return raw
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        if reader is not None:
            reader(self, reply, chunks)
        return raw

    def read_response(self, response: Json, chunks: list[Chunk]) -> None:
        """The response as a whole; of its items those that have not come by themselves."""
        if not isinstance(response, dict):
            response = {}
        if not self._announced:
            self._announce(response, chunks)
        output = response.get("output")
        for place, item in enumerate(output if isinstance(output, list) else ()):
            if place not in self._done and isinstance(item, dict):
                self._read_item(place, item, chunks)
        self._read_usage(response.get("usage"))
        details = response.get("incomplete_details")
        if isinstance(details, dict):
            self._incomplete = str(details.get("reason") or "")
        self.finish_reason = str(response.get("status") or "completed")

    def close(self) -> list[Chunk]:
        """The chunks of a reply that is over and whole."""
        calls = self._calls_of_items()
        reason: StopReason = "tool_use" if calls else "end_turn"
        detail = self._incomplete or self.finish_reason or None
        if self.finish_reason != "completed":
            reason = _INCOMPLETE.get(self._incomplete, "other")
        if self._refusal:
            reason, detail = "refusal", "".join(self._refusal)
        chunks: list[Chunk] = [*self._thoughts(), *calls]
        facts: JsonObject = {"phase": self._phase(), "citations": self._sources()}
        facts = {name: value for name, value in facts.items() if value}
        if facts:
            chunks.append(MetadataChunk(facts))
        if self._usage is not None:
            chunks.append(self._usage)
        chunks.append(StopChunk(reason, detail))
        return chunks

    # --- pieces ----------------------------------------------------------------------------------------

    def _read_start(self, event: JsonObject, chunks: list[Chunk]) -> None:
        response = event.get("response")
        if not self._announced and isinstance(response, dict):
            self._announce(response, chunks)

    def _read_end(self, event: JsonObject, chunks: list[Chunk]) -> None:
        self.read_response(event.get("response"), chunks)
        if event["type"] == "response.incomplete":
            self.finish_reason = "incomplete"

    def _read_opening(self, event: JsonObject, chunks: list[Chunk]) -> None:
        item, place = event.get("item"), event.get("output_index", 0)
        if isinstance(item, dict) and item.get("type") == "function_call":
            opening = ToolInputChunk(len(self._open), "", _text(item, "call_id"), _text(item, "name"))
            self._open[place] = opening
            chunks.append(opening)

    def _read_arguments(self, event: JsonObject, chunks: list[Chunk]) -> None:
        opening = self._open.get(event.get("output_index", 0))
        if opening is not None:
            chunks.append(ToolInputChunk(opening.index, _text(event, "delta"), opening.id, opening.name))

    def _read_refusal(self, event: JsonObject, chunks: list[Chunk]) -> None:
        self._told.add(event.get("output_index", 0))
        self._refuse(_text(event, "delta"), chunks)

    def _read_thinking(self, event: JsonObject, chunks: list[Chunk]) -> None:
        self._told.add(event.get("output_index", 0))
        chunks.append(ReasoningChunk(_text(event, "delta")))

    def _read_thinking_part(self, event: JsonObject, chunks: list[Chunk]) -> None:
        if event.get("summary_index"):
            chunks.append(ReasoningChunk("\n\n"))

    # --- whole items -----------------------------------------------------------------------------------

    def _read_whole(self, event: JsonObject, chunks: list[Chunk]) -> None:
        if isinstance(event.get("item"), dict):
            self._read_item(event.get("output_index", len(self._done)), event["item"], chunks)

    def _read_item(self, place: int, item: JsonObject, chunks: list[Chunk]) -> None:
        self._done[place] = item
        kind = _text(item, "type")
        if kind == "message" and place not in self._told:
            for part in _parts(item, "content"):
                if part.get("type") == "refusal":
                    self._refuse(_text(part, "refusal"), chunks)
                elif _text(part, "text"):
                    chunks.append(TextChunk(_text(part, "text")))
        elif kind == "reasoning" and place not in self._told and _thinking(item):
            chunks.append(ReasoningChunk(_thinking(item)))
        elif kind.endswith(_HOSTED) and kind != "function_call":
            action = item.get("action")
            facts = action if isinstance(action, dict) else {}
            facts = {name: value for name, value in facts.items() if name not in ("type", "sources")}
            chunks.append(ServerToolChunk(kind.removesuffix(_HOSTED), facts))

    def _refuse(self, text: str, chunks: list[Chunk]) -> None:
        if text:
            self._refusal.append(text)
            chunks.append(TextChunk(text))

    def _calls_of_items(self) -> list[ToolCall]:
        calls = []
        for _, item in sorted(self._done.items()):
            if item.get("type") == "function_call" and self._is_whole(item):
                name, arguments = _text(item, "name"), _text(item, "arguments")
                if name in self._schemas:
                    arguments = drop_nulls(arguments, self._schemas[name])
                calls.append(ToolCall(_text(item, "call_id"), name, arguments if arguments.strip() else "{}"))
        return calls

    def _is_whole(self, item: JsonObject) -> bool:
        """Broken arguments of a reply that ended well are the model's own, and the caller has to tell it."""
        if item.get("status") == "incomplete":
            return False
        if self.finish_reason == "completed":
            return True
        try:
            return isinstance(decode(_text(item, "arguments")), dict)
        except ValueError:
            return False

    def _thoughts(self) -> list[ReasoningBlock]:
        """The reasoning, with what is needed to send it back in front of the item it led to.

        Reasoning that led to a hosted tool stays behind: its item could not be sent back after it.
        """
        blocks = []
        items = [item for _, item in sorted(self._done.items())]
        for at, item in enumerate(items):
            if item.get("type") != "reasoning":
                continue
            following = next((other for other in items[at + 1 :] if other.get("type") != "reasoning"), {})
            data = None
            if item.get("encrypted_content") and following.get("type") in ("message", "function_call"):
                kept = ("type", "id", "summary", "encrypted_content")
                data = {name: item[name] for name in kept if name in item}
                if following["type"] == "function_call":
                    data["before"] = _text(following, "call_id")
            if data or _thinking(item):
                blocks.append(ReasoningBlock(_thinking(item), data=data))
        return blocks

    def _phase(self) -> str:
        """What newer models call their message (commentary or final answer) and want to be told again."""
        messages = [item for _, item in sorted(self._done.items()) if item.get("type") == "message"]
        return _text(messages[-1], "phase") if messages else ""

    def _sources(self) -> list[JsonObject]:
        """What the text cites, each address once."""
        sources: dict[str, JsonObject] = {}
        for _, item in sorted(self._done.items()):
            for part in _parts(item, "content") if item.get("type") == "message" else ():
                for note in _parts(part, "annotations"):
                    if note.get("type") == "url_citation" and _text(note, "url"):
                        source = {"url": _text(note, "url"), "title": _text(note, "title")}
                        sources.setdefault(source["url"], source)
        return list(sources.values())

    def _read_usage(self, usage: Json) -> None:
        """Input includes what was read from the cache, as this API counts it."""
        if isinstance(usage, dict):
            self._usage = TokenUsage(
                _count(usage, "input_tokens"),
                _count(usage, "output_tokens"),
                _count(usage.get("input_tokens_details"), "cached_tokens"),
                _count(usage.get("input_tokens_details"), "cache_write_tokens"),
                _count(usage.get("output_tokens_details"), "reasoning_tokens"),
            )


_READERS: dict[str, Callable[[ResponseContent, JsonObject, list[Chunk]], None]] = {
    "response.created": ResponseContent._read_start,
    "response.output_item.added": ResponseContent._read_opening,
    "response.output_item.done": ResponseContent._read_whole,
    "response.function_call_arguments.delta": ResponseContent._read_arguments,
    "response.refusal.delta": ResponseContent._read_refusal,
    "response.reasoning_summary_text.delta": ResponseContent._read_thinking,
    "response.reasoning_summary_part.added": ResponseContent._read_thinking_part,
    "response.reasoning_text.delta": ResponseContent._read_thinking,
    "response.completed": ResponseContent._read_end,
    "response.incomplete": ResponseContent._read_end,
}


def _thinking(item: JsonObject) -> str:
    parts = _parts(item, "summary") or _parts(item, "content")
    return "\n\n".join(_text(part, "text") for part in parts)


def _parts(record: JsonObject, name: str) -> list[JsonObject]:
    parts = record.get(name)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _text(record: JsonObject, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _count(record: Json, name: str) -> int:
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, int) else 0
