"""Our adapters against a real llama.cpp server, on each protocol that it speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest
from tests.local.wires import WIRES
from tests.sessions.recorded_session import RecordedSession, add, assert_replays
from tests.support.history import assert_valid_for_a_request
from tests.support.llama_server import llama_server
from tests.support.scripted_gguf import tool_call, write_scripted_gguf

from robota.core.errors import ProviderError
from robota.core.events import TextDelta, ToolEnded
from robota.core.messages import AssistantMessage, ToolMessage, UserMessage
from robota.core.provider import ModelSettings, Provider, TextChunk, ToolInputChunk
from robota.core.robota import Robota
from robota.sessions.compaction.summarizer import is_context_overflow
from robota.testing.reply_conformance import ADD, ask, listen, using

pytestmark = pytest.mark.anyio

FIRST = tool_call("add", '{"a": 17, "b": 25}')
SECOND = tool_call("add", '{"a": 42, "b": 58}')
ANSWER = "That makes one hundred, żółw 🐢."


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("model") / "scripted.gguf"
    with llama_server(write_scripted_gguf(path, FIRST, SECOND, ANSWER, "You are welcome.")) as url:
        yield url


@pytest.fixture(params=list(WIRES))
async def provider(request: pytest.FixtureRequest, address: str) -> AsyncIterator[Provider]:
    async with using(WIRES[request.param](address)) as made:
        yield made


AFTER_TWO_TURNS = (
    UserMessage("Add."),
    AssistantMessage("Three."),
    UserMessage("And?"),
    AssistantMessage("Four."),
    UserMessage("So?"),
)


async def test_text_comes_in_pieces_and_whole(provider: Provider) -> None:
    heard = await listen(provider, ask(*AFTER_TWO_TURNS))

    assert heard.text == ANSWER
    assert len([chunk for chunk in heard.chunks if isinstance(chunk, TextChunk)]) > 3
    assert (heard.calls, heard.stops) == ([], ["end_turn"])


async def test_a_call_comes_in_pieces_and_whole(provider: Provider) -> None:
    heard = await listen(provider, ask(tools=(ADD,)))

    (made,) = heard.calls
    assert made.name == "add"
    assert msgspec.json.decode(made.arguments) == {"a": 17, "b": 25}
    assert made.id
    assert len([chunk for chunk in heard.chunks if isinstance(chunk, ToolInputChunk)]) > 2
    assert (heard.text, heard.stops) == ("", ["tool_use"])


async def test_what_the_server_counted_is_reported(provider: Provider) -> None:
    heard = await listen(provider, ask(*AFTER_TWO_TURNS))
    longer = await listen(provider, ask(UserMessage("word " * 200), *AFTER_TWO_TURNS))

    assert heard.usage is not None
    assert longer.usage is not None
    assert 5 < heard.usage.output_tokens < 40
    assert longer.usage.input_tokens > heard.usage.input_tokens > 20


async def test_a_call_cut_off_by_the_token_limit_is_not_delivered(provider: Provider) -> None:
    heard = await listen(provider, ask(tools=(ADD,), settings=ModelSettings(max_tokens=6)))

    assert heard.calls == []


async def test_text_cut_off_by_the_token_limit_is_kept(provider: Provider) -> None:
    heard = await listen(provider, ask(*AFTER_TWO_TURNS, settings=ModelSettings(max_tokens=3)))

    assert heard.text
    assert ANSWER.startswith(heard.text)


async def test_a_stream_that_is_left_leaves_the_server_free_for_the_next(provider: Provider) -> None:
    async with aclosing(provider.stream(ask(*AFTER_TWO_TURNS))) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                break

    assert (await listen(provider, ask(*AFTER_TWO_TURNS))).text == ANSWER


async def test_a_conversation_that_does_not_fit_is_recognised_as_such(provider: Provider) -> None:
    with pytest.raises(ProviderError) as caught:
        await listen(provider, ask(UserMessage("too long " * 2000)))

    assert is_context_overflow(caught.value)
    assert "\n" not in str(caught.value)


async def test_several_rounds_of_an_agent(provider: Provider) -> None:
    agent = Robota(provider=provider, model="scripted", tools=[add], system_message="You add.")

    answer = await agent.run("What is 17 + 25 + 58?")

    assert answer.text == ANSWER
    results = [message.content for message in agent.messages if isinstance(message, ToolMessage)]
    assert results == ["42", "100"]
    assert_valid_for_a_request(agent.messages)
    assert (await agent.run("Thanks.")).text == "You are welcome."


async def test_a_recorded_session_runs_again_the_same(provider: Provider, tmp_path: Path) -> None:
    recorded = RecordedSession(tmp_path, provider)
    await recorded.run("What is 17 + 25 + 58?", "Thanks.")
    await recorded.session.shutdown()

    assert (
        "".join(delta.text for delta in recorded.told(TextDelta) if delta.sequence)
        == ANSWER + "You are welcome."
    )
    assert len(recorded.told(ToolEnded)) == 2
    await assert_replays(recorded)
