"""Gemini over `generateContent`."""

from robota.providers.gemini.provider import BASE_URL, GeminiProvider, GoogleProvider

__all__ = ["BASE_URL", "GeminiProvider", "GoogleProvider"]
