"""The tests of `robota.testing.conformance` that need no network, only somebody who plays replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from typing import ClassVar, TypeAlias, TypeVar

import msgspec
import pytest

from robota.core.errors import ConfigurationError
from robota.core.messages import Message, StopReason, TokenUsage, ToolCall, UserMessage
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativePayload,
    NativeWebTools,
    Provider,
    StopChunk,
    TextChunk,
    ToolInputChunk,
    ToolSchema,
    get_provider_capabilities,
)
from robota.providers.scripted import Delay, Stall, call
from robota.testing.http_server import PATIENCE

ScriptedReply: TypeAlias = str | Sequence[str | Chunk | Stall | Delay]
"""What both a script and a service can say."""

ADD = ToolSchema(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
TURTLE = "żółw 🐢 漢字"


Test = TypeVar("Test", bound=Callable[..., object])


def should(test: Test) -> Test:
    """Mark what a provider should do, but can do without: `must_only = True` leaves it out of a suite."""
    test.level = "should"  # type: ignore[attr-defined]
    return test


class Heard(msgspec.Struct):
    """What a provider made of a reply, filled as chunks come: a failure leaves what came before."""

    chunks: list[Chunk] = []

    @property
    def text(self) -> str:
        return "".join(chunk.text for chunk in self.chunks if isinstance(chunk, TextChunk))

    @property
    def calls(self) -> list[ToolCall]:
        return [chunk for chunk in self.chunks if isinstance(chunk, ToolCall)]

    @property
    def stops(self) -> list[StopReason]:
        return [chunk.reason for chunk in self.chunks if isinstance(chunk, StopChunk)]

    @property
    def usage(self) -> TokenUsage | None:
        """The last count: a later one replaces an earlier one of the same reply."""
        return next((chunk for chunk in reversed(self.chunks) if isinstance(chunk, TokenUsage)), None)


def ask(*messages: Message, **fields: object) -> ChatRequest:
    """A request with these messages, or with a greeting."""
    return ChatRequest(
        model="test-model",
        messages=messages or (UserMessage("Hello"),),
        **fields,  # type: ignore[arg-type]  # the fields are those of ChatRequest
    )


async def listen(provider: Provider, request: ChatRequest | None = None, heard: Heard | None = None) -> Heard:
    """Ask, and take the reply to its end."""
    heard = Heard() if heard is None else heard
    async with aclosing(provider.stream(request or ask())) as chunks:
        async for chunk in chunks:
            heard.chunks.append(chunk)
    return heard


@asynccontextmanager
async def using(provider: Provider) -> AsyncGenerator[Provider, None]:
    """The provider, closed afterwards if it can be."""
    if isinstance(provider, AbstractAsyncContextManager):
        async with provider:
            yield provider
    else:
        yield provider


class ReplyConformance:
    """What a provider makes of replies, whoever plays them."""

    pytestmark: ClassVar = [pytest.mark.anyio]
    patience: ClassVar[float] = PATIENCE
    """Seconds until something that should happen at once counts as not happening."""

    must_only: ClassVar[bool] = False
    """Leave out what a provider should do and need not."""

    @pytest.fixture(autouse=True)
    def leave_out_should(self, request: pytest.FixtureRequest) -> None:
        if self.must_only and getattr(request.function, "level", "must") == "should":
            pytest.skip("this suite asks only for what a provider must do")

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    def playing(self, *replies: ScriptedReply) -> AbstractAsyncContextManager[Provider]:
        """A provider whose model says these replies, one per request."""
        raise NotImplementedError

    async def test_text_deltas_arrive_in_order_and_whole(self) -> None:
        async with self.playing(["Hel", "lo, ", TURTLE, "\n\n", '"quoted"']) as provider:
            heard = await listen(provider)
        assert heard.text == f'Hello, {TURTLE}\n\n"quoted"'
        assert heard.stops == ["end_turn"]
        assert heard.calls == []

    async def test_a_streamed_call_becomes_one_complete_call(self) -> None:
        arguments = {"a": 1, "b": 2, "note": f"long enough to come in pieces, {TURTLE}"}
        async with self.playing([ToolCall("c1", "add", msgspec.json.encode(arguments).decode())]) as provider:
            heard = await listen(provider, ask(tools=(ADD,)))
        assert [(made.id, made.name) for made in heard.calls] == [("c1", "add")]
        assert msgspec.json.decode(heard.calls[0].arguments) == arguments
        assert heard.stops == ["tool_use"]

    async def test_text_and_calls_of_one_reply_keep_their_order_and_ids(self) -> None:
        made = [call("add", f"call-{n}", a=n, b=n) for n in (3, 1, 2)]
        async with self.playing(["Let me add.", *made]) as provider:
            heard = await listen(provider, ask(tools=(ADD,)))
        assert heard.text == "Let me add."
        assert [call.id for call in heard.calls] == ["call-3", "call-1", "call-2"]
        assert [msgspec.json.decode(call.arguments)["a"] for call in heard.calls] == [3, 1, 2]

    @should
    async def test_calls_that_share_an_id_are_all_delivered(self) -> None:
        async with self.playing([call("add", "call_0", a=1), call("add", "call_0", a=2)]) as provider:
            heard = await listen(provider, ask(tools=(ADD,)))
        assert [msgspec.json.decode(call.arguments)["a"] for call in heard.calls] == [1, 2]

    async def test_a_call_cut_off_by_the_token_limit_is_not_delivered(self) -> None:
        cut: list[Chunk] = [ToolInputChunk(0, '{"a": 1, "b', id="c1", name="add"), StopChunk("max_tokens")]
        async with self.playing(cut) as provider:
            heard = await listen(provider, ask(tools=(ADD,)))
        assert heard.calls == []
        assert heard.stops == ["max_tokens"]

    @should
    async def test_usage_is_reported(self) -> None:
        async with self.playing(["Hi", TokenUsage(1234, 56)]) as provider:
            heard = await listen(provider)
        assert heard.usage is not None
        assert (heard.usage.input_tokens, heard.usage.output_tokens) == (1234, 56)

    @pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "refusal", "content_filter"])
    async def test_the_stop_reason_is_reported_once(self, reason: StopReason) -> None:
        async with self.playing(["Well", StopChunk(reason)]) as provider:
            heard = await listen(provider)
        assert heard.stops == [reason]

    async def test_an_empty_reply_still_ends(self) -> None:
        async with self.playing([]) as provider:
            heard = await listen(provider)
        assert (heard.text, heard.stops) == ("", ["end_turn"])

    async def test_two_streams_of_one_provider_do_not_mix(self) -> None:
        replies = [[f"{name}{n} " for n in range(20)] for name in "ab"]
        async with self.playing(*replies) as provider:
            first, second = Heard(), Heard()
            streams = [(provider.stream(ask()), first), (provider.stream(ask()), second)]
            while streams:
                for stream, heard in tuple(streams):
                    chunk = await anext(stream, None)
                    if chunk is None:
                        streams.remove((stream, heard))
                    else:
                        heard.chunks.append(chunk)
        assert first.text == "".join(f"a{n} " for n in range(20))
        assert second.text == "".join(f"b{n} " for n in range(20))

    async def test_a_stream_that_waits_can_be_cancelled(self) -> None:
        async with self.playing(["Hi", Stall()], "Again") as provider:
            heard = await self.cancel_after_text(provider)
            assert heard.text == "Hi"
            assert (await listen(provider)).text == "Again"

    @should
    async def test_native_payloads_stay_away_unless_wanted(self) -> None:
        async with self.playing("Hi") as provider:
            heard = await listen(provider)
        assert not [chunk for chunk in heard.chunks if isinstance(chunk, NativePayload)]
        assert not [chunk for chunk in heard.chunks if isinstance(chunk, TextChunk) and chunk.raw is not None]

    async def test_capabilities_are_declared(self) -> None:
        async with self.playing() as provider:
            assert isinstance(getattr(provider, "capabilities", None), Capabilities)
            assert provider.name

    async def test_a_hosted_web_tool_it_does_not_have_is_refused(self) -> None:
        async with self.playing("Never.") as provider:
            await self.refuse_web(provider)

    async def cancel_after_text(self, provider: Provider) -> Heard:
        """Cancel the task that reads the reply once its text has come, while it waits for more."""
        heard, came = Heard(), asyncio.Event()

        async def read() -> None:
            async with aclosing(provider.stream(ask())) as chunks:
                async for chunk in chunks:
                    heard.chunks.append(chunk)
                    if heard.text:
                        came.set()

        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(read())
            with suppress(TimeoutError):
                await asyncio.wait_for(came.wait(), self.patience)
            reading.cancel()
        assert came.is_set(), "text must be given out as it comes, not when the reply is over"
        return heard

    async def refuse_web(self, provider: Provider) -> None:
        offered = get_provider_capabilities(provider)
        search, fetch = offered.web_search, offered.web_fetch
        wanted = NativeWebTools(
            web_search=not (search.supported and search.enabled),
            web_fetch=not (fetch.supported and fetch.enabled),
        )
        assert wanted != NativeWebTools(), (
            "this provider has every hosted web tool: set the tests that refuse one to None in its class"
        )
        with pytest.raises(ConfigurationError, match="native web"):
            await listen(provider, ask(native_web_tools=wanted))
