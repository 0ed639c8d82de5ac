"""What the objects of a Chat Completions reply say, as chunks: text, thinking, calls, usage, why it stopped.

Whole messages and deltas are read alike. What is certain only at the end is kept and told by `close`.
"""

from __future__ import annotations

from msgspec import Struct

from robota.core.jsontext import encode, list_of, object_of, objects_of
from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage, ToolCall
from robota.core.provider import Chunk, ReasoningChunk, TextChunk, ToolInputChunk
from robota.providers.chat import API_SURFACE, DETAILS, PLAIN
from robota.providers.encoding import read_arguments
from robota.providers.wire.reply import ReplyContent, count_of, image_of, text_of

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "end_turn",
    "eos": "end_turn",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
    "refusal": "refusal",
}
_PLAIN = frozenset({"id", "object", "created", "model", "choices", "usage", "system_fingerprint"})
"""All that most events of a stream have."""
_GROWING = ("text", "summary", "data", "signature")
"""Fields of a detail of thinking that come in pieces."""


class ChatContent(ReplyContent):
    surface = API_SURFACE
    format = "Chat Completions"
    plain_key = "choices"

    def __init__(self) -> None:
        super().__init__()
        self._calls = _Calls()
        self._thoughts = _Thoughts()
        self._refusal: list[str] = []
        self._images: list[JsonObject] = []
        self._sources: dict[str, JsonObject] = {}
        """What the answer cites, by address."""

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        if not self.announced:
            self.announce(reply.get("model"), reply.get("id"), chunks)
        if reply.get("usage") or not reply.keys() <= _PLAIN:
            self._read_extras(reply)
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return raw
        choice = choices[0]
        delta = choice.get("delta")
        if isinstance(delta, dict):
            text = delta.get("content")
            if text and isinstance(text, str):
                chunks.append(TextChunk(text, raw))
                raw = None
                if len(delta) > 1:
                    self._read_rest(delta, chunks)
            else:
                self._read_rest(delta, chunks)
        elif isinstance(choice.get("message"), dict):
            self._read_message(choice["message"], chunks)
        reason = choice.get("finish_reason")
        if reason:
            self.finish_reason = str(reason)
            if reason == "error":
                self.error = choice.get("error") or "no reason given"
            self._read_usage(choice.get("usage"))  # where some servers put it
        return raw

    def read_whole(self, reply: JsonObject, chunks: list[Chunk]) -> bool:
        choices = reply.get("choices")
        if not isinstance(choices, list):
            return False
        if choices and isinstance(choices[0], dict) and isinstance(choices[0].get("message"), dict):
            choice = {**choices[0], "delta": None}  # Perplexity has an empty one beside the message
            reply = {**reply, "choices": [choice]}
        self.read(reply, None, chunks)
        self.done = True
        return True

    def find_error(self, reply: JsonObject, *, named: bool) -> Json:
        return super().find_error(reply, named=named or reply.get("object") == "error")

    def close(self) -> list[Chunk]:
        word = self.finish_reason
        reason = _STOP_REASONS.get(word, "other" if word else "end_turn")
        ended_well = reason in ("end_turn", "tool_use")
        calls = self._calls.finished(trusted=ended_well and bool(word))
        if ended_well:
            reason = "tool_use" if calls else "end_turn"
        if self._refusal:
            reason, word = "refusal", "".join(self._refusal)
        facts: JsonObject = {"images": self._images, "citations": list(self._sources.values())}
        return self.conclude((*self._thoughts.block(), *calls), facts, reason, word)

    def _read_extras(self, reply: JsonObject) -> None:
        """What stands beside the choices: usage, also where Groq puts it, and Perplexity's sources."""
        self._read_usage(reply.get("usage") or object_of(reply.get("x_groq")).get("usage"))
        for name in ("search_results", "citations"):
            for source in list_of(reply.get(name)):
                self._cite(source)

    def _cite(self, source: Json) -> None:
        """An address that the answer has its facts from; the first word on it stands."""
        if isinstance(source, str):
            source = {"url": source}
        if isinstance(source, dict) and text_of(source, "url"):
            url = source["url"]
            self._sources.setdefault(url, {"url": url, "title": text_of(source, "title")})

    def _read_rest(self, delta: JsonObject, chunks: list[Chunk]) -> None:
        """All of a delta except plain text."""
        if isinstance(delta.get("content"), list):
            self._read_parts(delta["content"], chunks)
        self._read_reasoning(delta.get("reasoning_content") or delta.get("reasoning"), chunks)
        if details := delta.get("reasoning_details"):
            self._thoughts.add_details(objects_of(details))
        if refusal := text_of(delta, "refusal"):
            self._refusal.append(refusal)
            chunks.append(TextChunk(refusal))
        if delta.get("tool_calls"):
            chunks += [self._calls.add(call) for call in _calls_in(delta)]
        old = delta.get("function_call")
        if isinstance(old, dict) and any(old.values()):
            chunks.append(self._calls.add({"index": 0, "function": old}))
        if "images" in delta or "annotations" in delta:
            self._read_attachments(delta)

    def _read_attachments(self, delta: JsonObject) -> None:
        """Pictures and citations, as OpenRouter hangs them on a message."""
        for image in objects_of(delta.get("images")):
            place = image.get("image_url")
            made = image_of(place.get("url") if isinstance(place, dict) else place)
            if made is not None and made not in self._images:
                self._images.append(made)
        for note in objects_of(delta.get("annotations")):
            self._cite(note.get("url_citation"))

    def _read_message(self, message: JsonObject, chunks: list[Chunk]) -> None:
        """A message that is whole: the same fields, but text and calls are not pieces."""
        if text := text_of(message, "content"):
            chunks.append(TextChunk(text))
        self._read_rest({**message, "tool_calls": None}, chunks)
        chunks += [self._calls.add(call, position) for position, call in enumerate(_calls_in(message))]

    def _read_parts(self, parts: list[Json], chunks: list[Chunk]) -> None:
        """Content as a list, as Mistral sends it: text, or thinking that is itself a list of texts."""
        for part in objects_of(parts):
            thinking = part.get("thinking")
            if isinstance(thinking, list):
                thinking = "".join(str(piece.get("text", "")) for piece in objects_of(thinking))
            self._read_reasoning(thinking, chunks)
            if isinstance(part.get("text"), str):
                chunks.append(TextChunk(part["text"]))

    def _read_reasoning(self, text: Json, chunks: list[Chunk]) -> None:
        if text and isinstance(text, str):
            self._thoughts.add_text(text)
            chunks.append(ReasoningChunk(text))

    def _read_usage(self, usage: Json) -> None:
        """Input includes what was read from the cache, as this API counts it. The last report stands."""
        if isinstance(usage, dict):
            prompt = usage.get("prompt_tokens_details")
            output = usage.get("completion_tokens_details")
            self.usage = TokenUsage(
                count_of(usage, "prompt_tokens"),
                count_of(usage, "completion_tokens"),
                count_of(prompt, "cached_tokens") or count_of(usage, "prompt_cache_hit_tokens"),
                count_of(prompt, "cache_write_tokens"),
                count_of(output, "reasoning_tokens"),
            )


class _PartialCall(Struct):
    number: int
    id: str = ""
    name: str = ""
    arguments: list[str] = []
    signature: str | None = None


class _Calls(Struct, eq=False):
    """Tool calls, put together from their pieces.

    Servers differ: calls come in many deltas or in one, with or without an index, an id, a whole name;
    arguments are text, null or an object. A call is given out only when it is certain that nothing of it is
    missing.
    """

    _calls: list[_PartialCall] = []
    _by_index: dict[int, _PartialCall] = {}
    _by_id: dict[str, _PartialCall] = {}

    def add(self, delta: JsonObject, position: int | None = None) -> ToolInputChunk:
        """Take one piece; `position` is given when all calls arrive whole in one list."""
        function = object_of(delta.get("function"))
        call_id, name = text_of(delta, "id"), text_of(function, "name")
        index = delta.get("index") if position is None else position
        call = self._find(index if isinstance(index, int) else None, call_id, name)
        if call_id and not call.id:
            call.id = call_id
            self._by_id.setdefault(call_id, call)
        if name and not call.arguments:
            # a name may be repeated, sent again as far as it goes, or come in pieces
            call.name = name if name.startswith(call.name) else call.name + name
        if "extra_content" in delta:
            google = object_of(object_of(delta["extra_content"]).get("google"))
            call.signature = text_of(google, "thought_signature") or call.signature
        text = _argument_text(function.get("arguments"))
        if text:
            call.arguments.append(text)
        return ToolInputChunk(call.number, text, call.id, call.name)

    def finished(self, *, trusted: bool) -> list[ToolCall]:
        """The calls in their order.

        If the server did not say that it wrote all it wanted (`trusted`), only those are kept whose arguments
        are a whole object. Otherwise broken arguments are the model's own, and the caller has to tell it.
        """
        calls = []
        for partial in self._calls:
            arguments = "".join(partial.arguments)
            if trusted or read_arguments(arguments) is not None:
                text = arguments if arguments.strip() else "{}"
                calls.append(ToolCall(partial.id, partial.name, text, partial.signature))
        return calls

    def _find(self, index: int | None, call_id: str, name: str) -> _PartialCall:
        if index is not None:
            call = self._by_index.get(index)
        elif call_id:
            call = self._by_id.get(call_id)
        else:
            call = self._calls[-1] if self._calls else None
            if call is not None and name and call.arguments:
                call = None  # neither index nor id, but another name after the arguments: the next call
        if call is None or (call_id and call.id and call.id != call_id):
            # an index that is used again with another id is another call (some servers always say 0)
            call = _PartialCall(len(self._calls))
            self._calls.append(call)
            if index is not None:
                self._by_index[index] = call
        return call


def _calls_in(message: JsonObject) -> list[JsonObject]:
    """The pieces of calls that say anything; some servers send all fields, with nothing in them."""
    calls = objects_of(message.get("tool_calls"))
    return [call for call in calls if call.get("id") or any(object_of(call.get("function")).values())]


def _argument_text(arguments: Json) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else encode(arguments).decode()


class _Thoughts(Struct, eq=False):
    """The thinking of one reply, put together from its pieces."""

    _pieces: list[str] = []
    _details: dict[tuple[int, str], JsonObject] = {}

    def add_text(self, text: str) -> None:
        self._pieces.append(text)

    def add_details(self, details: list[JsonObject]) -> None:
        """Pieces of one index and type belong together; the last word on any other field stands."""
        for detail in details:
            index = detail.get("index")
            place = index if isinstance(index, int) else len(self._details)
            key = (place, str(detail.get("type")))
            known = self._details.setdefault(key, {})
            for name, value in detail.items():
                before = known.get(name)
                if name in _GROWING and isinstance(before, str) and isinstance(value, str):
                    known[name] = before + value
                elif value is not None or name not in known:
                    known[name] = value

    def block(self) -> list[ReasoningBlock]:
        """All of it as one block; none if there was no thinking."""
        text = "".join(self._pieces)
        if self._details:
            return [ReasoningBlock(text, data={"type": DETAILS, "details": list(self._details.values())})]
        return [ReasoningBlock(text, data={"type": PLAIN})] if text else []
