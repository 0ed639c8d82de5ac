from __future__ import annotations

import pytest

from robota.core.messages import AssistantMessage, ToolMessage, UserMessage
from robota.providers.gemini import GeminiProvider
from robota.providers.scripted import call
from robota.testing.conformance import HttpProviderConformance
from robota.testing.reply_conformance import ask, listen


class TestGeminiProvider(HttpProviderConformance):
    def make_provider(self, server):
        return GeminiProvider("test-key", server.url, "test-model")

    @pytest.mark.parametrize(
        "history",
        [
            pytest.param((ToolMessage("Old.", "c0", "add"), UserMessage("Go on.")), id="call compacted away"),
            pytest.param(
                (AssistantMessage("", (call("add", id="c1", a=1),)), ToolMessage("Old.", "c1", "add")),
                id="begins with a call",
            ),
            pytest.param(
                (
                    UserMessage("Old."),
                    AssistantMessage("", (call("add", id="c1", a=1),)),
                    UserMessage("Go on."),
                ),
                id="call without result",
            ),
            pytest.param(
                (UserMessage("Old."), AssistantMessage("Go on."), AssistantMessage("", (call("add", a=1),))),
                id="ends with a call after a model's turn",
            ),
        ],
    )
    async def test_a_history_with_holes_is_accepted(self, history) -> None:
        async with self.serving("Fine.") as (provider, server):
            assert (await listen(provider, ask(*history))).text == "Fine."
        sent = server.requests[0].conversation
        said = "\n".join(turn.text for turn in sent.turns)
        assert "Old." in said
        assert all(message.content in said for message in history)
