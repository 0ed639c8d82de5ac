"""Requests of the Messages API: bodies joined from fragments that are encoded once, or objects for a client.

Cache marks stand behind the tools, the system prompt and the last two user turns: what the last request wrote
to the cache, this one finds again, however many blocks came in between. The marks are put into the joined
request, never into the fragments a history keeps.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from robota.core.jsontext import encode
from robota.core.messages import JsonObject, SystemMessage
from robota.core.models import get_model_max_output
from robota.core.provider import ChatRequest, ToolSchema
from robota.providers.anthropic.blocks import BlockDialect, text_block
from robota.providers.anthropic.turns import CLOSING_MARK, SYSTEM, TurnEncoder, mark_last
from robota.providers.encoding import EncodedTools, Encoder, encode_groups, own_fields, without_none

WEB_SEARCH: JsonObject = {"type": "web_search_20250305", "name": "web_search"}
MARKED_TURNS = 2
"""The API allows four marks; tools and system prompt have the other two."""
_LEAST_BUDGET = 1024
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 32_768, "max": 60_000}
"""Tokens of thinking for models that know no effort."""


class RequestOptions(Struct, frozen=True):
    """What one endpoint is sent besides the conversation."""

    sampling: bool = False
    """Whether it takes `temperature` and `top_p`, which the API has refused since its version 2026-10-21."""
    output_schema: bool = False
    prompt_caching: bool = True
    blocks: BlockDialect = BlockDialect()

    def fields(self, request: ChatRequest, model: str, left_out: Collection[str]) -> JsonObject:
        """All but messages, tools and system prompt; the caller's own fields win over ours."""
        settings = request.settings
        max_tokens = settings.max_tokens or get_model_max_output(model)
        fields: JsonObject = {
            "model": model,
            "max_tokens": max_tokens,
            "stream": True,
            "stop_sequences": settings.stop or None,
            **self._effort_fields(request, model, max_tokens),
        }
        if self.sampling:
            fields |= {"temperature": settings.temperature, "top_p": settings.top_p}
        if settings.tool_choice is not None and (request.tools or _wants_search(request)):
            fields["tool_choice"] = _encode_tool_choice(settings.tool_choice)
        fields = {name: value for name, value in fields.items() if name not in left_out}
        if settings.extra:
            fields.update(own_fields(settings, "messages", "system"))
        return without_none(fields)

    def _effort_fields(self, request: ChatRequest, model: str, max_tokens: int) -> JsonObject:
        config: JsonObject = {}
        thinking: JsonObject | None = None
        effort = request.settings.effort
        if effort and effort != "none":
            # a forced call and thinking exclude each other
            free = request.settings.tool_choice in (None, "auto", "none")
            if model_generation(model) != "budget":
                config["effort"] = "low" if effort == "minimal" else effort
            if model_generation(model) == "adaptive":
                thinking = {"type": "adaptive", "display": "summarized"} if free else None
            elif free:
                thinking = _budget(effort, max_tokens)
        if request.output_schema is not None and self.output_schema:
            config["format"] = {"type": "json_schema", "schema": request.output_schema}
        return {"thinking": thinking, "output_config": config or None}


class _MessagesEncoder(Encoder, frozen=True):
    optional = ("cache_control", "thinking", "output_config", "temperature", "top_p")

    options: RequestOptions

    @property
    def caching(self) -> bool:
        return self.options.prompt_caching and "cache_control" not in self.left_out


class MessagesEncoder(_MessagesEncoder, frozen=True):
    """Turns requests into bodies."""

    def encode(self, request: ChatRequest, model: str) -> bytes:
        caching, dialect = self.caching, self.options.blocks
        turns = TurnEncoder(request, dialect)
        fragments = encode_groups(request, dialect, turns.encode_group)
        pieces = [encode(self.options.fields(request, model, self.left_out))[:-1]]
        tools = self._encode_tools(request)
        if tools:
            pieces += (b',"tools":[', tools, b"]")
        system = _system_blocks(request, fragments.count(SYSTEM))
        if system:
            pieces += (b',"system":', encode(mark_last(system) if caching else system))
        pieces += (b',"messages":', *turns.join(fragments, marked=MARKED_TURNS if caching else 0), b"}")
        return b"".join(pieces)

    def _encode_tools(self, request: ChatRequest) -> bytes:
        wire, more = TOOLS.find(request.tools), _more_tools(request)
        if self.caching and more:
            more = mark_last(more)
        elif self.caching and wire:
            wire[-1] = wire[-1][:-1] + CLOSING_MARK
        return b",".join((*wire, *map(encode, more)))


class MessagesBuilder(_MessagesEncoder, frozen=True):
    """Turns requests into the objects that the vendor's own client takes; they say the same as the bodies."""

    def encode(self, request: ChatRequest, model: str) -> JsonObject:
        caching, dialect = self.caching, self.options.blocks
        tools = [*map(_tool, request.tools), *_more_tools(request)]
        system = _system_blocks(request, len(request.messages))
        if caching:
            tools, system = mark_last(tools), mark_last(system)
        turns = TurnEncoder(request, dialect).build(marked=MARKED_TURNS if caching else 0)
        fields = self.options.fields(request, model, self.left_out)
        body = {**fields, "tools": tools, "system": system, "messages": turns}
        return {name: value for name, value in body.items() if value != []}


def _system_blocks(request: ChatRequest, count: int) -> list[JsonObject]:
    """The system prompt; `count` is how many messages it has at most."""
    texts: list[str] = []
    for message in request.messages if count else ():
        if isinstance(message, SystemMessage):
            texts.append(message.content)
            if len(texts) == count:
                break
    return [text_block(text) for text in texts if text.strip()]


def _more_tools(request: ChatRequest) -> list[JsonObject]:
    """The hosted tools, and those that the caller adds."""
    hosted = [WEB_SEARCH] if _wants_search(request) else []
    return [*hosted, *(request.settings.extra.get("tools") or ())]


def _tool(tool: ToolSchema) -> JsonObject:
    """The tool under the name it has here: the API gets no aliases."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


TOOLS = EncodedTools(lambda tool: encode(_tool(tool)))


def model_generation(model: str) -> Literal["adaptive", "effort", "budget"]:
    """How a model is told how much to think. Names without a version are taken for new ones."""
    import re  # noqa: PLC0415 - only for requests that set an effort

    found = re.search(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)", model.lower())
    if found is None:
        return "adaptive"
    version = int(found[1]), int(found[2] or 0)
    if version >= (4, 6):
        return "adaptive"
    return "effort" if "opus" in model and version == (4, 5) else "budget"


def _budget(effort: str, max_tokens: int) -> JsonObject | None:
    tokens = min(_BUDGETS.get(effort, _BUDGETS["medium"]), max_tokens - _LEAST_BUDGET)
    return {"type": "enabled", "budget_tokens": tokens} if tokens >= _LEAST_BUDGET else None


def _wants_search(request: ChatRequest) -> bool:
    return request.native_web_tools is not None and request.native_web_tools.web_search


def _encode_tool_choice(choice: str) -> JsonObject:
    if choice in ("auto", "none"):
        return {"type": choice}
    return {"type": "any"} if choice == "required" else {"type": "tool", "name": choice}
