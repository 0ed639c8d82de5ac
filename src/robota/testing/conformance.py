"""Tests that every provider must pass, ours and yours. Subclass one of the two suites in a test module.

    class TestMyProvider(HttpProviderConformance):
        def make_provider(self, server):
            return MyProvider(base_url=f"{server.url}/v1", api_key="test", retries=0)

`HttpProviderConformance` is for adapters that talk to a service: a `ModelServer` plays the service.
`ProviderConformance` is for providers that play a script themselves; it has the tests that need no network.
A provider under test must not retry on its own: one failure of the service is one error.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import ClassVar

import msgspec
import pytest

from robota.core.errors import (
    AuthenticationError,
    NetworkError,
    ProviderError,
    RateLimitError,
    RobotaError,
)
from robota.core.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import (
    NativePayload,
    Provider,
    TextChunk,
    ToolInputChunk,
)
from robota.providers.scripted import Stall, call
from robota.testing.model_script import (
    Crlf,
    Cut,
    Drip,
    ErrorEvent,
    HttpError,
    KeepAlive,
    Malformed,
    ModelReply,
    ModelStep,
    NoEndMark,
)
from robota.testing.model_server import ModelServer
from robota.testing.reply_conformance import (
    ADD,
    TURTLE,
    Heard,
    ReplyConformance,
    ScriptedReply,
    ask,
    listen,
    should,
    using,
)

UNUSUAL_HISTORIES = (
    pytest.param((AssistantMessage("Summary."), UserMessage("Go on.")), id="begins with the assistant"),
    pytest.param((UserMessage("First."), UserMessage("Second.")), id="two user messages in a row"),
    pytest.param(
        (UserMessage("First."), AssistantMessage(""), UserMessage("Second.")),
        id="empty assistant message",
    ),
    pytest.param((SystemMessage("Be brief."), AssistantMessage("Summary.")), id="ends with the assistant"),
)
HISTORIES_WITH_HOLES = (
    pytest.param((ToolMessage("Old.", "c0", "add"), UserMessage("Go on.")), id="call compacted away"),
    pytest.param(
        (
            UserMessage("Add."),
            AssistantMessage("", (call("add", "c1", a=1),)),
            ToolMessage("New.", "c1", "add"),
            ToolMessage("Old.", "c0", "add"),
        ),
        id="one of two calls compacted away",
    ),
    pytest.param(
        (AssistantMessage("", (call("add", "c1", a=1),)), ToolMessage("Old.", "c1", "add")),
        id="begins with a call",
    ),
    pytest.param(
        (
            UserMessage("Old."),
            AssistantMessage("", (call("add", "c1", a=1),)),
            UserMessage("Go on."),
        ),
        id="call without result",
    ),
    pytest.param(
        (UserMessage("Old."), AssistantMessage("Go on."), AssistantMessage("", (call("add", a=1),))),
        id="ends with a call after an answer",
    ),
)


class ProviderConformance(ReplyConformance):
    """For a provider that can be told what to say."""

    def make_provider(self, script: Sequence[ScriptedReply]) -> Provider:
        """A provider that says these replies, one per request."""
        raise NotImplementedError

    @asynccontextmanager
    async def playing(self, *replies: ScriptedReply) -> AsyncIterator[Provider]:
        async with using(self.make_provider(replies)) as provider:
            yield provider


class HttpProviderConformance(ReplyConformance):
    """For an adapter of a model service."""

    cut_every: ClassVar[int] = 1
    """How many bytes lie between two places where a stream is cut; 1 tries every one."""

    def make_provider(self, server: ModelServer) -> Provider:
        """The provider, talking to this server and without retries."""
        raise NotImplementedError

    @asynccontextmanager
    async def playing(self, *replies: ScriptedReply) -> AsyncIterator[Provider]:
        async with self.serving(*replies) as (provider, _):
            yield provider

    @asynccontextmanager
    async def serving(self, *replies: ModelReply) -> AsyncIterator[tuple[Provider, ModelServer]]:
        async with ModelServer(*replies) as server, using(self.make_provider(server)) as provider:
            yield provider, server

    # --- requests ----------------------------------------------------------------------------------

    async def test_the_whole_conversation_is_sent(self) -> None:
        asked = call("add", "c1", a=1, b=2)
        history = (
            SystemMessage("Be brief."),
            UserMessage(f"What is 1 + 2, {TURTLE}?"),
            AssistantMessage("Let me add.", (asked,)),
            ToolMessage("3", tool_call_id="c1", name="add"),
            AssistantMessage("Three."),
            UserMessage("Thanks."),
        )
        async with self.serving("Welcome.") as (provider, server):
            await listen(provider, ask(*history, tools=(ADD,)))
        sent = server.requests[0].conversation
        assert sent.tools == ("add",)
        assert sent.texts("system") == ["Be brief."]
        assert sent.texts("user") == [f"What is 1 + 2, {TURTLE}?", "Thanks."]
        assert sent.texts("assistant") == ["Let me add.", "Three."]
        assert sent.texts("tool") == ["3"]
        calls = [made for turn in sent.turns for made in turn.calls]
        assert [(made.name, msgspec.json.decode(made.arguments)) for made in calls] == [
            ("add", {"a": 1, "b": 2})
        ]
        assert [turn.answers for turn in sent.turns if turn.role == "tool"] == [calls[0].id]

    @pytest.mark.parametrize("history", UNUSUAL_HISTORIES)
    async def test_an_unusual_history_is_sent_without_losing_words(self, history: Sequence[Message]) -> None:
        async with self.serving("Fine.") as (provider, server):
            heard = await listen(provider, ask(*history))
        assert heard.text == "Fine."
        sent = "\n".join(turn.text for turn in server.requests[0].conversation.turns)
        places = [sent.find(message.content) for message in history]
        assert -1 not in places
        assert places == sorted(places)

    @should
    @pytest.mark.parametrize("history", HISTORIES_WITH_HOLES)
    async def test_a_history_with_holes_is_sent_without_losing_words(
        self, history: Sequence[Message]
    ) -> None:
        kept = msgspec.json.encode(list(history))
        async with self.serving("Fine.") as (provider, server):
            assert (await listen(provider, ask(*history, tools=(ADD,)))).text == "Fine."
        said = "\n".join(turn.text for turn in server.requests[0].conversation.turns)
        assert all(message.content in said for message in history)
        assert msgspec.json.encode(list(history)) == kept

    @should
    async def test_an_id_used_again_in_a_later_turn_is_answered_in_its_turn(self) -> None:
        history: list[Message] = []
        for n in (1, 2):
            history += (
                UserMessage(f"Question {n}"),
                AssistantMessage("", (call("add", "call_0", a=n, b=n),)),
                ToolMessage(f"Result {n}", tool_call_id="call_0", name="add"),
            )
        async with self.serving("Fine.") as (provider, server):
            await listen(provider, ask(*history, tools=(ADD,)))
        turns = server.requests[0].conversation.turns
        pairs = [(before, turn) for before, turn in pairwise(turns) if turn.role == "tool"]
        assert [turn.text for _, turn in pairs] == ["Result 1", "Result 2"]
        assert all(before.calls[0].id == turn.answers for before, turn in pairs)

    @should
    async def test_unreadable_arguments_in_the_history_do_not_spoil_the_request(self) -> None:
        history = (
            UserMessage("Add."),
            AssistantMessage("", (ToolCall("c1", "add", '{"a": 1, "b'),)),
            ToolMessage("Error: the arguments are not JSON.", tool_call_id="c1", name="add"),
        )
        async with self.serving("Fine.") as (provider, _):
            assert (await listen(provider, ask(*history, tools=(ADD,)))).text == "Fine."

    async def test_a_refused_web_tool_costs_no_request(self) -> None:
        async with self.serving("Never.") as (provider, server):
            await self.refuse_web(provider)
            assert server.requests == []

    @should
    async def test_native_payloads_come_when_wanted(self) -> None:
        async with self.serving("Hi") as (provider, _):
            heard = await listen(provider, ask(want_raw=True))
        assert heard.text == "Hi"
        assert [chunk for chunk in heard.chunks if isinstance(chunk, NativePayload)]

    # --- errors ------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("status", "expected"),
        [(401, AuthenticationError), (429, RateLimitError), (400, ProviderError), (500, ProviderError),
         (503, ProviderError), (529, ProviderError)],
    )  # fmt: skip
    async def test_a_refusal_is_the_error_of_its_kind(self, status: int, expected: type[RobotaError]) -> None:
        async with self.serving(HttpError(status)) as (provider, server):
            with pytest.raises(expected) as caught:
                await listen(provider)
        assert type(caught.value) is expected
        assert getattr(caught.value, "status", None) == status
        assert "Scripted failure" in str(caught.value)
        assert len(server.requests) == 1

    @should
    async def test_the_wait_that_the_service_asks_for_is_in_the_error(self) -> None:
        moment = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
        refusals = [HttpError(429, headers={"retry-after": asked}) for asked in ("7", moment)]
        waits = []
        async with self.serving(*refusals) as (provider, _):
            for _refusal in refusals:
                with pytest.raises(RateLimitError) as caught:
                    await listen(provider)
                waits.append(caught.value.retry_after)
        assert waits[0] == 7
        assert waits[1] is not None
        assert 0 < waits[1] <= 61

    @should
    async def test_a_web_page_instead_of_a_reply_is_an_error_without_markup(self) -> None:
        page = HttpError.html(502)
        async with self.serving(page, HttpError(200, page.body)) as (provider, _):
            for _ in range(2):
                with pytest.raises(ProviderError) as caught:
                    await listen(provider)
                assert "<" not in str(caught.value)

    async def test_no_server_and_no_answer_are_network_errors(self) -> None:
        async with self.serving(Cut()) as (provider, _):
            with pytest.raises(NetworkError):
                await listen(provider)
        async with ModelServer() as gone:
            pass
        async with using(self.make_provider(gone)) as provider:
            with pytest.raises(NetworkError):
                await listen(provider)

    @pytest.mark.parametrize("fault", [Malformed(), ErrorEvent("The model is overloaded.")])
    async def test_a_fault_inside_the_stream_is_an_error_after_the_text(self, fault: ModelStep) -> None:
        async with self.serving(["Hel", "lo", fault]) as (provider, _):
            heard = Heard()
            with pytest.raises(ProviderError):
                await listen(provider, heard=heard)
        assert heard.text == "Hello"
        assert heard.stops == []

    async def test_a_stream_cut_at_any_byte_gives_what_came_and_no_half_call(self) -> None:
        whole = call("add", "c1", a=1, b=22)
        async with self.serving(["Hi ", TURTLE, whole]) as (provider, server):
            await listen(provider)
            size = server.requests[0].reply_size
        cuts: list[list[ModelStep]] = [
            ["Hi ", TURTLE, whole, Cut(after_bytes=at)] for at in range(0, size, self.cut_every)
        ]
        async with self.serving(*cuts) as (provider, _):
            for _ in cuts:
                heard = Heard()
                try:
                    await listen(provider, heard=heard)
                except (NetworkError, ProviderError):
                    assert f"Hi {TURTLE}".startswith(heard.text)
                    assert heard.calls in ([], [whole])
                    continue
                assert (heard.text, heard.calls, heard.stops) == (f"Hi {TURTLE}", [whole], ["tool_use"])

    async def test_a_body_that_ends_early_but_properly_is_an_error_too(self) -> None:
        begun = ToolInputChunk(0, '{"a": 1}', id="c1", name="add")
        async with self.serving(["Hel", begun, Cut(clean=True)]) as (provider, _):
            heard = Heard()
            with pytest.raises((NetworkError, ProviderError)):
                await listen(provider, heard=heard)
        assert (heard.text, heard.calls) == ("Hel", [])

    # --- streams as networks deliver them ------------------------------------------------------------

    @pytest.mark.parametrize(
        "manners",
        [(Drip(1),), (Drip(3), Crlf()), (Drip(100_000),), (Crlf(),), (KeepAlive(), KeepAlive(text="")),
         (NoEndMark(),), (NoEndMark(), Crlf(), Drip(7))],
    )  # fmt: skip
    async def test_the_reply_is_the_same_however_it_is_delivered(
        self, manners: tuple[ModelStep, ...]
    ) -> None:
        made = call("add", "c1", a=1, b=2)
        async with self.serving([*manners, "Hi ", *manners, TURTLE, made]) as (provider, _):
            heard = await listen(provider, ask(tools=(ADD,)))
        assert (heard.text, heard.calls, heard.stops) == (f"Hi {TURTLE}", [made], ["tool_use"])

    async def test_cancelling_closes_the_connection(self) -> None:
        async with self.serving(["Hi", Stall()]) as (provider, server):
            await self.cancel_after_text(provider)
            await server.requests[0].disconnected.wait(self.patience)

    async def test_leaving_a_stream_closes_the_connection(self) -> None:
        async with self.serving(["Hi", Stall()]) as (provider, server):
            async with aclosing(provider.stream(ask())) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, TextChunk):
                        break
            await server.requests[0].disconnected.wait(self.patience)

    # The first loop dies while its connection is kept alive: that is the situation, not a leak of the test.
    @should
    @pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
    def test_one_provider_serves_one_event_loop_after_another(self) -> None:
        with ModelServer("first", "second").in_thread() as server:
            assert self._ask_in_two_loops(self.make_provider(server)) == ["first", "second"]
        gc.collect()  # the orphaned connection complains here, where nobody listens

    def _ask_in_two_loops(self, provider: Provider) -> list[str]:
        async def ask_last() -> Heard:
            async with using(provider):
                return await listen(provider)

        return [asyncio.run(listen(provider)).text, asyncio.run(ask_last()).text]
