"""Servers that want to do harm, on every wire and to a client of another host.

Each gets one sentence out of us, no key, a bounded part of our time and memory, and no say in the next turn.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.providers.raw_server import HEAD, RawServer, chunked, refusal
from tests.providers.wires import KEY, WIRES, Wire, on_every_wire
from tests.support.history import assert_valid_for_a_request

from robota.core.errors import RateLimitError, RobotaError
from robota.core.messages import AssistantMessage, ToolCall, UserMessage
from robota.core.provider import ChatRequest
from robota.core.robota import Robota, RunLimits
from robota.providers.chat.request import ChatDialect, ChatEncoder
from robota.providers.remote import RemoteProvider
from robota.providers.remote.protocol import encode_message
from robota.providers.remote.provider import RemoteContent, RemoteReader
from robota.providers.wire import reply as wire_reply

pytestmark = pytest.mark.anyio

IDLE = 0.2
PATIENT = 30.0
FINE = {
    "chat": b'data: {"choices":[{"delta":{"content":"fine"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    "responses": b'data: {"type":"response.completed","response":{"output":[{"type":"message","content":'
    b'[{"type":"output_text","text":"fine"}]}]}}\n\n',
    "anthropic": b'data: {"type":"content_block_delta","index":0,"delta":{"text":"fine"}}\n\n'
    b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\ndata: {"type":"message_stop"}\n\n',
    "gemini": b'data: {"candidates":[{"content":{"parts":[{"text":"fine"}]},"finishReason":"STOP"}]}\n\n',
    "remote": b'event: text\ndata: {"text":"fine"}\n\n' + encode_message(AssistantMessage("fine")),
}
CLIENTS: dict[str, Callable[[str], Any]] = {
    **{name: wire.connect for name, wire in WIRES.items()},
    "remote": lambda url: RemoteProvider(url, KEY, "up", "m"),
}
by_every_client = pytest.mark.parametrize("client", CLIENTS)


async def turn(client: str, *answers: bytes, idle: float = PATIENT, endless: bytes = b"") -> str:
    """What the user reads after a first turn with this server; a second turn has to work."""
    good = () if endless else (HEAD + FINE[client],)
    async with RawServer(*answers, *good, endless=endless) as server, CLIENTS[client](server.url) as provider:
        agent = Robota(provider, model="m", limits=RunLimits(idle_timeout=idle))
        result = await agent.run("Hi.")
        if result.error is not None:
            assert_harmless(result.error)
        assert_valid_for_a_request(agent.messages)
        if not endless:
            assert (await agent.run("And now?")).text == "fine"
    return result.text if result.error is None else str(result.error)


def assert_harmless(error: RobotaError) -> None:
    text = str(error)
    assert text.isprintable()
    assert text.endswith(".")
    assert len(text) < 800
    assert "Provider '" not in text, "an exception that nobody expected"
    assert KEY[:9] not in f"{text}{getattr(error, 'request_id', '')}"


def error_body(**fields: Any) -> bytes:
    return json.dumps({"error": fields}).encode()


def error_event(**fields: Any) -> bytes:
    return HEAD + b"event: error\ndata: " + error_body(**fields) + b"\n\n"


ECHOES = {
    "body": refusal(401, error_body(message=f"no: {KEY}", type=KEY, code=KEY)),
    "cut": refusal(400, error_body(message="x" * 390 + KEY)),
    "text": refusal(500, b"y" * 395 + KEY.encode()),
    "request id": refusal(500, x_request_id=KEY),
    "place": refusal(307, location=f"http://evil.example/?key={KEY}"),
    "status line": f"HTTP/9.9 {KEY}\r\n\r\n".encode(),
    "header": f"HTTP/1.1 200 OK\r\nbad {KEY}\r\n\r\n".encode(),
    "event": HEAD
    + b"event: error\ndata: "
    + json.dumps({"code": "X", "message": f"No, {KEY}."}).encode()
    + b"\n\n",
    "code": error_event(code=KEY, type=KEY),
    "cut event": error_event(message="x" * 392 + KEY, code="X"),
    "no reply": HEAD + b'{"a":"' + b"x" * 185 + KEY.encode() + b'"}',
    "host": refusal(502, error_body(code="PROVIDER_ERROR", message=f"Not with {KEY}.", requestId=KEY)),
}


@by_every_client
@pytest.mark.parametrize("answer", ECHOES.values(), ids=list(ECHOES))
async def test_a_key_that_is_echoed_is_shown_neither_whole_nor_in_part(client: str, answer: bytes) -> None:
    await turn(client, answer)


async def test_a_key_is_recognised_in_an_address_too() -> None:
    async with RawServer(refusal(307, location="http://evil/?k=a%2Fb%2Bc%3Dd%3De")) as server:
        provider = WIRES["chat"].connect(server.url, api_key="a/b+c=d=e")
        result = await Robota(provider, model="m").run("Hi.")
    assert "http://evil/?k=***" in str(result.error)
    await provider.aclose()


@by_every_client
async def test_a_redirect_takes_the_key_nowhere(client: str) -> None:
    async with RawServer() as elsewhere:
        said = await turn(client, refusal(307, location=f"{elsewhere.url}/v1"))
    assert elsewhere.requests == []
    assert "moved to" in said


NONSENSE = {
    "codes without end": error_event(code="9" * 6000),
    "code of many lines": error_event(code="a b\n" * 6000),
    "terminal control": error_event(message="\x1b[2J\x07\u202ered", code="\x1b]0;x\x07"),
    "long place": refusal(302, location="http://evil.example/" + "a" * 30_000),
    "broken place": refusal(302, location="http://[::1/x"),
    "no place": refusal(302),
    "zone of twenty digits": refusal(429, retry_after="Wed, 21 Oct 2015 07:28:00 +99999999999999999999"),
    "wait for ever": refusal(429, retry_after="9" * 400),
    "web page": HEAD + b"\n <html>" + b"x" * 100_000,
    "nothing": b"",
    "no content": b"HTTP/1.1 204 No\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhi",
    "unknown status": refusal(999),
    "status line without end": b"HTTP/1.1 200 " + b"A" * 300_000,
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 30_000,
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 9\r\n\r\nabc",
    "negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -3\r\n\r\nabc",
    "broken gzip": HEAD.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n") + b"abc",
    "bad chunk": chunked(b": hi\n\n") + b"zz\r\nfoo",
    "huge chunk": chunked() + b"f" * 20 + b"\r\nfoo",
    "chunk extension without end": chunked() + b"1;" + b"a" * 300_000,
    "deep event": HEAD + b"data: " + b"[" * 200_000 + b"\n\n",
    "deep document": HEAD + b'{"a":' * 200_000,
}


@by_every_client
@pytest.mark.parametrize("answer", NONSENSE.values(), ids=list(NONSENSE))
async def test_nonsense_is_one_sentence_and_the_next_turn_works(client: str, answer: bytes) -> None:
    assert await turn(client, answer) != "fine"


ODD_BUT_TRUE: dict[str, Callable[[bytes], bytes]] = {
    "early hints": lambda reply: b"HTTP/1.1 103 Early\r\nlink: a\r\n\r\n" * 3 + HEAD + reply,
    "http 1.0": lambda reply: b"HTTP/1.0 200 OK\r\n\r\n" + reply,
    "trailers": lambda reply: chunked(reply) + b"0\r\nx-sum: 1\r\n\r\n",
    "byte order mark": lambda reply: HEAD + b"\xef\xbb\xbf" + reply,
    "fields in any order": lambda reply: (
        HEAD + reply.replace(b"data: ", b"id:7\r\nretry: 99999999999\r\n:x\r\ndata:")
    ),
    "one byte per chunk": lambda reply: chunked(*(bytes([byte]) for byte in reply)) + b"0\r\n\r\n",
}


@by_every_client
@pytest.mark.parametrize("dress", ODD_BUT_TRUE.values(), ids=list(ODD_BUT_TRUE))
async def test_a_reply_in_odd_clothes_is_read(client: str, dress: Callable[[bytes], bytes]) -> None:
    assert await turn(client, dress(FINE[client])) == "fine"


ENDLESS = {
    "comments": (HEAD, b": keep-alive\n\n" * 1000),
    "early hints": (b"", b"HTTP/1.1 103 Early\r\nlink: a\r\n\r\n" * 100),
    "events that say nothing": (HEAD, b'event: ping\ndata: {"type":"ping"}\n\n' * 100),
}


@by_every_client
@pytest.mark.parametrize("kind", ENDLESS)
async def test_noise_without_end_is_silence(client: str, kind: str) -> None:
    head, noise = ENDLESS[kind]
    assert "idle timeout" in await turn(client, head, idle=IDLE, endless=noise)


@by_every_client
@pytest.mark.parametrize("piece", [b": a line without an event\n", b"data: more of the same line"])
async def test_an_event_without_end_is_dropped(client: str, piece: bytes) -> None:
    said = await turn(client, HEAD, endless=piece * 4000)
    assert "event of more than" in said


@by_every_client
async def test_an_explanation_without_end_is_not_read(client: str) -> None:
    said = await turn(client, b"HTTP/1.1 500 No\r\n\r\n", endless=b"because " * 1000)
    assert "because because" in said


def text_event(name: str) -> bytes:
    text = b"a" * 1000
    return {
        "chat": b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n',
        "responses": b'data: {"type":"response.output_text.delta","delta":"%s"}\n\n',
        "anthropic": b'data: {"type":"content_block_delta","index":0,"delta":{"text":"%s"}}\n\n',
        "gemini": b'data: {"candidates":[{"content":{"parts":[{"text":"%s"}]}}]}\n\n',
        "remote": b'event: text\ndata: {"text":"%s"}\n\n',
    }[name] % text


@by_every_client
async def test_a_reply_without_end_has_one(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_reply, "MAX_REPLY_BYTES", 1 << 20)
    assert "more than 1 MiB in one reply" in await turn(client, HEAD, endless=text_event(client))


@by_every_client
async def test_a_gigabyte_in_a_megabyte_is_dropped(client: str) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(b": ") + b"".join(packer.compress(b"a" * (1 << 20)) for _ in range(40))
    head = HEAD.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n")
    assert "event of more than" in await turn(client, head + packed)


async def test_a_whole_answer_of_a_host_is_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robota.providers.remote.provider.MAX_BODY_BYTES", 1 << 20)
    async with RawServer(HEAD, endless=b" " * 60_000) as server, CLIENTS["remote"](server.url) as provider:
        with pytest.raises(RobotaError, match="not an answer of a robota host"):
            await provider.chat(ChatRequest(model="m", messages=(UserMessage("Hi."),)))


# --- floods, counted and not timed -----------------------------------------------------------------------

MANY = 1000


def flood(name: str) -> bytes:
    """Calls, each with an id of its own."""
    numbers = range(MANY)
    if name == "chat":
        calls: list[Any] = [
            {"choices": [{"delta": {"tool_calls": [{"id": f"c{n}", "function": {"name": "x"}}]}}]}
            for n in numbers
        ]
    elif name == "anthropic":
        calls = [
            {
                "type": "content_block_start",
                "index": n,
                "content_block": {"type": "tool_use", "id": f"c{n}", "name": "x"},
            }
            for n in numbers
        ]
    elif name == "responses":
        calls = [
            {
                "type": "response.output_item.done",
                "output_index": n,
                "item": {"type": "web_search_call", "id": f"w{n}", "action": "look"},
            }
            for n in numbers
        ]
    else:
        part = {"functionCall": {"name": "x", "args": {}}}
        calls = [{"candidates": [{"content": {"parts": [part]}}]} for _ in numbers]
    return b"".join(b"data: " + json.dumps(call).encode() + b"\n\n" for call in calls)


@on_every_wire
def test_a_thousand_calls_do_not_cost_their_square(wire: Wire) -> None:
    reader = wire.reader()
    stream = flood(wire.name)
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        chunks = reader.feed(stream)
    finally:
        sys.setprofile(None)
    assert reader.failure is None
    assert len(chunks) >= MANY
    assert steps < 150 * MANY


@pytest.mark.parametrize("id", ["", "same", None])
def test_a_thousand_calls_are_told_apart_in_the_request(id: str | None) -> None:
    calls = tuple(ToolCall(f"c{n}" if id is None else id, "x", "{}") for n in range(MANY))
    request = ChatRequest(model="m", messages=[AssistantMessage("", calls)])
    asked, *answers = json.loads(ChatEncoder(ChatDialect()).encode(request, "m"))["messages"]
    ids = [call["id"] for call in asked["tool_calls"]]
    assert len(set(ids)) == len(ids) == MANY
    assert [answer["tool_call_id"] for answer in answers] == ids


def test_the_first_character_of_a_hosts_reply_may_come_late() -> None:
    reader = RemoteReader(RemoteContent(), wire_reply.Peer("remote", secrets=[KEY]))
    for _ in range(10_000):
        reader.feed(b"\n")
    reader.feed(b"<html>")
    with pytest.raises(RobotaError, match="web page"):
        reader.finish()


ODD_FIELDS = [
    (
        "anthropic",
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "citations": 7}},
    ),
    ("chat", {"choices": [{"delta": {"reasoning_details": [{"index": [], "type": {}}]}}]}),
    ("responses", {"type": "response.output_item.done", "item": {"type": "x_call", "action": "look"}}),
]


@pytest.mark.parametrize(("name", "event"), ODD_FIELDS)
def test_a_field_of_another_kind_is_passed_over(name: str, event: dict[str, Any]) -> None:
    reader = WIRES[name].reader()
    reader.feed(b"data: " + json.dumps(event).encode() + b"\n\n" + FINE[name])
    reader.end()
    assert reader.finish()


async def test_a_wait_that_is_no_number_of_seconds_is_left_out() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "9" * 400 + "s"}
    answer = refusal(429, error_body(code=429, details=[info]))
    async with RawServer(answer) as server, WIRES["gemini"].connect(server.url) as provider:
        result = await Robota(provider, model="m").run("Hi.")
    assert isinstance(result.error, RateLimitError)
    assert result.error.retry_after is None
