"""The suite itself is tested by providers that each break one promise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from robota.core.errors import NetworkError, ProviderError
from robota.core.messages import TokenUsage, ToolCall
from robota.core.provider import ChatRequest, NativePayload, StopChunk, TextChunk, ToolInputChunk
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.testing.conformance import HttpProviderConformance

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.anyio


class Altered:
    """A good provider whose stream goes through a generator that spoils it."""

    def __init__(self, inner, spoil):
        self.inner, self.spoil = inner, spoil
        self.name, self.capabilities = inner.name, inner.capabilities

    def stream(self, request):
        return self.spoil(self.inner, request)

    async def __aenter__(self):
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *error):
        await self.inner.__aexit__(*error)


def suite_for(spoil):
    class Suite(HttpProviderConformance):
        patience = 0.2

        def make_provider(self, server):
            good = OpenAICompatibleProvider(base_url=f"{server.url}/v1", api_key="test", model="m")
            return Altered(good, spoil)

    return Suite()


def each_chunk(change):
    """A spoiler that replaces every chunk by what `change` makes of it."""

    async def spoil(provider, request):
        async for chunk in provider.stream(request):
            for changed in change(chunk):
                yield changed

    spoil.__name__ = change.__name__
    return spoil


def lose(kind):
    def change(chunk):
        return () if isinstance(chunk, kind) else (chunk,)

    change.__name__ = f"lose_{kind.__name__}"
    return each_chunk(change)


@each_chunk
def number_calls(chunk):
    return (ToolCall("call_1", chunk.name, chunk.arguments) if isinstance(chunk, ToolCall) else chunk,)


@each_chunk
def stop_as_usual(chunk):
    return (StopChunk("end_turn") if isinstance(chunk, StopChunk) else chunk,)


@each_chunk
def say_twice(chunk):
    return (chunk, chunk) if isinstance(chunk, (TextChunk, ToolCall)) else (chunk,)


async def drop_errors(provider, request):
    try:
        async for chunk in provider.stream(request):
            yield chunk
    except (NetworkError, ProviderError):
        yield StopChunk("end_turn")


async def guess_calls(provider, request):
    """Yields a call as soon as it begins, as if its arguments were complete."""
    async for chunk in provider.stream(request):
        if isinstance(chunk, ToolInputChunk) and chunk.name:
            yield ToolCall(chunk.id, chunk.name, chunk.delta)
        if not isinstance(chunk, ToolCall):
            yield chunk


async def wait_to_the_end(provider, request):
    for chunk in [chunk async for chunk in provider.stream(request)]:
        yield chunk


async def record_always(provider, request):
    wanted = ChatRequest(model="m", messages=request.messages, tools=request.tools, want_raw=True)
    async for chunk in provider.stream(wanted):
        yield chunk


async def forget_history(provider, request):
    last = ChatRequest(model="m", messages=request.messages[-1:], tools=request.tools)
    async for chunk in provider.stream(last):
        yield chunk


async def send_before_checking(provider, request):
    plain = ChatRequest(model="m", messages=request.messages)
    async for chunk in provider.stream(plain):
        yield chunk
    async for chunk in provider.stream(request):
        yield chunk


abandoned = []


async def never_close(provider, request):
    stream = provider.stream(request)
    abandoned.append(stream)
    async for chunk in stream:
        yield chunk


BROKEN_PROMISES = [
    (say_twice, "test_text_deltas_arrive_in_order_and_whole"),
    (say_twice, "test_a_streamed_call_becomes_one_complete_call"),
    (number_calls, "test_text_and_calls_of_one_reply_keep_their_order_and_ids"),
    (lose(ToolCall), "test_calls_that_share_an_id_are_all_delivered"),
    (guess_calls, "test_a_call_cut_off_by_the_token_limit_is_not_delivered"),
    (wait_to_the_end, "test_a_stream_that_waits_can_be_cancelled"),
    (never_close, "test_leaving_a_stream_closes_the_connection"),
    (lose(TokenUsage), "test_usage_is_reported"),
    (lose(StopChunk), "test_an_empty_reply_still_ends"),
    (record_always, "test_native_payloads_stay_away_unless_wanted"),
    (lose(NativePayload), "test_native_payloads_come_when_wanted"),
    (forget_history, "test_the_whole_conversation_is_sent"),
    (send_before_checking, "test_a_refused_web_tool_costs_no_request"),
    (drop_errors, "test_no_server_and_no_answer_are_network_errors"),
    (drop_errors, "test_a_stream_cut_at_any_byte_gives_what_came_and_no_half_call"),
    (guess_calls, "test_a_stream_cut_at_any_byte_gives_what_came_and_no_half_call"),
    (drop_errors, "test_a_body_that_ends_early_but_properly_is_an_error_too"),
]


@pytest.mark.parametrize(
    ("spoil", "test"), BROKEN_PROMISES, ids=lambda value: getattr(value, "__name__", value)
)
async def test_a_broken_promise_is_noticed(spoil, test):
    with pytest.raises((AssertionError, pytest.fail.Exception, TimeoutError)):
        await getattr(suite_for(spoil), test)()
    while abandoned:
        await abandoned.pop().aclose()


async def test_a_wrong_reason_for_stopping_is_noticed():
    with pytest.raises(AssertionError):
        await suite_for(stop_as_usual).test_the_stop_reason_is_reported_once("refusal")


def contract(level: str) -> list[str]:
    tests = [getattr(HttpProviderConformance, name) for name in dir(HttpProviderConformance)]
    return sorted(
        test.__name__.removeprefix("test_").replace("_", " ")
        for test in tests
        if getattr(test, "__name__", "").startswith("test_") and getattr(test, "level", "must") == level
    )


def test_the_contract_is_written_down() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    must, should = page.partition("**Must**")[2].split("**Should**")
    for text, level in ((must, "must"), (should, "should")):
        assert sorted(re.findall(r"^- (.+)$", text, re.MULTILINE)) == contract(level)


def test_a_suite_can_ask_for_what_a_provider_must_do_alone(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["anyio"]')
    pytester.makepyfile(
        """
        from robota.providers.scripted import ScriptedProvider
        from robota.testing.conformance import ProviderConformance

        class TestScripted(ProviderConformance):
            must_only = True

            def make_provider(self, script):
                return ScriptedProvider(*script)
        """
    )
    outcomes = pytester.runpytest_subprocess("-q").parseoutcomes()
    assert (outcomes["skipped"], "failed" in outcomes) == (3, False)
