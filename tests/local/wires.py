"""The three protocols that a llama.cpp server speaks, by our adapters for them."""

from __future__ import annotations

from collections.abc import Callable

from robota.core.provider import Provider
from robota.providers.anthropic import AnthropicProvider
from robota.providers.openai import OpenAIProvider
from robota.providers.openai_compatible import OpenAICompatibleProvider

WIRES: dict[str, Callable[[str], Provider]] = {
    "chat": lambda url: OpenAICompatibleProvider(base_url=f"{url}/v1", model="scripted"),
    "messages": lambda url: AnthropicProvider("no-key-needed", url, "scripted"),
    "responses": lambda url: OpenAIProvider("no-key-needed", f"{url}/v1", "scripted", api="responses"),
}
