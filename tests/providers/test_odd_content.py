"""What few replies have and nobody may lose: pictures, citations, hosted tools, odd places, empty fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.providers.loopback import Loopback, Reply
from tests.providers.reading import ask, calls_in, read_reply, text_of

from robota import Robota
from robota.core import AssistantMessage, ChatRequest, TokenUsage, ToolCall, UserMessage
from robota.core.provider import Chunk, MetadataChunk, ServerToolChunk, StopChunk
from robota.core.reply import MessageAssembly
from robota.providers.anthropic.reply import BlockContent
from robota.providers.chat.reply import ChatContent
from robota.providers.gemini import GeminiProvider
from robota.providers.gemini.reply import GeminiContent
from robota.providers.gemini.request import GeminiEncoder
from robota.providers.responses.reply import ResponseContent
from robota.providers.responses.request import ItemDialect, ResponsesEncoder
from robota.providers.wire.reply import ReplyContent

PNG = "iVBORw0KGgo="


def stream(*events: Any) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": finish_reason}]}


def parts(*said: Any, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(said)}, **more}]}


def facts_of(chunks: list[Chunk]) -> dict[str, Any]:
    return {
        name: value
        for chunk in chunks
        if isinstance(chunk, MetadataChunk)
        for name, value in chunk.values.items()
    }


def message_of(content: ReplyContent, *events: Any) -> AssistantMessage:
    assembly = MessageAssembly("test")
    for chunk in read_reply(content, stream(*events)):
        assembly.take(chunk)
    return assembly.message()


# --- pictures ---------------------------------------------------------------------------------------------


def test_a_picture_of_gemini_is_kept_and_goes_back_with_its_signature() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "c2ln"}
    message = message_of(GeminiContent(), parts({"text": "Here:"}), parts(part, finishReason="STOP"))
    kept = {"type": "image_inline", "data": PNG, "mimeType": "image/png", "signature": "c2ln"}
    assert message.metadata["images"] == [kept]

    request = ChatRequest(model="m", messages=[UserMessage("Draw."), message, UserMessage("Another.")])
    body = json.loads(GeminiEncoder().encode(request, "gemini-3-pro-image"))
    assert body["contents"][1]["parts"] == [{"text": "Here:"}, part]


def test_a_picture_of_openrouter_is_kept_once() -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{PNG}"}}
    message = message_of(ChatContent(), delta(images=[image]), delta("stop", images=[image], content=""))
    assert message.metadata["images"] == [{"type": "image_inline", "data": PNG, "mimeType": "image/jpeg"}]


def test_a_picture_of_the_hosted_tool_is_kept_and_not_told_as_a_question() -> None:
    item = {
        "type": "image_generation_call",
        "id": "ig_1",
        "status": "completed",
        "result": PNG,
        "output_format": "webp",
    }
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    chunks = read_reply(
        ResponseContent(), stream(done, {"type": "response.completed", "response": {"output": []}})
    )
    assert facts_of(chunks)["images"] == [{"type": "image_inline", "data": PNG, "mimeType": "image/webp"}]
    assert PNG not in str([chunk for chunk in chunks if isinstance(chunk, ServerToolChunk)])


@pytest.mark.anyio
async def test_a_picture_alone_is_an_answer() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    reply = Reply([stream(parts(part, finishReason="STOP"))])
    async with Loopback(reply) as server, GeminiProvider("key", server.url, "m") as provider:
        agent = Robota(provider, model="m")
        result = await agent.run("Draw.")
        assert len(server.requests) == 1
    assert (result.success, result.stop_reason) == (True, "end_turn")
    assert agent.messages[-1].metadata["images"][0]["data"] == PNG


# --- citations --------------------------------------------------------------------------------------------


def test_citations_of_openrouter_and_perplexity_are_kept() -> None:
    cited = {"type": "url_citation", "url_citation": {"url": "https://a.org", "title": "A", "start_index": 0}}
    events = (
        {**delta(content="Slow."), "citations": ["https://a.org", "https://b.org"]},
        {**delta("stop", annotations=[cited]), "search_results": [{"url": "https://c.org", "title": "C"}]},
    )
    assert facts_of(read_reply(ChatContent(), stream(*events)))["citations"] == [
        {"url": "https://a.org", "title": ""},
        {"url": "https://b.org", "title": ""},
        {"url": "https://c.org", "title": "C"},
    ]


# --- hosted tools -----------------------------------------------------------------------------------------


def test_reasoning_before_hosted_tools_goes_back_with_their_calls() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "one"}
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    opened = {**search, "id": "ws_2", "action": {"type": "open_page", "url": "https://a.org"}}
    second = {**thought, "id": "rs_2", "encrypted_content": "two"}
    said = {"type": "message", "content": [{"type": "output_text", "text": "Slow."}]}
    output = [thought, search, opened, second, said]
    message = message_of(ResponseContent(), {"type": "response.completed", "response": {"output": output}})

    request = ChatRequest(model="m", messages=[UserMessage("?"), message, UserMessage("More.")])
    body = json.loads(ResponsesEncoder(ItemDialect()).encode(request, "m"))
    assert body["input"][1:-1] == [
        thought, search, opened, second, {"type": "message", "role": "assistant", "content": "Slow."}
    ]  # fmt: skip


def test_a_tool_of_an_mcp_server_is_told_and_its_blocks_are_kept() -> None:
    use = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "find", "server_name": "docs", "input": {}}
    result = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": []}
    written = {"type": "input_json_delta", "partial_json": '{"q":1}'}
    events = (
        {"type": "content_block_start", "index": 0, "content_block": use},
        {"type": "content_block_delta", "index": 0, "delta": written},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": result},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "Found."}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
    chunks = read_reply(BlockContent(), stream(*events))
    assert ServerToolChunk("find", {"q": 1}) in chunks
    kept = facts_of(chunks)["anthropicContent"]
    assert kept == [{**use, "input": {"q": 1}}, result, {"type": "text", "text": "Found."}]


# --- odd places -------------------------------------------------------------------------------------------


def test_usage_is_found_where_groq_puts_it() -> None:
    last = {**delta("stop"), "x_groq": {"id": "req", "usage": {"prompt_tokens": 7, "completion_tokens": 2}}}
    assert TokenUsage(7, 2) in read_reply(ChatContent(), stream(delta(content="Hi"), last))


def test_streamed_arguments_of_gemini_are_put_together() -> None:
    def piece(path: str, *, more: bool = False, **value: Any) -> dict[str, Any]:
        return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}

    def function(**fields: Any) -> dict[str, Any]:
        return {"functionCall": {**fields, "willContinue": True}}

    events = (
        parts({**function(name="edit", id="c1"), "thoughtSignature": "c2ln"}),
        parts(function(partialArgs=[piece("$.path", more=True, stringValue="src/")])),
        parts(function(partialArgs=[piece("$.path", stringValue="a.py")])),
        parts(
            function(
                partialArgs=[piece("$.lines[0].no", numberValue=3), piece("$.lines[1]['no']", numberValue=4)]
            )
        ),
        parts(
            function(partialArgs=[piece("$.dry", boolValue=False), piece("$.owner", nullValue="NULL_VALUE")])
        ),
        parts({"functionCall": {}}),
        parts({"functionCall": {"name": "look", "args": {"a": 1}}}, finishReason="STOP"),
    )
    edit = '{"path":"src/a.py","lines":[{"no":3},{"no":4}],"dry":false,"owner":null}'
    chunks = read_reply(GeminiContent(), stream(*events))
    assert calls_in(chunks) == [ToolCall("c1", "edit", edit, "c2ln"), ToolCall("", "look", '{"a":1}')]
    assert chunks[-1] == StopChunk("tool_use", "STOP")


def test_a_streamed_call_that_never_ends_is_no_call() -> None:
    begun = parts({"functionCall": {"name": "edit", "willContinue": True}}, finishReason="MAX_TOKENS")
    assert calls_in(read_reply(GeminiContent(), stream(begun))) == []


@pytest.mark.parametrize("path", ["", "$", "$[0]", "$.a[99999999]", "$.a.b", "$..", "$.a[", "nonsense"])
def test_a_path_that_leads_nowhere_does_no_harm(path: str) -> None:
    pieces = [{"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": path, "stringValue": "y"}]
    reply = parts({"functionCall": {"name": "f", "partialArgs": pieces}}, finishReason="STOP")
    (made,) = calls_in(read_reply(GeminiContent(), stream(reply)))
    assert json.loads(made.arguments)["a"] == "x"


# --- empty fields -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nothing",
    [
        {"function_call": {"name": "", "arguments": ""}},
        {"function_call": {}},
        {
            "tool_calls": [
                {"index": 0, "id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": None}]},
        {"reasoning_content": "", "refusal": "", "images": [], "annotations": []},
    ],
)
def test_empty_fields_of_a_chat_reply_are_nothing(nothing: dict[str, Any]) -> None:
    events = (delta(content="Hi", **nothing), delta("stop", content="", **nothing))
    chunks = read_reply(ChatContent(), stream(*events))
    plain = read_reply(ChatContent(), stream(delta(content="Hi"), delta("stop")))
    assert chunks == plain
    whole = {"choices": [{"message": {"content": "Hi", **nothing}, "finish_reason": "stop"}]}
    assert read_reply(ChatContent(), json.dumps(whole).encode()) == plain


@pytest.mark.parametrize("error", [None, "", {}, {"code": 0, "message": ""}])
def test_an_error_with_nothing_in_it_is_no_error(error: Any) -> None:
    events = ({**delta(content="Hi"), "error": error}, delta("stop"))
    assert read_reply(ChatContent(), stream(*events))[-1] == StopChunk("end_turn", "stop")


def test_an_empty_call_of_gemini_is_nothing() -> None:
    chunks = read_reply(
        GeminiContent(), stream(parts({"text": "Hi"}, {"functionCall": {}}, finishReason="STOP"))
    )
    assert (calls_in(chunks), chunks[-1]) == ([], StopChunk("end_turn", "STOP"))


# --- keys -------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
async def test_the_key_of_the_environment_goes_to_googles_own_address_only(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "key-of-the-environment")
    assert GeminiProvider(model="m").channel.secrets[0] == "key-of-the-environment"
    reply = Reply([stream(parts({"text": "Hi"}, finishReason="STOP"))])
    async with Loopback(reply) as server, GeminiProvider(base_url=server.url, model="m") as provider:
        assert await text_of(provider, ask()) == "Hi"
        assert "x-goog-api-key" not in server.requests[0].headers
