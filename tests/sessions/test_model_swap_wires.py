"""One conversation with tools, images and thinking, carried on by one service after another."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.recorded_session import RecordedSession, assert_replays
from tests.support.session_options import fork_session

from robota.core.events import ModelChanged, ToolEnded
from robota.core.messages import AssistantMessage, ImagePart, ReasoningBlock, TextPart, ToolMessage
from robota.core.provider import ReasoningChunk
from robota.providers.anthropic import AnthropicProvider
from robota.providers.gemini import GeminiProvider
from robota.providers.openai import OpenAIProvider
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.sessions.store.session_store import SessionStore
from robota.testing import ModelServer, call

pytestmark = pytest.mark.anyio
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
THINKING: dict[str, list[Any]] = {
    "anthropic": [ReasoningChunk("I add."), ReasoningBlock("I add.", "signature-of-anthropic")],
    "openai": [ReasoningBlock("I add.", None, {"encrypted_content": "signature-of-openai"})],
    "gemini": [ReasoningChunk("I add."), ReasoningBlock("I add.", "signature-of-gemini")],
    "openai-compatible": [ReasoningChunk("I add.")],
}
"""What each service says before it calls a tool."""


class Services:
    """The four adapters, all with one model server that checks each request as the vendor would."""

    def __init__(self, server: ModelServer, closing: AsyncExitStack) -> None:
        self.providers = {
            provider.name: provider
            for provider in (
                AnthropicProvider("test", server.url),
                OpenAIProvider("test", f"{server.url}/v1", api="responses"),
                GeminiProvider("test", server.url),
                OpenAICompatibleProvider("test", f"{server.url}/v1"),
            )
        }
        for provider in self.providers.values():
            closing.push_async_exit(provider)


def turns_of(name: str) -> list[list[Any] | str]:
    """A prompt's two replies: one that thinks and calls a tool, and one that answers."""
    return [[*THINKING[name], f"{name} adds.", call("add", "call_0", a=1, b=2)], f"{name} says 3."]


ROUTE = ("anthropic", "openai", "gemini", "openai-compatible", "gemini", "anthropic", "openai")


async def test_each_service_accepts_what_the_others_said(tmp_path: Path) -> None:
    replies = [reply for name in ROUTE for reply in turns_of(name)]
    async with AsyncExitStack() as closing:
        server = await closing.enter_async_context(ModelServer(*replies))
        services = Services(server, closing)
        recorded = RecordedSession(tmp_path, services.providers["anthropic"], model="anthropic-model")
        session = recorded.session
        answers = [await session.run((TextPart("Look and add 1 and 2."), ImagePart(PIXEL)))]
        for name in ROUTE[1:]:
            session.set_provider(services.providers[name], f"{name}-model")
            answers.append(await session.run("Once more."))
        await session.shutdown()

        assert answers == [f"{name} says 3." for name in ROUTE]
        assert_everything_was_sent(server)
        assert_no_service_got_the_thinking_of_another(server)
        await assert_replays(recorded)
        assert_notes(recorded.told(ModelChanged))

        # From its middle onto another service.
        async with ModelServer("Still 3.") as elsewhere, AsyncExitStack() as also:
            chat = Services(elsewhere, also).providers["openai-compatible"]
            fork = fork_session(
                SessionStore(tmp_path / "sessions"), "s-1", step=9, provider=chat, model="chat-model"
            )
            assert await fork.run("And now?") == "Still 3."
            await fork.shutdown()


def assert_everything_was_sent(server: ModelServer) -> None:
    """Each request has the words of all before it, and each result with its call."""
    assert len(server.requests) == 2 * len(ROUTE)
    for number, request in enumerate(server.requests):
        conversation = request.conversation
        words = "\n".join(turn.text for turn in conversation.turns)
        for name in ROUTE[: number // 2]:
            assert f"{name} adds." in words
            assert f"{name} says 3." in words
        calls = [made.id for turn in conversation.turns for made in turn.calls]
        answered = [turn.answers for turn in conversation.turns if turn.role == "tool"]
        assert len(calls) == (number + 1) // 2
        assert sorted(calls) == sorted(answered)
        takes_images = ROUTE[number // 2] != "openai-compatible"
        assert (PIXEL.encode() in request.raw) is takes_images
        assert takes_images or b"left out: this endpoint does not take images" in request.raw


def assert_no_service_got_the_thinking_of_another(server: ModelServer) -> None:
    for number, request in enumerate(server.requests):
        here, heard = ROUTE[number // 2], ROUTE[: (number + 1) // 2]
        for name in ("anthropic", "openai", "gemini"):
            own = name == here and name in heard
            assert (f"signature-of-{name}".encode() in request.raw) is own, f"request {number} to {here}"


def assert_notes(told: list[ModelChanged]) -> None:
    assert [change.provider for change in told] == list(ROUTE[1:])
    assert "One piece of thinking by anthropic will not be sent to openai." in told[0].notes
    assert "One image of the history will be a note: openai-compatible takes no images." in told[2].notes
    assert not any("images" in note for change in told[:2] for note in change.notes)


async def test_a_swap_between_two_rounds_of_one_run(tmp_path: Path) -> None:
    replies = [turns_of(name)[0] for name in ROUTE[:4]]
    async with AsyncExitStack() as closing:
        server = await closing.enter_async_context(ModelServer(*replies, "Done."))
        services = Services(server, closing)
        recorded = RecordedSession(tmp_path, services.providers["anthropic"], model="anthropic-model")
        session, left = recorded.session, list(ROUTE[1:5])

        def swap(event: object) -> None:
            if left:
                name = left.pop(0)
                session.set_provider(services.providers[name], f"{name}-model")

        session.events.on(ToolEnded, swap)
        assert await session.run("Go.") == "Done."
        roles = [type(message) for message in session.messages[2:]]
        assert roles == [AssistantMessage, ToolMessage] * 4 + [AssistantMessage]
        assert_no_mixture(server)
        await session.shutdown()
        await assert_replays(recorded)


def assert_no_mixture(server: ModelServer) -> None:
    """Provider and model of a request always belong together."""
    for name, request in zip(ROUTE, server.requests, strict=False):
        model = request.json.get("model") or request.path
        assert f"{name}-model" in model
