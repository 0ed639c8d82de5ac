"""Anthropic: Claude models through the Messages API. The adapter is loaded with the first provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota._lazy import lazy_names
from robota.core.jsontext import object_of
from robota.core.messages import JsonObject
from robota.providers.service import Service, base_path

if TYPE_CHECKING:
    from robota.core.provider_definition import ModelCapability, ModelLifecycle
    from robota.providers.anthropic.provider import AnthropicProvider

__all__ = ["API_URL", "AnthropicProvider"]
__getattr__, __dir__ = lazy_names(
    __name__, {"AnthropicProvider": "robota.providers.anthropic.provider"}, globals()
)
API_URL = "https://api.anthropic.com"
API_VERSION = "2026-10-21"
"""The first version that refuses sampling parameters."""
KEY_VARIABLE = "ANTHROPIC_API_KEY"
_LIFECYCLES: dict[str, ModelLifecycle] = {"deprecated": "deprecated", "retired": "unavailable"}
_CAPABILITIES: dict[str, ModelCapability] = {
    "image_input": "vision",
    "thinking": "reasoning",
    "structured_outputs": "json_schema",
    "server_tools": "native_web",
}


def _read_model(model: JsonObject) -> JsonObject:
    able = object_of(model.get("capabilities"))
    supported = {word for word, said in able.items() if object_of(said).get("supported") is True}
    found = (label for word, label in _CAPABILITIES.items() if word in supported)
    return {
        "display_name": model.get("display_name"),
        "lifecycle": _LIFECYCLES.get(str(model.get("lifecycle")), "active"),
        "capabilities": ("tools", *found, "streaming") if able else (),
        "context_window": model.get("max_input_tokens"),
        "max_output": model.get("max_tokens"),
    }


SERVICE = Service(
    title="Anthropic",
    description="Claude models, with thinking, web search and prompt caching.",
    options={"prompt_caching": bool},
    aliases=("claude",),
    docs="https://platform.claude.com/docs",
    key_page="https://platform.claude.com/settings/keys",
    key_variables=(KEY_VARIABLE,),
    base_url=API_URL,
    model="claude-sonnet-4-6",
    catalog="anthropic",
    list_url=lambda base_url: f"{base_path(base_url, '/messages', '/v1')[0]}/v1/models?limit=1000",
    read=_read_model,
    headers={"anthropic-version": API_VERSION},
)
