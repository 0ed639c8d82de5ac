from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from robota.core.errors import ConfigurationError
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativeWebTool,
    NativeWebTools,
    Provider,
    TextChunk,
    ToolSchema,
    assert_native_web_tools_available,
    get_provider_capabilities,
)
from robota.providers.scripted import ScriptedProvider

pytestmark = pytest.mark.anyio

SEARCH = NativeWebTools(web_search=True)
FETCH = NativeWebTools(web_fetch=True)
ON = NativeWebTool(supported=True, enabled=True)
OFF = NativeWebTool(supported=True, enabled=False)


class Minimal:
    """A provider that says nothing about itself."""

    name = "minimal"

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        yield TextChunk("hi")


def with_capabilities(**capabilities: NativeWebTool) -> Provider:
    return ScriptedProvider(name="p", capabilities=Capabilities(**capabilities))  # type: ignore[arg-type]


def test_a_name_and_a_stream_make_a_provider() -> None:
    assert isinstance(Minimal(), Provider)
    assert not isinstance(object(), Provider)


def test_a_provider_that_says_nothing_has_function_calling_and_no_native_web_tools() -> None:
    assert get_provider_capabilities(Minimal()) == Capabilities(
        function_calling=True, web_search=NativeWebTool(), web_fetch=NativeWebTool()
    )
    assert Capabilities().web_search == NativeWebTool(supported=False, enabled=False)


def test_a_provider_is_taken_at_its_word() -> None:
    said = Capabilities(function_calling=False, vision=True, web_search=ON)
    assert get_provider_capabilities(ScriptedProvider(capabilities=said)) is said
    assert Capabilities.NONE.function_calling is False


def test_something_else_under_that_name_is_no_statement() -> None:
    odd = Minimal()
    odd.capabilities = {"function_calling": False}  # type: ignore[attr-defined]
    assert get_provider_capabilities(odd) == Capabilities()


@pytest.mark.parametrize(
    ("provider", "wanted", "message"),
    [
        (Minimal(), SEARCH, "Provider minimal does not support native web search."),
        (Minimal(), FETCH, "Provider minimal does not support native web fetch."),
        (
            with_capabilities(web_search=OFF),
            SEARCH,
            "Provider p supports native web search but it is not enabled.",
        ),
        (
            with_capabilities(web_search=ON),
            NativeWebTools(web_search=True, web_fetch=True),
            "Provider p does not support native web fetch.",
        ),
        (
            with_capabilities(web_search=NativeWebTool(reason="The endpoint is a local one.")),
            SEARCH,
            "Provider p does not support native web search. The endpoint is a local one.",
        ),
    ],
)
def test_native_web_tools_that_are_not_available_are_refused_with_the_reason(
    provider: Provider, wanted: NativeWebTools, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        assert_native_web_tools_available(provider, wanted)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("provider", "wanted"),
    [
        (Minimal(), None),
        (Minimal(), NativeWebTools()),
        (with_capabilities(web_search=ON), SEARCH),
        (with_capabilities(web_search=ON, web_fetch=ON), NativeWebTools(web_search=True, web_fetch=True)),
    ],
)
def test_native_web_tools_that_are_available_or_not_wanted_pass(
    provider: Provider, wanted: NativeWebTools | None
) -> None:
    assert_native_web_tools_available(provider, wanted)


async def test_a_request_for_an_unsupported_native_tool_fails_before_anything_is_sent() -> None:
    provider = ScriptedProvider("hi")
    stream = provider.stream(ChatRequest(model="m", messages=[], native_web_tools=FETCH))
    with pytest.raises(ConfigurationError, match="does not support native web fetch"):
        await anext(stream)
    assert provider.requests == []


async def test_local_web_tools_do_not_make_native_ones_supported() -> None:
    provider = ScriptedProvider()
    tools = (ToolSchema("WebSearch", "", {"type": "object"}), ToolSchema("WebFetch", "", {"type": "object"}))
    request = ChatRequest(model="m", messages=[], tools=tools, native_web_tools=SEARCH)
    with pytest.raises(ConfigurationError, match="does not support native web search"):
        await anext(provider.stream(request))
    assert get_provider_capabilities(provider).web_search.supported is False
