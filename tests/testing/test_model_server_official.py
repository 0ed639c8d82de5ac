from __future__ import annotations

import pytest
from tests.support.lazy import anthropic, genai, openai

from robota.core.messages import ReasoningBlock, TokenUsage
from robota.core.provider import ReasoningChunk, ServerToolChunk, StopChunk
from robota.testing import Crlf, Drip, KeepAlive, ModelServer, UnknownEvent, call

# google-genai uses names that its own dependencies have deprecated
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]

MESSAGES = [{"role": "user", "content": "Hello"}]
CALLS = [call("add", "c1", a=1, b="a longer text"), call("sub", "c2")]
REPLY = ["Hel", "lo 🐢", *CALLS, TokenUsage(7, 3, 2, 0, 1)]
MADE = [("c1", "add", {"a": 1, "b": "a longer text"}), ("c2", "sub", {})]
TORN = [Crlf(), Drip(1)]
every_manner = pytest.mark.parametrize("manner", [[], TORN], ids=["plain", "torn"])


@pytest.fixture
async def serve():
    """Starts a server and the vendor's client in front of it."""
    running = []

    async def start(make_client, *replies):
        server = await ModelServer(*replies).__aenter__()
        client = make_client(server.url)
        running.extend([(server, client)])
        return client

    yield start
    for server, client in running:
        await (client.aclose() if hasattr(client, "aclose") else client.close())
        await server.__aexit__(None, None, None)


def for_openai(url):
    return openai.AsyncOpenAI(api_key="test", base_url=f"{url}/v1", max_retries=0)


def for_anthropic(url):
    return anthropic.AsyncAnthropic(api_key="test", base_url=url, max_retries=0)


def for_gemini(url):
    return genai.Client(api_key="test", http_options={"base_url": url}).aio


# --- Chat Completions --------------------------------------------------------------------------------


@every_manner
async def test_the_vendors_client_understands_chat_completions(serve, manner):
    client = await serve(for_openai, [*manner, KeepAlive(), *REPLY], REPLY)
    options = {"include_usage": True}
    text, pieces, finish, usage = "", {}, None, None
    stream = await client.chat.completions.create(
        model="m", messages=MESSAGES, stream=True, stream_options=options
    )
    async for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                known = pieces.setdefault(part.index, [part.id, part.function.name, ""])
                known[2] += part.function.arguments
    whole = await client.chat.completions.create(model="m", messages=MESSAGES)
    message = whole.choices[0].message
    assert text == message.content == "Hello 🐢"
    assert [tuple(made) for made in pieces.values()] == [
        (made.id, made.function.name, made.function.arguments) for made in message.tool_calls
    ]
    assert [(made.id, made.name, made.arguments) for made in CALLS] == [
        tuple(made) for made in pieces.values()
    ]
    assert finish == whole.choices[0].finish_reason == "tool_calls"
    assert usage == whole.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (7, 3, 10)


async def test_the_vendors_client_skips_what_it_does_not_know_in_chat_completions(serve):
    client = await serve(for_openai, ["Hel", UnknownEvent(), "lo"])
    stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    said = [choice.delta.content or "" async for chunk in stream for choice in chunk.choices]
    assert "".join(said) == "Hello"


# --- Responses ---------------------------------------------------------------------------------------


@every_manner
async def test_the_vendors_client_understands_responses(serve, manner):
    hosted = ServerToolChunk("web_search", {"query": "turtles"})
    thinking = [ReasoningChunk("Hm."), ReasoningBlock("So."), hosted]
    client = await serve(for_openai, [*manner, KeepAlive(), *thinking, *REPLY], [*thinking, *REPLY])
    async with client.responses.stream(model="m", input="Hi") as stream:
        deltas = [event.delta async for event in stream if event.type == "response.output_text.delta"]
        streamed = await stream.get_final_response()
    whole = await client.responses.create(model="m", input="Hi")
    assert deltas == ["Hel", "lo 🐢"]
    assert streamed.output_text == whole.output_text == "Hello 🐢"
    for response in (streamed, whole):
        kinds = [item.type for item in response.output]
        assert kinds == [
            "reasoning",
            "reasoning",
            "web_search_call",
            "message",
            "function_call",
            "function_call",
        ]
        made = [(item.call_id, item.name, item.arguments) for item in response.output[4:]]
        assert made == [(made.id, made.name, made.arguments) for made in CALLS]
        assert (response.usage.input_tokens, response.usage.total_tokens) == (7, 10)


async def test_the_vendors_client_understands_a_refusal_in_responses(serve):
    client = await serve(for_openai, ["No", StopChunk("refusal", "I won't.")])
    refused = await client.responses.create(model="m", input="Hi")
    assert refused.output[-1].content[0].refusal == "I won't."


# --- Messages ----------------------------------------------------------------------------------------


@every_manner
async def test_the_vendors_client_understands_messages(serve, manner):
    thinking = [ReasoningChunk("Hm."), ReasoningBlock("Hm.", "c2ln")]
    client = await serve(for_anthropic, [*manner, KeepAlive(), *thinking, *REPLY], [*thinking, *REPLY])
    async with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
        deltas = [delta async for delta in stream.text_stream]
        streamed = await stream.get_final_message()
    whole = await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
    assert deltas == ["Hel", "lo 🐢"]
    for message in (streamed, whole):
        thought, text, *calls = message.content
        assert (thought.thinking, thought.signature, text.text) == ("Hm.", "c2ln", "Hello 🐢")
        assert [(made.id, made.name, made.input) for made in calls] == MADE
        assert message.stop_reason == "tool_use"
        assert (message.usage.output_tokens, message.usage.cache_read_input_tokens) == (3, 2)


# --- Gemini ------------------------------------------------------------------------------------------


@every_manner
async def test_the_vendors_client_understands_gemini(serve, manner):
    thinking = [ReasoningChunk("Hm.")]  # no comments in between: this client takes them for events
    client = await serve(for_gemini, [*manner, *thinking, *REPLY], [*thinking, *REPLY])
    stream = await client.models.generate_content_stream(model="m", contents="Hello")
    chunks = [chunk async for chunk in stream]
    whole = await client.models.generate_content(model="m", contents="Hello")
    streamed = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    for parts, usage in (
        (streamed, chunks[-1].usage_metadata),
        (whole.candidates[0].content.parts, whole.usage_metadata),
    ):
        assert "".join(part.text for part in parts if part.thought) == "Hm."
        assert "".join(part.text for part in parts if part.text and not part.thought) == "Hello 🐢"
        made = [part.function_call for part in parts if part.function_call]
        assert [(call.id, call.name, call.args) for call in made] == MADE
        assert (usage.prompt_token_count, usage.total_token_count) == (7, 10)
    assert chunks[-1].candidates[0].finish_reason == whole.candidates[0].finish_reason == "STOP"


# --- models ------------------------------------------------------------------------------------------


async def test_the_vendors_clients_can_list_the_models(serve):
    chat = await serve(for_openai)
    messages = await serve(for_anthropic)
    gemini = await serve(for_gemini)
    assert [model.id async for model in await chat.models.list()] == ["scripted"]
    assert [model.id async for model in await messages.models.list()] == ["scripted"]
    assert [model.name async for model in await gemini.models.list()] == ["models/scripted"]
    assert (await chat.models.retrieve("scripted")).owned_by == "robota"
    assert (await messages.models.retrieve("scripted")).display_name == "scripted"
    assert (await gemini.models.get(model="scripted")).display_name == "scripted"
    with pytest.raises(openai.NotFoundError):
        await chat.models.retrieve("unheard-of")


# --- what vendors' clients do by themselves ------------------------------------------------------------


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("streamed", [False, True])
async def test_googles_own_tool_loop_is_accepted(serve, streamed):
    client = await serve(for_gemini, [call("add", a=1, b=2), call("add", a=3, b=4)], "Three and seven.")
    chat = client.chats.create(model="m", config=genai.types.GenerateContentConfig(tools=[add]))
    if streamed:
        said = [part.text async for part in await chat.send_message_stream("Add.") if part.text]
    else:
        said = [(await chat.send_message("Add.")).text]
    assert "".join(said) == "Three and seven."


@pytest.mark.parametrize("make", [for_openai, for_anthropic, for_gemini])
async def test_two_calls_of_one_tool_have_two_ids(serve, make):
    client = await serve(make, [call("add", a=1), call("add", a=2), call("sub"), call("add", a=3)])
    if make is for_openai:
        reply = await client.chat.completions.create(model="m", messages=MESSAGES)
        made = [made.id for made in reply.choices[0].message.tool_calls]
    elif make is for_anthropic:
        reply = await client.messages.create(model="m", messages=MESSAGES, max_tokens=9)
        made = [block.id for block in reply.content]
    else:
        reply = await client.models.generate_content(model="m", contents="Hello")
        made = [made.id for made in reply.function_calls]
    assert made == ["call_add", "call_add_2", "call_sub", "call_add_3"]


async def test_tokens_are_counted_for_every_client(serve):
    long = "word " * 400
    claude = await serve(for_anthropic)
    few = await claude.messages.count_tokens(model="m", messages=MESSAGES)
    many = await claude.messages.count_tokens(model="m", messages=[{"role": "user", "content": long}])
    assert 0 < few.input_tokens < 50 < 400 < many.input_tokens < 600
    gemini = await serve(for_gemini)
    counted = await gemini.models.count_tokens(model="m", contents=long)
    assert 400 < counted.total_tokens < 600
    gpt = await serve(for_openai)
    counted = await gpt.responses.input_tokens.count(model="m", input=long)
    assert 400 < counted.input_tokens < 600
