"""`LocalProvider` on a scripted model: real llama.cpp, in this process, without a port."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest
from tests.sessions.recorded_session import RecordedSession, add, assert_replays
from tests.support.history import assert_valid_for_a_request
from tests.support.scripted_gguf import tool_call, write_scripted_gguf

from robota.core.errors import ConfigurationError, ProviderError
from robota.core.messages import AssistantMessage, ImagePart, TextPart, ToolMessage, UserMessage
from robota.core.provider import ChatRequest, ModelSettings, TextChunk, ToolInputChunk, ToolSchema
from robota.core.robota import Robota
from robota.providers.local import LocalProvider
from robota.providers.local import engine as engines
from robota.sessions.compaction.summarizer import is_context_overflow
from robota.testing.reply_conformance import ADD, ask, listen

pytestmark = pytest.mark.anyio

CALL = tool_call("add", '{"a": 17, "b": 25}')
SAID = 'It is 42.\nGrüße, 🐢 "quoted"'
ANSWER = '{"answer": "It is 42.\\nGrüße, 🐢 \\"quoted\\""}'
PLAIN = "Just text, as it is."


def model(directory: Path, *replies: str, **facts: int) -> Path:
    return write_scripted_gguf(directory / f"model-{len(os.listdir(directory))}.gguf", *replies, **facts)


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    return model(tmp_path, CALL, ANSWER)


# --- replies ---------------------------------------------------------------------------------------------


async def test_without_tools_the_text_comes_as_the_model_writes_it(tmp_path: Path) -> None:
    async with LocalProvider(model(tmp_path, PLAIN)) as provider:
        heard = await listen(provider)

    assert (heard.text, heard.calls, heard.stops) == (PLAIN, [], ["end_turn"])
    assert len([chunk for chunk in heard.chunks if isinstance(chunk, TextChunk)]) > 2
    assert heard.usage is not None
    assert heard.usage.output_tokens > 3


async def test_with_tools_the_model_calls_one_of_them(scripted: Path) -> None:
    async with LocalProvider(scripted) as provider:
        heard = await listen(provider, ask(tools=(ADD,)))

    (made,) = heard.calls
    assert (made.name, msgspec.json.decode(made.arguments)) == ("add", {"a": 17, "b": 25})
    assert made.id.startswith("call_")
    pieces = [chunk.delta for chunk in heard.chunks if isinstance(chunk, ToolInputChunk)]
    assert "".join(pieces) == made.arguments
    assert (heard.text, heard.stops) == ("", ["tool_use"])


async def test_with_tools_an_answer_is_text(tmp_path: Path) -> None:
    async with LocalProvider(model(tmp_path, ANSWER)) as provider:
        heard = await listen(provider, ask(tools=(ADD,)))

    assert (heard.text, heard.calls, heard.stops) == (SAID, [], ["end_turn"])
    assert len([chunk for chunk in heard.chunks if isinstance(chunk, TextChunk)]) > 2


OTHER = ToolSchema("look", "Look at a thing.", {"type": "object", "properties": {"at": {"enum": ["it"]}}})


@pytest.mark.parametrize(
    ("choice", "called"), [("required", {"add", "look"}), ("look", {"look"}), ("add", {"add"})]
)
async def test_a_tool_choice_is_kept_whatever_the_model_would_rather_say(
    tmp_path: Path, choice: str, called: set[str]
) -> None:
    async with LocalProvider(model(tmp_path, ANSWER), seed=1, temperature=0.0) as provider:
        settings = ModelSettings(tool_choice=choice, max_tokens=300)
        heard = await listen(provider, ask(tools=(ADD, OTHER), settings=settings))

    begun = {chunk.name for chunk in heard.chunks if isinstance(chunk, ToolInputChunk)}
    assert begun
    assert begun <= called
    assert heard.text == ""


async def test_no_tool_is_used_if_none_may_be(tmp_path: Path) -> None:
    async with LocalProvider(model(tmp_path, PLAIN)) as provider:
        heard = await listen(provider, ask(tools=(ADD,), settings=ModelSettings(tool_choice="none")))

    assert (heard.text, heard.calls) == (PLAIN, [])


async def test_a_tool_choice_that_names_no_tool_is_told(scripted: Path) -> None:
    async with LocalProvider(scripted) as provider:
        with pytest.raises(ConfigurationError, match="'nope' names no tool; there are add"):
            await listen(provider, ask(tools=(ADD,), settings=ModelSettings(tool_choice="nope")))


async def test_an_output_schema_is_enforced(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"const": 42}}, "required": ["n"]}
    async with LocalProvider(model(tmp_path, PLAIN), seed=1) as provider:
        heard = await listen(provider, ask(output_schema=schema))

    assert msgspec.json.decode(heard.text) == {"n": 42}


async def test_an_output_schema_holds_for_the_answer_beside_tools(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"const": 42}}, "required": ["n"]}
    async with LocalProvider(model(tmp_path, '{"answer": {"n": 42}}')) as provider:
        heard = await listen(provider, ask(tools=(ADD,), output_schema=schema))

    assert msgspec.json.decode(heard.text) == {"n": 42}


async def test_parameters_that_make_no_grammar_still_make_a_tool(scripted: Path) -> None:
    broken = ToolSchema("add", "Add.", {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}})
    async with LocalProvider(scripted) as provider:
        heard = await listen(provider, ask(tools=(broken,)))

    assert [made.name for made in heard.calls] == ["add"]


async def test_references_inside_parameters_are_followed(scripted: Path) -> None:
    number = {"$defs": {"Number": {"type": "integer"}}}
    fields = {"properties": {"a": {"$ref": "#/$defs/Number"}, "b": {"$ref": "#/$defs/Number"}}}
    tool = ToolSchema("add", "Add.", {"type": "object", **number, **fields, "required": ["a", "b"]})
    async with LocalProvider(scripted) as provider:
        heard = await listen(provider, ask(tools=(tool,)))

    assert msgspec.json.decode(heard.calls[0].arguments) == {"a": 17, "b": 25}


async def test_a_reply_cut_off_by_the_token_limit_keeps_text_and_makes_no_call(tmp_path: Path) -> None:
    async with LocalProvider(model(tmp_path, CALL), max_tokens=6) as provider:
        heard = await listen(provider, ask(tools=(ADD,)))
        assert (heard.calls, heard.stops) == ([], ["max_tokens"])
    async with LocalProvider(model(tmp_path, ANSWER)) as provider:
        limit = ModelSettings(max_tokens=6)
        heard = await listen(provider, ask(tools=(ADD,), settings=limit))
        assert (heard.text[:2], heard.stops) == ("It", ["max_tokens"])


async def test_native_payloads_come_when_wanted(scripted: Path) -> None:
    async with LocalProvider(scripted) as provider:
        heard = await listen(provider, ask(tools=(ADD,), want_raw=True))

    kinds = [chunk.kind for chunk in heard.chunks if hasattr(chunk, "kind")]
    assert kinds[0] == "request"
    assert set(kinds[1:]) == {"stream_event"}


# --- histories -------------------------------------------------------------------------------------------


async def test_an_agent_uses_the_result_of_its_tool(scripted: Path) -> None:
    async with LocalProvider(scripted) as provider:
        agent = Robota(provider=provider, model="local", tools=[add])
        done = await agent.run("What is 17 + 25?")

    assert done.text == SAID
    assert [message.content for message in agent.messages if isinstance(message, ToolMessage)] == ["42"]
    assert_valid_for_a_request(agent.messages)


async def test_a_recorded_session_runs_again_the_same(scripted: Path, tmp_path: Path) -> None:
    async with LocalProvider(scripted) as provider:
        recorded = RecordedSession(tmp_path / "home", provider)
        await recorded.run("What is 17 + 25?")
        await recorded.session.shutdown()

    await assert_replays(recorded)


STRICT_TEMPLATE_HISTORIES = [
    (AssistantMessage("Summary."), UserMessage("Go on.")),
    (UserMessage("One."), UserMessage("Two."), AssistantMessage(""), UserMessage("Three.")),
    (UserMessage("One."), AssistantMessage("Two.")),
    (ToolMessage("3", tool_call_id="gone", name="add"),),
    (UserMessage("", (TextPart("See"), ImagePart("aGk="))),),
    (),
]


@pytest.mark.parametrize("history", STRICT_TEMPLATE_HISTORIES)
async def test_any_history_is_answered(
    tmp_path: Path, history: tuple[AssistantMessage | UserMessage | ToolMessage, ...]
) -> None:
    async with LocalProvider(model(tmp_path, PLAIN)) as provider:
        heard = await listen(provider, ChatRequest(model="", messages=history))

    assert heard.text == PLAIN


async def test_a_conversation_that_does_not_fit_is_recognised_as_such(tmp_path: Path) -> None:
    async with LocalProvider(model(tmp_path, PLAIN, context=512)) as provider:
        assert provider.context_size == 512
        with pytest.raises(ProviderError, match="exceeds the context window") as caught:
            await listen(provider, ask(UserMessage("too long " * 200)))

    assert is_context_overflow(caught.value)


# --- one process, one loop ---------------------------------------------------------------------------------

LONG = " ".join(f"word{n}" for n in range(300)) + "."


async def test_the_loop_runs_on_while_the_model_writes(tmp_path: Path) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async with LocalProvider(model(tmp_path, LONG, context=16384), max_tokens=1000) as provider:
        await listen(provider, ask(settings=ModelSettings(max_tokens=1)))
        async with asyncio.TaskGroup() as tasks:
            ticking = tasks.create_task(tick())
            heard = await listen(provider)
            ticking.cancel()

    assert heard.text == LONG
    assert ticks > len(heard.chunks)


async def test_leaving_a_stream_stops_the_model(tmp_path: Path) -> None:
    async with LocalProvider(model(tmp_path, LONG, context=16384), max_tokens=1000) as provider:
        async with aclosing(provider.stream(ask())) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    break
        heard = await listen(provider, ask(settings=ModelSettings(max_tokens=5)))

    assert heard.stops == ["max_tokens"]
    assert [thread.name for thread in threading.enumerate() if thread.name == "llama.cpp"] == []


async def test_a_cancelled_task_leaves_the_model_to_the_next(tmp_path: Path) -> None:
    async with LocalProvider(model(tmp_path, LONG, context=16384), max_tokens=1000) as provider:
        begun = asyncio.Event()

        async def read() -> None:
            async for chunk in provider.stream(ask()):
                if isinstance(chunk, TextChunk):
                    begun.set()

        reading = asyncio.create_task(read())
        await begun.wait()
        reading.cancel()
        await asyncio.wait([reading])
        heard = await listen(provider, ask(settings=ModelSettings(max_tokens=5)))

    assert reading.cancelled()
    assert heard.stops == ["max_tokens"]


async def test_two_streams_take_turns_and_do_not_mix(tmp_path: Path) -> None:
    async with LocalProvider(model(tmp_path, PLAIN)) as provider, asyncio.TaskGroup() as tasks:
        both = [tasks.create_task(listen(provider)) for _ in range(2)]

    assert [reading.result().text for reading in both] == [PLAIN, PLAIN]


async def test_a_file_is_loaded_once_and_unloaded_by_the_last(tmp_path: Path) -> None:
    path = model(tmp_path, PLAIN)
    link = tmp_path / "link.gguf"
    link.symlink_to(path)
    first, second = LocalProvider(path), LocalProvider(link)
    await listen(first)
    await listen(second)

    assert [place.users for place in engines._places.values()] == [2]
    await first.aclose()
    assert (await listen(second)).text == PLAIN
    await second.aclose()
    gc.collect()
    assert engines._places == {}
    assert (await listen(first)).text == PLAIN  # and again, if somebody wants it
    await first.aclose()


async def test_a_stream_somebody_holds_on_to_does_not_keep_the_model_loaded(tmp_path: Path) -> None:
    path = model(tmp_path, PLAIN)
    async with LocalProvider(path) as provider:
        stream = provider.stream(ask())
        await anext(stream)
        assert str(path) in Path("/proc/self/maps").read_text()

    assert str(path) not in Path("/proc/self/maps").read_text()
    await stream.aclose()


async def test_nothing_listens_while_a_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = tmp_path / "tmp"
    private.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(private))
    before = listening_ports()
    async with LocalProvider(model(tmp_path, PLAIN)) as provider:
        await listen(provider)
        assert listening_ports() <= before  # what other tests left may close meanwhile
        assert list(private.iterdir()) == []


def listening_ports() -> set[str]:
    """Ports this process listens on, by the system's own table."""
    ours = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            ours.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:
            continue
    lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    listening = [line.split() for line in lines if line.split()[3] == "0A"]
    return {fields[1] for fields in listening if f"socket:[{fields[9]}]" in ours}


def test_listening_ports_are_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)):
        assert listening_ports()


async def test_closing_ends_what_is_being_written(tmp_path: Path) -> None:
    provider = LocalProvider(model(tmp_path, LONG, context=16384), max_tokens=1000)
    stream = provider.stream(ask())
    async for chunk in stream:
        if isinstance(chunk, TextChunk):
            break
    await provider.aclose()

    assert [thread.name for thread in threading.enumerate() if thread.name == "llama.cpp"] == []
    assert engines._places == {}
    await stream.aclose()
