"""Requests in the wire form of the Responses API, joined from fragments that are encoded once.

A history becomes items: messages, reasoning, calls and their outputs. Nothing is stored at the service:
reasoning comes back encrypted, is kept with its message and sent again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    Json,
    JsonObject,
    Message,
    Part,
    ReasoningBlock,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ChatRequest, NativeWebTools, ToolSchema
from robota.providers.encoding import (
    UNANSWERED,
    CallEncoder,
    EncodedTools,
    Encoder,
    encode_groups,
    note_left_out,
    own_fields,
    safe_arguments,
    url_of,
    without_none,
)
from robota.providers.responses.schema import is_strict, make_strict

MAX_ID_LENGTH = 64
SURELY_UNIQUE_LENGTH = 20
"""Ids of this length are random; shorter ones (`call_0`) may come again in a later turn."""
PHASES = ("commentary", "final_answer")
"""What newer models call their own messages; they want to see it again."""
_MODEST = ("o1", "o3", "o4", "gpt-5-", "gpt-5.1")
"""Reasoning models whose highest effort is `high`."""
ENCRYPTED = "reasoning.encrypted_content"
_NOT_REASONING = ("gpt-3", "gpt-4", "chatgpt", "gpt-5-chat")
"""Models that refuse a request for encrypted reasoning."""


class ItemDialect(Struct, frozen=True):
    """What the model takes; the key under which a history keeps its wire form."""

    images: bool = True
    files: bool = True
    instructions: bool = True
    """Whether the system prompt travels beside the items; otherwise all system messages are items."""


class ResponsesEncoder(Encoder, frozen=True):
    optional = ("strict", "include", "store", "text", "reasoning", "temperature", "top_p")

    dialect: ItemDialect
    strict_tools: bool = False
    reasoning_summary: str | None = None
    web_fetch_tool: str | None = None

    def encode(self, request: ChatRequest, model: str) -> bytes:
        items = _ItemEncoder(request, self.dialect)
        fragments = encode_groups(request, self.dialect, items.encode_group)
        fields = self._fields(request, model, items.instructions)
        given = b",".join(filter(None, (*fragments, items.encode_tail())))
        pieces = [encode(fields)[:-1], b',"input":[', given, b"]"]
        tools = self._encode_tools(request)
        if tools:
            pieces += (b',"tools":[', tools, b"]")
        pieces.append(b"}")
        return b"".join(pieces)

    def _fields(self, request: ChatRequest, model: str, instructions: str | None) -> JsonObject:
        """All but items and tools; the caller's own fields win over ours, and objects are merged."""
        settings = request.settings
        if settings.stop:
            raise ConfigurationError(
                "The Responses API has no stop sequences; leave ModelSettings.stop empty or pass api='chat'."
            )
        fields: JsonObject = {
            "model": model,
            "instructions": instructions,
            "stream": True,
            "store": False,
            "include": None if _family(model).startswith(_NOT_REASONING) else [ENCRYPTED],
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_output_tokens": settings.max_tokens,
            "reasoning": self._reasoning(settings.effort, model),
        }
        schema, choice = request.output_schema, settings.tool_choice
        if schema is not None:
            form: JsonObject = {"type": "json_schema", "name": "answer", "schema": schema}
            if "strict" not in self.left_out:
                form["strict"] = is_strict(schema)
            fields["text"] = {"format": form}
        if request.tools and choice is not None:
            usual = choice in ("auto", "none", "required")
            fields["tool_choice"] = choice if usual else {"type": "function", "name": choice}
        fields = self.accepted(fields)
        for name, value in own_fields(settings, "input", "messages").items():
            ours = fields.get(name)
            fields[name] = {**ours, **value} if isinstance(ours, dict) and isinstance(value, dict) else value
        return without_none(fields)

    def _reasoning(self, effort: str | None, model: str) -> JsonObject | None:
        if effort in ("xhigh", "max") and _is_modest(model):
            effort = "high"
        wanted = {"effort": effort, "summary": self.reasoning_summary}
        return {name: value for name, value in wanted.items() if value} or None

    def _encode_tools(self, request: ChatRequest) -> bytes:
        hosted: list[Json] = list(request.settings.extra.get("tools") or ())
        web = request.native_web_tools or NativeWebTools()
        hosted += [{"type": "web_search"}] if web.web_search else []
        hosted += [{"type": self.web_fetch_tool}] if web.web_fetch and self.web_fetch_tool else []
        known = STRICT_TOOLS if self.strict_tools else TOOLS
        if "strict" in self.left_out:
            known = PLAIN_TOOLS
        return b",".join((*known.find(request.tools), *map(encode, hosted)))


def _encode_tool(tool: ToolSchema, strict: JsonObject | None = None, *, plain: bool = False) -> bytes:
    fields: JsonObject = {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters if strict is None else strict,
    }
    return encode(fields if plain else {**fields, "strict": strict is not None})


TOOLS = EncodedTools(_encode_tool)
STRICT_TOOLS = EncodedTools(lambda tool: _encode_tool(tool, make_strict(tool.parameters)))
PLAIN_TOOLS = EncodedTools(lambda tool: _encode_tool(tool, plain=True))


def _family(model: str) -> str:
    """The model's own name, also of one that is fine-tuned or behind a gateway's prefix."""
    return model.rpartition("/")[2].removeprefix("ft:")


def _is_modest(model: str) -> bool:
    family = _family(model)
    return family == "gpt-5" or (family.startswith(_MODEST) and "codex-max" not in family)


class _ItemEncoder(CallEncoder):
    __slots__ = ("_dialect", "_leading")

    def __init__(self, request: ChatRequest, dialect: ItemDialect) -> None:
        super().__init__(request)
        self._dialect = dialect
        self._leading = _count_leading(self.messages) if dialect.instructions else 0

    @property
    def instructions(self) -> str | None:
        """The system messages at the beginning, which travel outside the items."""
        texts = [message.content for message in self.messages[: self._leading]]
        return "\n\n".join(texts) or None

    def say(self, message: Message, at: int) -> Iterator[JsonObject]:
        if isinstance(message, AssistantMessage):
            yield from self._assistant(message, at)
        elif isinstance(message, UserMessage):
            parts = [self._part(part) for part in message.parts]
            yield {"role": "user", "content": parts or message.content}
        elif at >= self._leading:
            role = "developer" if self._dialect.instructions else "system"
            yield {"role": role, "content": message.content}

    def _assistant(self, message: AssistantMessage, at: int) -> Iterator[JsonObject]:
        if not message.content and not message.tool_calls:
            return  # reasoning that nothing follows is refused
        known = {call.id for call in message.tool_calls}
        thoughts = [(_following_call(block), item) for block in message.reasoning for item in _thought(block)]
        yield from (item for before, item in thoughts if before not in known)
        if message.content:
            phase = message.metadata.get("phase")
            labels = {"phase": phase} if phase in PHASES else {}
            # the type can be left out of all items but this one, where some servers insist on it
            yield {"type": "message", "role": "assistant", "content": message.content, **labels}
        for call, wire_id in zip(message.tool_calls, self.wire_ids(message, at), strict=True):
            yield from (item for before, item in thoughts if before == call.id)
            yield _call(wire_id, call.name, call.arguments)

    # --- calls and their outputs -----------------------------------------------------------------------

    def takes_id(self, id: str, at: int) -> bool:
        length = len(id)
        return 0 < length <= MAX_ID_LENGTH and (length >= SURELY_UNIQUE_LENGTH or self.is_first_use(id, at))

    def call(self, wire_id: str, name: str) -> JsonObject:
        return _call(wire_id, name, "{}")

    def result(self, wire_id: str, message: ToolMessage | None) -> JsonObject:
        output = UNANSWERED if message is None else self._output_content(message)
        return {"type": "function_call_output", "call_id": wire_id, "output": output}

    # --- parts -----------------------------------------------------------------------------------------

    def _output_content(self, message: ToolMessage) -> str | list[JsonObject]:
        media = [part for part in message.parts if not isinstance(part, TextPart)]
        if not media:
            return message.content
        text = [_text(message.content)] if message.content else []
        return text + [self._part(part) for part in media]

    def _part(self, part: Part) -> JsonObject:
        if isinstance(part, TextPart):
            return _text(part.text)
        if isinstance(part, FilePart):
            if not self._dialect.files:
                return _text(note_left_out(part))
            return {"type": "input_file", "filename": part.name or "file", "file_data": url_of(part)}
        if not self._dialect.images:
            return _text(note_left_out(part))
        return {"type": "input_image", "image_url": url_of(part), "detail": "auto"}


def _count_leading(messages: Sequence[Message]) -> int:
    places = (at for at, message in enumerate(messages) if not isinstance(message, SystemMessage))
    return next(places, len(messages))


def _thought(block: ReasoningBlock) -> list[JsonObject]:
    """The reasoning item to send back, and the calls of hosted tools it led to; nothing for thinking of other
    providers, which this one cannot read.
    """
    data = block.data
    if not isinstance(data, dict) or data.get("type") != "reasoning" or not data.get("encrypted_content"):
        return []
    item = {name: value for name, value in data.items() if name not in ("before", "hosted")}
    return [item, *(data.get("hosted") or ())]


def _following_call(block: ReasoningBlock) -> str | None:
    before = block.data.get("before") if isinstance(block.data, dict) else None
    return before if isinstance(before, str) else None


def _call(wire_id: str, name: str, arguments: str) -> JsonObject:
    safe = safe_arguments(arguments)
    return {"type": "function_call", "call_id": wire_id, "name": name, "arguments": safe}


def _text(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}
