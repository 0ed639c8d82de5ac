"""Our adapter for each wire of the benchmark, loaded when it is asked for."""

from __future__ import annotations

from typing import Any

MODEL = "bench-model"


def open_provider(wire: str, base_url: str) -> Any:
    if wire == "messages":
        from robota.providers.anthropic import AnthropicProvider

        return AnthropicProvider("none", base_url, MODEL)
    if wire == "responses":
        from robota.providers.openai import OpenAIProvider

        return OpenAIProvider("none", base_url, MODEL, api="responses")
    if wire == "gemini":
        from robota.providers.gemini import GeminiProvider

        return GeminiProvider("none", base_url, MODEL)
    from robota.providers.openai_compatible import OpenAICompatibleProvider

    return OpenAICompatibleProvider("none", base_url, MODEL)
