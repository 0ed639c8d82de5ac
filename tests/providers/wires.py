"""The four wires, by what tests need of them: an adapter, a reader, a recorded reply and its meaning."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from robota.providers.anthropic import AnthropicProvider
from robota.providers.anthropic import request as messages
from robota.providers.anthropic.reply import BlockContent
from robota.providers.chat import request as chat
from robota.providers.chat.reply import ChatContent
from robota.providers.encoding import EncodedTools
from robota.providers.gemini import GeminiProvider
from robota.providers.gemini import request as gemini
from robota.providers.gemini.reply import GeminiContent
from robota.providers.openai import OpenAIProvider
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.responses import request as responses
from robota.providers.responses.reply import ResponseContent
from robota.providers.wire.errors import Peer
from robota.providers.wire.reply import ReplyContent, ReplyReader

KEY = "sk-very-secret-key"
MODEL = "test-model"
RECORDED = Path(__file__).parent / "recorded"
"""Replies in the form that each vendor documents: written by hand, not captured from a live service."""


class Wire(NamedTuple):
    name: str
    content: Callable[[], ReplyContent]
    adapter: Callable[..., Any]
    path: str
    """What its clients expect at the end of a base URL."""
    tools: EncodedTools

    def connect(self, url: str, **options: Any) -> Any:
        """The adapter, talking to a server without a path in its URL."""
        base_url = options.pop("base_url", url + self.path)
        return self.adapter(**{"api_key": KEY, "base_url": base_url, "model": MODEL, **options})

    def reader(self) -> ReplyReader:
        return ReplyReader(self.content(), Peer(self.name))

    @property
    def stream(self) -> bytes:
        """A recorded reply: thinking, text, two calls, usage."""
        return (RECORDED / f"{self.name}.sse").read_bytes()

    @property
    def document(self) -> Any:
        """The same reply, not streamed."""
        return json.loads((RECORDED / f"{self.name}.json").read_text())

    def variants(self) -> dict[str, bytes]:
        """The reply with both kinds of line ends."""
        plain = self.stream.replace(b"\r\n", b"\n")
        return {"lf": plain, "crlf": plain.replace(b"\n", b"\r\n")}


def _responses(**options: Any) -> OpenAIProvider:
    return OpenAIProvider(api="responses", **options)


WIRES = {
    wire.name: wire
    for wire in (
        Wire("chat", ChatContent, OpenAICompatibleProvider, "/v1", chat.TOOLS),
        Wire("responses", ResponseContent, _responses, "/v1", responses.TOOLS),
        Wire("anthropic", BlockContent, AnthropicProvider, "", messages.TOOLS),
        Wire("gemini", GeminiContent, GeminiProvider, "", gemini.FUNCTIONS),
    )
}
on_every_wire = pytest.mark.parametrize("wire", WIRES.values(), ids=list(WIRES))
