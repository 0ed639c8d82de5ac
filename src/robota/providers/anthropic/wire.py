"""Requests of the Messages API, joined from fragments that are encoded once.

Cache marks stand behind the tools, the system prompt and the last two user turns: what the last request wrote
to the cache, this one finds again, however many blocks came in between. The marks are put into the joined
request, never into the fragments a history keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject, SystemMessage
from robota.core.models import get_model_max_output
from robota.core.provider import ChatRequest, ModelSettings, ToolSchema
from robota.providers.anthropic.blocks import BlockDialect
from robota.providers.anthropic.turns import (
    BEGIN_NOTE,
    CLOSING,
    CLOSING_MARK,
    OPENING,
    SYSTEM,
    TurnFolder,
    mark_turns,
)
from robota.providers.encoding import EncodedTools, encode_groups

WEB_SEARCH: JsonObject = {"type": "web_search_20250305", "name": "web_search"}
CACHE_MARK = {"type": "ephemeral"}
MARKED_TURNS = 2
"""The API allows four marks; tools and system prompt have the other two."""
_LEAST_BUDGET = 1024
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 32_768, "max": 60_000}
"""Tokens of thinking for models that know no effort."""


class WireOptions(Struct, frozen=True):
    """What one endpoint is sent besides the conversation."""

    sampling: bool = False
    """Whether it takes `temperature` and `top_p`, which the API has refused since its version 2026-10-21."""
    output_schema: bool = False
    prompt_caching: bool = True
    blocks: BlockDialect = BlockDialect()


class MessagesEncoder:
    """Turns requests into bodies."""

    __slots__ = ("_options",)

    def __init__(self, options: WireOptions) -> None:
        self._options = options

    def encode(self, request: ChatRequest, model: str) -> bytes:
        dialect = self._options.blocks
        folder = TurnFolder(request.messages, dialect)
        fragments = encode_groups(request, dialect, folder.encode_group)
        pieces = [encode(self._fields(request, model))[:-1]]
        tools = self._encode_tools(request)
        if tools:
            pieces += (b',"tools":[', tools, b"]")
        pieces += self._encode_system(request, fragments)
        pieces += (b',"messages":[', *self._encode_turns(fragments, folder), b"]}")
        return b"".join(pieces)

    # --- the conversation ----------------------------------------------------------------------------------

    def _encode_turns(self, fragments: list[bytes], folder: TurnFolder) -> list[bytes]:
        end = folder.close()
        if end:
            fragments = [*fragments, OPENING["user"] + encode(end)[1:-1]]
        turns = mark_turns(fragments, MARKED_TURNS) if self._options.prompt_caching else list(fragments)
        first = next(place for place, fragment in enumerate(turns) if len(fragment) > len(SYSTEM))
        if turns[first].startswith(OPENING["assistant"]):
            begin = OPENING["user"] + encode(BEGIN_NOTE)
            turns[first] = begin[len(CLOSING) + 1 :] + turns[first]
        else:
            turns[first] = turns[first][len(CLOSING) + 1 :]  # there is no turn before it to be closed
        turns.append(CLOSING)
        return turns

    def _encode_system(self, request: ChatRequest, fragments: list[bytes]) -> list[bytes]:
        count = fragments.count(SYSTEM)
        texts: list[str] = []
        for message in request.messages if count else ():
            if isinstance(message, SystemMessage):
                texts.append(message.content)
                if len(texts) == count:
                    break
        blocks: list[JsonObject] = [{"type": "text", "text": text} for text in texts if text.strip()]
        if not blocks:
            return []
        if self._options.prompt_caching:
            blocks[-1]["cache_control"] = CACHE_MARK
        return [b',"system":', encode(blocks)]

    # --- the fields besides messages, tools and system prompt -----------------------------------------------

    def _fields(self, request: ChatRequest, model: str) -> JsonObject:
        settings = request.settings
        max_tokens = settings.max_tokens or get_model_max_output(model)
        fields: JsonObject = {
            "model": model,
            "max_tokens": max_tokens,
            "stream": True,
            "stop_sequences": settings.stop or None,
            **self._effort_fields(request, model, max_tokens),
        }
        if self._options.sampling:
            fields |= {"temperature": settings.temperature, "top_p": settings.top_p}
        if settings.tool_choice is not None and (request.tools or _wants_search(request)):
            fields["tool_choice"] = _encode_tool_choice(settings.tool_choice)
        if settings.extra:
            fields.update(_checked_extra(settings))
        return {name: value for name, value in fields.items() if value is not None}

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
        if request.output_schema is not None and self._options.output_schema:
            config["format"] = {"type": "json_schema", "schema": request.output_schema}
        return {"thinking": thinking, "output_config": config or None}

    def _encode_tools(self, request: ChatRequest) -> bytes:
        more: list[JsonObject] = [WEB_SEARCH] if _wants_search(request) else []
        more += request.settings.extra.get("tools") or ()
        wire = TOOLS.find(request.tools)
        if self._options.prompt_caching and more:
            more[-1] = {**more[-1], "cache_control": CACHE_MARK}
        elif self._options.prompt_caching and wire:
            wire[-1] = wire[-1][:-1] + CLOSING_MARK
        return b",".join((*wire, *map(encode, more)))


def _encode_tool(tool: ToolSchema) -> bytes:
    """The tool under the name it has here: the API gets no aliases."""
    return encode({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})


TOOLS = EncodedTools(_encode_tool)


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


def _checked_extra(settings: ModelSettings) -> Mapping[str, Json]:
    """The caller's own fields. They win over ours, `None` leaves a field out, `tools` are added to ours."""
    for name in ("messages", "system"):
        if name in settings.extra:
            raise ConfigurationError(
                f"ModelSettings.extra cannot hold {name!r}; pass it in ChatRequest.messages."
            )
    return {name: value for name, value in settings.extra.items() if name != "tools"}
