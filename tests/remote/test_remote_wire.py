from __future__ import annotations

import msgspec
import pytest

from robota.core.conversation import ConversationStore
from robota.core.errors import (
    AuthenticationError,
    CircuitBreakerOpenError,
    ConfigurationError,
    ModelNotAvailableError,
    NetworkError,
    ProviderError,
    RateLimitError,
    RobotaError,
    ValidationError,
)
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    ReasoningBlock,
    SystemMessage,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import (
    CHUNK_NAMES,
    ChatRequest,
    Chunk,
    MetadataChunk,
    ModelSettings,
    NativePayload,
    NativeWebTools,
    ReasoningChunk,
    RetryNotice,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
    ToolSchema,
)
from robota.providers.remote.failures import describe_error, http_status, read_error
from robota.providers.remote.protocol import (
    RequestEncoder,
    decode_event,
    encode_chunk,
    encode_message,
    read_request,
)
from robota.providers.remote.provider import RemoteContent, RemoteReader
from robota.providers.wire.reply import Peer

CHUNKS: list[Chunk] = [
    TextChunk('żółw 🐢\n"quoted"\r'),
    TextChunk("with bytes", b'{"a":1}\n\xff'),
    ReasoningChunk("hm"),
    ReasoningBlock("thought", "signed", {"encrypted": ["x", None]}),
    ToolInputChunk(2, '{"a', "c1", "add"),
    ToolCall("c1", "add", '{"a": 1}', "signature"),
    TokenUsage(10, 5, 3, 2, 1),
    ServerToolChunk("web_search", {"query": "robots"}),
    RetryNotice(attempt=1, max_attempts=3, delay=0.5, message="busy"),
    MetadataChunk({"model": "m", "citations": [{"url": "https://example.org"}]}),
    StopChunk("tool_use", "tool_calls"),
]
REQUEST = ChatRequest(
    model="m",
    messages=(
        SystemMessage("Be brief."),
        UserMessage(
            "Look.",
            (TextPart("Look."), ImagePart("aGk="), ImageUriPart("https://x/y.png"), FilePart("aGk=", "a/b")),
        ),
        AssistantMessage(
            "", (ToolCall("c1", "add", "{}", "sig"),), reasoning=(ReasoningBlock("t", "s", {"k": 1}),),
            metadata={"model": "m"},
        ),
        ToolMessage("3", "c1", "add", metadata={"success": True}),
    ),
    tools=(ToolSchema("add", "Adds.", {"type": "object"}),),
    settings=ModelSettings(
        temperature=0.5, top_p=0.9, max_tokens=5, effort="high", tool_choice="add", stop=("x",),
        extra={"k": [1]},
    ),
    native_web_tools=NativeWebTools(web_search=True),
    output_schema={"type": "object"},
    want_raw=True,
)  # fmt: skip


def decode(event: bytes) -> object:
    name, _, data = event.removesuffix(b"\n\n").partition(b"\n")
    assert b"\n" not in data
    assert b"\r" not in data
    return decode_event(name.removeprefix(b"event: ").decode(), data.removeprefix(b"data: "))


@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda chunk: type(chunk).__name__)
def test_a_chunk_arrives_as_it_was_sent(chunk: Chunk) -> None:
    assert decode(encode_chunk(chunk)) == chunk


def test_every_kind_of_chunk_has_an_event() -> None:
    assert {type(chunk) for chunk in CHUNKS} | {NativePayload} == set(CHUNK_NAMES) == set(Chunk.__args__)


@pytest.mark.parametrize(
    ("payload", "arrives"),
    [
        (b'{"a": [1]}', b'{"a": [1]}'),
        (b'{"a":\n1}', b'{"a":1}'),
        ({"a": "\ud800"}, b'{"a":"?"}'),
        (b"no JSON \xff", '"no JSON �"'.encode()),
    ],
)
def test_a_native_payload_arrives_as_one_line_of_json(payload: object, arrives: bytes) -> None:
    sent = NativePayload(
        kind="stream_event", payload=payload, api_surface="chat", sequence=3, metadata={"k": 1}
    )
    assert decode(encode_chunk(sent)) == msgspec.structs.replace(sent, payload=arrives)


def test_of_the_vendors_own_request_only_the_size_comes_back() -> None:
    got = decode(encode_chunk(NativePayload(kind="request", payload=b'{"messages":[]}')))
    assert isinstance(got, NativePayload)
    assert got.payload == b'{"byteLength":15}'


def test_a_request_arrives_with_everything_in_it() -> None:
    read = read_request(RequestEncoder("upstream").encode(REQUEST, "m"))
    assert read.provider == "upstream"
    assert read.to_chat_request() == REQUEST


def test_settled_messages_are_encoded_once() -> None:
    conversation = ConversationStore()
    encoder = RequestEncoder("upstream")
    for count in range(1, 11):
        conversation.append(UserMessage(f"question {count}"))
        conversation.append(AssistantMessage(f"answer {count}"))
        request = ChatRequest(
            model="m", messages=conversation.messages_for_api(), history=conversation.encoded
        )
        body = encoder.encode(request, "m")
        assert list(read_request(body).messages) == conversation.messages
        assert conversation.encoded.encodings == 2 * count


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "format"),
        (b'{"provider": "x"}', "model"),
        (b'{"version":2,"provider":"x","model":"m","messages":[]}', "version 2"),
        (b'{"provider":"x","model":"m","messages":[]}', "at least one message"),
        (b'{"provider":"x","model":" ","messages":[]}', "name a model"),
        (b'{"provider":"","model":"m","messages":[]}', "name a provider"),
        (b'{"provider":"x","model":"m","messages":[{"role":"king"}]}', "king"),
    ],
)
def test_a_request_that_cannot_be_served_is_refused_in_a_sentence(body: bytes, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        read_request(body)


ERRORS: list[tuple[RobotaError, int]] = [
    (ProviderError("It failed.", provider="up", status=529, request_id="r1", retry_after=1.5), 502),
    (AuthenticationError("Wrong key.", provider="up", status=401), 502),
    (RateLimitError("Wait.", provider="up", status=429, retry_after=7), 429),
    (NetworkError("Gone.", provider="up"), 502),
    (ModelNotAvailableError("m", "up", available_models=["a", "b"], reason="It is retired"), 404),
    (CircuitBreakerOpenError("Open.", retry_after=3), 502),
    (ConfigurationError("Set it."), 400),
    (ValidationError("Not so.", field="messages"), 400),
]


@pytest.mark.parametrize(("error", "status"), ERRORS, ids=lambda value: type(value).__name__)
def test_an_error_keeps_its_kind_words_and_facts(error: RobotaError, status: int) -> None:
    got = read_error(msgspec.json.decode(msgspec.json.encode(describe_error(error, "up"))))
    assert (type(got), str(got), vars(got)) == (type(error), str(error), vars(error))
    assert http_status(error) == status


def test_an_error_of_a_later_version_is_the_providers() -> None:
    got = read_error({"code": "NEW", "message": "New.", "status": "x"})
    assert (type(got), str(got)) == (ProviderError, "New.")


def test_neither_secrets_nor_foreign_words_cross() -> None:
    ours = describe_error(ProviderError("The key sk-12345678 is wrong."), "up", ["sk-12345678"])
    theirs = describe_error(RuntimeError("password=sk-12345678"), "up")
    assert "sk-12345678" not in f"{ours}{theirs}"
    assert "RuntimeError" in theirs["message"]


def test_an_unknown_event_field_or_stop_reason_does_not_stop_a_reader() -> None:
    reader = RemoteReader(RemoteContent(), Peer("remote"))
    got = reader.feed(
        b'event: news\ndata: {}\n\nevent: text\ndata: {"text":"Hi","more":1}\n\n'
        b'event: stop\ndata: {"reason":"bored"}\n\n' + encode_message(AssistantMessage("Hi"))
    )
    assert got == [TextChunk("Hi"), StopChunk("other", "bored")]
    assert (reader.end(), reader.finish()) == ([], [])
    assert reader.message is not None
    assert reader.message.content == "Hi"


@pytest.mark.parametrize(
    "data",
    [
        b"<html>",
        b'{"message": 1}',
        b"event: text\ndata: {\n\n",
        b"event: error\ndata: []\n\n",
        b"data: x\n\n",
        b"",
    ],
)
def test_what_is_no_reply_of_a_host_is_one_error(data: bytes) -> None:
    reader = RemoteReader(RemoteContent(), Peer("remote"))
    assert reader.feed(data) == []
    assert reader.end() == []
    with pytest.raises((ProviderError, NetworkError), match="check the server URL") as caught:
        reader.finish()
    assert "<" not in str(caught.value)


def test_a_reply_cut_at_any_byte_gives_what_came_and_never_passes_for_whole() -> None:
    said: list[Chunk] = [*CHUNKS]
    whole = b"".join(map(encode_chunk, said)) + encode_message(AssistantMessage("end"))
    for size in range(len(whole)):
        reader = RemoteReader(RemoteContent(), Peer("remote"))
        got = [chunk for at in range(size) for chunk in reader.feed(whole[at : at + 1])]
        assert got == said[: len(got)]
        assert reader.end() == []
        with pytest.raises(NetworkError):
            reader.finish()
