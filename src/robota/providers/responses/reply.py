"""What the events of a Responses reply say, as chunks: text, thinking, calls, usage, why it stopped.

The whole response, which ends a stream or is all that a server sends, is read like the events it sums up:
whatever of it came before is not told again. Calls and reasoning are certain only at the end (`close`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from robota.core.jsontext import list_of, object_of, objects_of
from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage, ToolCall
from robota.core.provider import (
    Chunk,
    MetadataChunk,
    ReasoningChunk,
    ServerToolChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.providers.encoding import read_arguments
from robota.providers.responses.schema import drop_nulls
from robota.providers.wire.reply import ReplyContent, count_of, image_of, text_of

_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}
_HOSTED = "_call"
"""How the types of items end that the service works on by itself."""
_DRAWING = "image_generation_call"
_LED_TO = ("message", "function_call")
_MANY = 64
"""Hosted calls that are told one by one as a growing list; of more than that only the whole is worth it."""
_NOT_ASKED = ("type", "id", "status", "sources", "output", "action", "result")


class ResponseContent(ReplyContent):
    """`schemas` are the tools' own, for calls whose arguments were written to a stricter one."""

    surface = "openai-responses"
    format = "Responses"
    plain_key = "delta"
    advice = "check the base URL, or pass api='chat'"

    def __init__(self, schemas: Mapping[str, JsonObject] | None = None) -> None:
        super().__init__()
        self._schemas = schemas or {}
        self._refusal: list[str] = []
        self._open: dict[int, ToolInputChunk] = {}
        """The beginning of each call, by the place of its item."""
        self._done: dict[int, JsonObject] = {}
        """The items that are whole, by their place."""
        self._told: set[int] = set()
        """Places of the items whose text has come in pieces."""
        self._hosted: dict[int, JsonObject] = {}
        """What is kept of the calls to hosted tools, by their place."""
        self._incomplete = ""

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        kind = reply.get("type")
        if kind == "response.output_text.delta":
            text = reply.get("delta")
            if text and isinstance(text, str):
                self._told.add(_place(reply))
                chunks.append(TextChunk(text, raw))
                return None
            return raw
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        if reader is not None:
            reader(self, reply, chunks)
        elif kind is None and reply.get("object") == "response":  # all of it in one event
            self.read_whole(reply, chunks)
        return raw

    def read_whole(self, reply: JsonObject, chunks: list[Chunk]) -> bool:
        if not isinstance(reply.get("output"), list):
            return False
        self._read_response(reply, chunks)
        return True

    def find_error(self, reply: JsonObject, *, named: bool) -> Json:
        kind, response = reply.get("type"), reply.get("response")
        failed = kind == "response.failed" or reply.get("status") == "failed"
        if isinstance(response, dict) and failed:
            reply = response
        error = reply.get("error")
        if error or named or failed or kind == "error":
            return error or {name: reply[name] for name in ("code", "message") if name in reply}
        return None

    def _read_response(self, response: Json, chunks: list[Chunk]) -> None:
        """The response as a whole; of its items those that have not come by themselves."""
        response = object_of(response)
        if not self.announced:
            self.announce(response.get("model"), response.get("id"), chunks)
        known = {_identity(item) for item in self._done.values()} - {""}
        for place, item in enumerate(list_of(response.get("output"))):
            if place not in self._done and isinstance(item, dict) and _identity(item) not in known:
                self._read_item(place, item, chunks)
        self._read_usage(response.get("usage"))
        details = response.get("incomplete_details")
        if isinstance(details, dict):
            self._incomplete = str(details.get("reason") or "")
        self.finish_reason = str(response.get("status") or "completed")
        self.done = True

    def close(self) -> list[Chunk]:
        calls = self._calls_of_items()
        reason: StopReason = "tool_use" if calls else "end_turn"
        detail = self._incomplete or self.finish_reason
        if self.finish_reason != "completed":
            reason = _INCOMPLETE.get(self._incomplete, "other")
        if self._refusal:
            reason, detail = "refusal", "".join(self._refusal)
        facts: JsonObject = {"phase": self._phase(), "citations": self._sources(), "images": self._images()}
        if len(self._hosted) > _MANY:
            facts |= self._hosted_facts()
        return self.conclude((*self._thoughts(), *calls), facts, reason, detail)

    # --- pieces ----------------------------------------------------------------------------------------

    def _read_start(self, event: JsonObject, chunks: list[Chunk]) -> None:
        response = event.get("response")
        if not self.announced and isinstance(response, dict):
            self.announce(response.get("model"), response.get("id"), chunks)

    def _read_end(self, event: JsonObject, chunks: list[Chunk]) -> None:
        self._read_response(event.get("response"), chunks)
        if event["type"] == "response.incomplete":
            self.finish_reason = "incomplete"

    def _read_opening(self, event: JsonObject, chunks: list[Chunk]) -> None:
        item, place = event.get("item"), _place(event)
        if isinstance(item, dict) and item.get("type") == "function_call":
            opening = ToolInputChunk(len(self._open), "", text_of(item, "call_id"), text_of(item, "name"))
            self._open[place] = opening
            chunks.append(opening)

    def _read_arguments(self, event: JsonObject, chunks: list[Chunk]) -> None:
        opening = self._open.get(_place(event))
        if opening is not None:
            chunks.append(ToolInputChunk(opening.index, text_of(event, "delta"), opening.id, opening.name))

    def _read_refusal(self, event: JsonObject, chunks: list[Chunk]) -> None:
        self._told.add(_place(event))
        self._refuse(text_of(event, "delta"), chunks)

    def _read_thinking(self, event: JsonObject, chunks: list[Chunk]) -> None:
        self._told.add(_place(event))
        chunks.append(ReasoningChunk(text_of(event, "delta")))

    def _read_thinking_part(self, event: JsonObject, chunks: list[Chunk]) -> None:
        if event.get("summary_index"):
            chunks.append(ReasoningChunk("\n\n"))

    # --- whole items -----------------------------------------------------------------------------------

    def _read_whole(self, event: JsonObject, chunks: list[Chunk]) -> None:
        if isinstance(event.get("item"), dict):
            self._read_item(_place(event, len(self._done)), event["item"], chunks)

    def _read_item(self, place: int, item: JsonObject, chunks: list[Chunk]) -> None:
        self._done[place] = item
        kind = text_of(item, "type")
        if kind == "message" and place not in self._told:
            for part in objects_of(item.get("content")):
                if part.get("type") == "refusal":
                    self._refuse(text_of(part, "refusal"), chunks)
                elif text_of(part, "text"):
                    chunks.append(TextChunk(text_of(part, "text")))
        elif kind == "reasoning" and place not in self._told and _thinking(item):
            chunks.append(ReasoningChunk(_thinking(item)))
        elif _is_hosted(kind):
            chunks.append(ServerToolChunk(kind.removesuffix(_HOSTED), _hosted_input(item)))
            self._hosted[place] = _hosted_call(item)
            if len(self._hosted) <= _MANY:
                chunks.append(MetadataChunk(self._hosted_facts()))  # kept if the reply is cut

    def _refuse(self, text: str, chunks: list[Chunk]) -> None:
        if text:
            self._refusal.append(text)
            chunks.append(TextChunk(text))

    def _calls_of_items(self) -> list[ToolCall]:
        calls = []
        for _, item in sorted(self._done.items()):
            if item.get("type") == "function_call" and self._is_whole(item):
                name, arguments = text_of(item, "name"), text_of(item, "arguments")
                if name in self._schemas:
                    arguments = drop_nulls(arguments, self._schemas[name])
                calls.append(
                    ToolCall(text_of(item, "call_id"), name, arguments if arguments.strip() else "{}")
                )
        return calls

    def _is_whole(self, item: JsonObject) -> bool:
        """Broken arguments of a reply that ended well are the model's own, and the caller has to tell it."""
        if item.get("status") == "incomplete":
            return False
        if self.finish_reason == "completed":
            return True
        return read_arguments(text_of(item, "arguments")) is not None

    def _thoughts(self) -> list[ReasoningBlock]:
        """The reasoning, with what is needed to send it back in front of the item it led to: a message, a
        call, or calls of hosted tools, which are kept with it.
        """
        blocks: list[ReasoningBlock] = []
        following: JsonObject = {}
        hosted: list[JsonObject] = []
        for _, item in sorted(self._done.items(), reverse=True):
            kind = text_of(item, "type")
            if kind != "reasoning":
                hosted = [item, *hosted] if _is_hosted(kind) else []
                following = item
                continue
            data: JsonObject = {"type": "reasoning"}
            if item.get("encrypted_content") and (hosted or following.get("type") in _LED_TO):
                kept = ("type", "id", "summary", "encrypted_content")
                data = {name: item[name] for name in kept if name in item}
                if hosted:
                    data["hosted"] = hosted
                elif following["type"] == "function_call":
                    data["before"] = text_of(following, "call_id")
            if "encrypted_content" in data or _thinking(item):
                blocks.append(ReasoningBlock(_thinking(item), data=data))
            hosted = []
        return blocks[::-1]

    def _images(self) -> list[JsonObject]:
        """The pictures that the model made."""
        drawn = (item for _, item in sorted(self._done.items()) if item.get("type") == _DRAWING)
        made = (image_of(item.get("result"), f"image/{item.get('output_format') or 'png'}") for item in drawn)
        return [image for image in made if image is not None]

    def _hosted_facts(self) -> JsonObject:
        """Which tools the service has used by itself, in the order of the reply."""
        return {"serverTools": [call for _, call in sorted(self._hosted.items())]}

    def _phase(self) -> str:
        """What newer models call their message (commentary or final answer) and want to be told again."""
        messages = [item for _, item in sorted(self._done.items()) if item.get("type") == "message"]
        return text_of(messages[-1], "phase") if messages else ""

    def _sources(self) -> list[JsonObject]:
        """What the text cites, each address once."""
        sources: dict[str, JsonObject] = {}
        for _, item in sorted(self._done.items()):
            for part in objects_of(item.get("content")) if item.get("type") == "message" else ():
                for note in objects_of(part.get("annotations")):
                    if note.get("type") == "url_citation" and text_of(note, "url"):
                        source = {"url": text_of(note, "url"), "title": text_of(note, "title")}
                        sources.setdefault(source["url"], source)
        return list(sources.values())

    def _read_usage(self, usage: Json) -> None:
        """Input includes what was read from the cache, as this API counts it."""
        if isinstance(usage, dict):
            self.usage = TokenUsage(
                count_of(usage, "input_tokens"),
                count_of(usage, "output_tokens"),
                count_of(usage.get("input_tokens_details"), "cached_tokens"),
                count_of(usage.get("input_tokens_details"), "cache_write_tokens"),
                count_of(usage.get("output_tokens_details"), "reasoning_tokens"),
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


def _is_hosted(kind: str) -> bool:
    """Whether an item of this type was worked on by the service itself."""
    return kind.endswith(_HOSTED) and kind not in ("function_call", "custom_tool_call")


def _place(event: JsonObject, default: int = 0) -> int:
    place = event.get("output_index")
    return place if isinstance(place, int) else default


def _identity(item: JsonObject) -> str:
    """What tells an item from others; its place need not: some servers leave items out of the whole."""
    return text_of(item, "call_id") or text_of(item, "id")


def _hosted_input(item: JsonObject) -> JsonObject:
    """What a hosted tool was asked: its action, or what its item says in place of one."""
    return {name: value for name, value in _asked(item).items() if name not in _NOT_ASKED}


def _hosted_call(item: JsonObject) -> JsonObject:
    """What is kept of a hosted call: the tool, what it was asked, and where it looked."""
    name = text_of(item, "type").removesuffix(_HOSTED)
    call: JsonObject = {"name": name, "input": _hosted_input(item)}
    call |= {name: item[name] for name in ("id", "status") if item.get(name)}
    sources = objects_of(_asked(item).get("sources"))
    return {**call, "sources": sources} if sources else call


def _asked(item: JsonObject) -> JsonObject:
    action = item.get("action")
    return action if isinstance(action, dict) else item


def _thinking(item: JsonObject) -> str:
    parts = objects_of(item.get("summary")) or objects_of(item.get("content"))
    return "\n\n".join(text_of(part, "text") for part in parts)
