"""Claude over the Messages API."""

from robota.providers.anthropic.provider import API_URL, AnthropicProvider

__all__ = ["API_URL", "AnthropicProvider"]
