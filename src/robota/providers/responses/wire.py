"""Requests in the wire form of the Responses API, joined from fragments that are encoded once.

Nothing is stored at the service: reasoning comes back encrypted, is kept with its message and sent again.
"""

from __future__ import annotations

from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.core.provider import ChatRequest, NativeWebTools, ToolSchema
from robota.providers.encoding import EncodedTools, encode_groups
from robota.providers.responses.items import ItemDialect, ItemEncoder
from robota.providers.responses.schema import is_strict, make_strict

_MODEST = ("o1", "o3", "o4", "gpt-5-", "gpt-5.1")
"""Reasoning models whose highest effort is `high`."""
_NOT_REASONING = ("gpt-3", "gpt-4", "chatgpt", "gpt-5-chat")
"""Models that refuse a request for encrypted reasoning."""
_OWN_FIELDS = ("input", "messages")


class ResponsesEncoder:
    """Turns requests into bodies."""

    __slots__ = ("_dialect", "_summary", "_tools", "_web_fetch_tool")

    def __init__(
        self,
        dialect: ItemDialect,
        *,
        strict_tools: bool = False,
        reasoning_summary: str | None = None,
        web_fetch_tool: str | None = None,
    ) -> None:
        self._dialect = dialect
        self._web_fetch_tool = web_fetch_tool
        self._tools = STRICT_TOOLS if strict_tools else TOOLS
        self._summary = reasoning_summary

    def encode(self, request: ChatRequest, model: str) -> bytes:
        items = ItemEncoder(request.messages, self._dialect)
        fragments = encode_groups(request, self._dialect, items.encode_group)
        fields = self._fields(request, model, items.instructions)
        given = b",".join(filter(None, (*fragments, items.encode_tail())))
        pieces = [encode(fields)[:-1], b',"input":[', given, b"]"]
        tools = self._encode_all_tools(request)
        if tools:
            pieces += (b',"tools":[', tools, b"]")
        pieces.append(b"}")
        return b"".join(pieces)

    def _fields(self, request: ChatRequest, model: str, instructions: str | None) -> JsonObject:
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
            "include": ["reasoning.encrypted_content"] if _may_reason(model) else None,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_output_tokens": settings.max_tokens,
            "reasoning": self._reasoning(settings.effort, model),
        }
        if request.output_schema is not None:
            fields["text"] = {"format": _output_format(request.output_schema)}
        if request.tools and settings.tool_choice is not None:
            fields["tool_choice"] = _tool_choice(settings.tool_choice)
        for name, value in settings.extra.items():
            _add_extra(fields, name, value)
        return {name: value for name, value in fields.items() if value is not None}

    def _reasoning(self, effort: str | None, model: str) -> JsonObject | None:
        if effort in ("xhigh", "max") and _is_modest(model):
            effort = "high"
        wanted = {"effort": effort, "summary": self._summary}
        return {name: value for name, value in wanted.items() if value} or None

    def _encode_all_tools(self, request: ChatRequest) -> bytes:
        hosted: list[Json] = list(request.settings.extra.get("tools") or ())
        web = request.native_web_tools or NativeWebTools()
        hosted += [{"type": "web_search"}] if web.web_search else []
        hosted += [{"type": self._web_fetch_tool}] if web.web_fetch and self._web_fetch_tool else []
        return b",".join((*self._tools.find(request.tools), *map(encode, hosted)))


def _encode_tool(tool: ToolSchema, strict: JsonObject | None = None) -> bytes:
    return encode(
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters if strict is None else strict,
            "strict": strict is not None,
        }
    )


TOOLS = EncodedTools(_encode_tool)
STRICT_TOOLS = EncodedTools(lambda tool: _encode_tool(tool, make_strict(tool.parameters)))


def _family(model: str) -> str:
    """The model's own name, also of one that is fine-tuned or behind a gateway's prefix."""
    return model.rpartition("/")[2].removeprefix("ft:")


def _may_reason(model: str) -> bool:
    return not _family(model).startswith(_NOT_REASONING)


def _is_modest(model: str) -> bool:
    family = _family(model)
    return family == "gpt-5" or (family.startswith(_MODEST) and "codex-max" not in family)


def _tool_choice(choice: str) -> Json:
    return choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}


def _output_format(schema: JsonObject) -> JsonObject:
    return {"type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema)}


def _add_extra(fields: JsonObject, name: str, value: Json) -> None:
    """The caller's own field. It wins over ours; objects are merged, and `None` leaves a field out."""
    if name in _OWN_FIELDS:
        raise ConfigurationError(
            f"ModelSettings.extra cannot hold {name!r}; pass messages in ChatRequest.messages."
        )
    if name != "tools":  # they are added to ours
        ours = fields.get(name)
        fields[name] = {**ours, **value} if isinstance(ours, dict) and isinstance(value, dict) else value
