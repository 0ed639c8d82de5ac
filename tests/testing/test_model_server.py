from __future__ import annotations

import asyncio
import json

import httpx2
import pytest

from robota.core.errors import ConfigurationError
from robota.testing import (
    ContentType,
    Crlf,
    Cut,
    Delay,
    Drip,
    ErrorEvent,
    Fail,
    Gate,
    HttpError,
    KeepAlive,
    Malformed,
    ModelServer,
    NoEndMark,
    RawBytes,
    Stall,
    call,
)

pytestmark = pytest.mark.anyio

HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
STREAM = {**HELLO, "stream": True}


@pytest.fixture
async def client():
    async with httpx2.AsyncClient(timeout=30) as client:
        yield client


async def ask(client, server, body=STREAM):
    return await client.post(f"{server.url}/v1/chat/completions", json=body)


async def read_pieces(client, server, pieces):
    async with client.stream("POST", f"{server.url}/v1/chat/completions", json=STREAM) as response:
        async for piece in response.aiter_raw():
            pieces.append(piece)
    return pieces


def text_of(body: str) -> str:
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])


# --- requests ----------------------------------------------------------------------------------------


async def test_requests_are_remembered_in_order(client):
    async with ModelServer("one", "two", models=("small", "large")) as server:
        listed = await client.get(f"{server.url}/v1/models")
        await client.post(f"{server.url}/v1/chat/completions?x=1", json=HELLO, headers={"X-Key": "secret"})
        await ask(client, server)
    assert [model["id"] for model in listed.json()["data"]] == ["small", "large"]
    assert [(seen.number, seen.method, seen.path) for seen in server.requests] == [
        (1, "GET", "/v1/models"),
        (2, "POST", "/v1/chat/completions"),
        (3, "POST", "/v1/chat/completions"),
    ]
    assert (server.requests[1].query, server.requests[1].headers["x-key"]) == ("x=1", "secret")
    assert server.requests[2].body == STREAM
    assert server.requests[0].conversation.turns == ()


async def test_a_test_can_wait_for_requests(client):
    async with ModelServer(["Hi", Stall()]) as server:
        asking = asyncio.ensure_future(ask(client, server))
        (request,) = await server.wait_for_requests(1)
        assert request.conversation.texts("user") == ["Hello"]
        asking.cancel()
        await request.disconnected.wait()
        with pytest.raises(TimeoutError, match="got 2 requests"):
            await server.wait_for_requests(2, timeout=0)


async def test_a_server_that_does_not_record_still_counts(client):
    async with ModelServer("Hi", record=False) as server:
        await ask(client, server)
        assert await server.wait_for_requests(1, timeout=0) == []


async def test_a_request_the_vendor_would_refuse_is_refused_unless_the_server_is_lenient(client):
    nonsense = {"model": "m", "messages": [{"role": "tool", "tool_call_id": "c1", "content": "3"}]}
    async with ModelServer("Hi") as strict, ModelServer("Hi", strict=False) as lenient:
        refused = await ask(client, strict, nonsense)
        assert (refused.status_code, (await ask(client, strict)).status_code) == (400, 200)
        assert "answers no call" in refused.json()["error"]["message"]
        assert (await ask(client, lenient, nonsense)).status_code == 200


async def test_one_connection_serves_many_requests():
    async with ModelServer("Hi", repeat=True) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        body = json.dumps(HELLO).encode()
        sized = b"POST /chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        chunked = b"POST /chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
        chunks = b"5\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (body[:5], len(body) - 5, body[5:])
        writer.write(sized + chunked + chunks)  # the second does not wait for the answer to the first
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            assert json.loads(await reader.readexactly(size))["choices"][0]["message"]["content"] == "Hi"
        writer.close()
        await writer.wait_closed()
    assert [seen.body for seen in server.requests] == [HELLO, HELLO]


async def test_a_client_that_waits_for_permission_to_send_gets_it_once():
    async with ModelServer("Hi") as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        body = json.dumps(HELLO).encode()
        head = b"POST /chat/completions HTTP/1.1\r\nexpect: 100-continue\r\nconnection: close\r\n"
        writer.write(head + b"content-length: %d\r\n\r\n" % len(body))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body[:10])
        await writer.drain()
        writer.write(body[10:])
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    "nonsense",
    [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
     b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
     b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", b"x" * 70_000],
)  # fmt: skip
async def test_what_is_not_http_is_refused(nonsense):
    async with ModelServer() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(nonsense)
        assert (await reader.readline()) == b"HTTP/1.1 400 Bad Request\r\n"
        writer.close()
    assert server.requests == []


async def test_an_unknown_path_says_so(client):
    async with ModelServer() as server:
        answer = await client.get(f"{server.url}/nowhere")
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        404,
        "This model server has nothing at GET /nowhere.",
    )


# --- scripts -----------------------------------------------------------------------------------------


async def test_a_function_answers_from_the_request(client):
    def echo(request):
        return [request.conversation.texts("user")[-1].upper(), Delay(0), "!"]

    async with ModelServer(echo) as server:
        assert text_of((await ask(client, server)).text) == "HELLO!"


async def ask_and_leave(client, server, times=1, error=None):
    """Use a server that is expected to raise on leaving; what it answered is in `server.answers`."""
    server.answers = []
    async with server:
        for _ in range(times):
            server.answers.append(await ask(client, server))
        if error is not None:
            raise error


async def test_an_error_in_a_function_reaches_the_client_and_then_the_test(client):
    def wrong(request):
        raise LookupError("not what I expected")

    server = ModelServer(wrong)
    with pytest.raises(LookupError):
        await ask_and_leave(client, server)
    assert server.answers[0].status_code == 400
    assert "LookupError: not what I expected" in server.answers[0].json()["error"]["message"]


async def test_a_script_that_is_over_says_so(client):
    server = ModelServer("one")
    with pytest.raises(ConfigurationError, match="no reply for model request 2"):
        await ask_and_leave(client, server, times=2)
    assert "pass repeat=True" in server.answers[1].json()["error"]["message"]


async def test_a_failure_of_the_test_itself_is_not_replaced(client):
    with pytest.raises(ZeroDivisionError):
        await ask_and_leave(client, ModelServer(), error=ZeroDivisionError())


def test_a_step_that_no_server_can_play_is_refused_at_once():
    with pytest.raises(ConfigurationError, match="Fail is not a step"):
        ModelServer([Fail(ValueError())])


async def test_an_error_beside_words_is_refused(client):
    with pytest.raises(ConfigurationError, match="beside an HttpError"):
        await ask_and_leave(client, ModelServer(["Hi", HttpError(500)]))


# --- streams -----------------------------------------------------------------------------------------


async def test_each_event_is_one_http_chunk(client):
    async with ModelServer(["a", "b"]) as server:
        pieces = await read_pieces(client, server, [])
    assert [piece.endswith(b"\n\n") for piece in pieces] == [True] * 5
    assert pieces[-1] == b"data: [DONE]\n\n"
    assert server.requests[0].reply_size == sum(map(len, pieces))


async def test_twenty_thousand_deltas_arrive(client):
    async with ModelServer(["twelve bytes"] * 20_000, repeat=True) as server:
        for _ in range(2):
            assert text_of((await ask(client, server)).text) == "twelve bytes" * 20_000


async def test_drips_tear_characters_apart(client):
    async with ModelServer(["🐢", Drip(1)], ["🐢", Drip(100_000)]) as server:
        torn = await read_pieces(client, server, [])
        joined = await read_pieces(client, server, [])
    assert {len(piece) for piece in torn} == {1}
    assert joined == [b"".join(torn)]
    assert text_of(joined[0].decode()) == "🐢"


async def test_a_gate_holds_the_reply_until_the_test_opens_it(client):
    gate = Gate()
    async with (
        ModelServer(["before", gate, "after"]) as server,
        client.stream("POST", f"{server.url}/v1/chat/completions", json=STREAM) as response,
    ):
        await gate.reached.wait()
        pieces = response.aiter_raw()
        await anext(pieces)
        assert text_of((await anext(pieces)).decode()) == "before"
        assert not server.requests[0].answered.is_open
        gate.open()
        assert text_of(b"".join([piece async for piece in pieces]).decode()) == "after"
        await server.requests[0].answered.wait()


async def test_a_gate_opened_beforehand_holds_nobody(client):
    gate = Gate()
    gate.open()
    async with ModelServer([gate, "Hi"]) as server:
        assert text_of((await ask(client, server)).text) == "Hi"


async def test_keep_alives_can_go_on_until_the_client_gives_up(client):
    async with ModelServer([KeepAlive(text="still here", every=0.001)]) as server:
        async with client.stream("POST", f"{server.url}/v1/chat/completions", json=STREAM) as response:
            pieces = response.aiter_raw()
            assert [await anext(pieces) for _ in range(3)] == [b": still here\n\n"] * 3
            await pieces.aclose()
        await server.requests[0].disconnected.wait()


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        pytest.param([RawBytes(b"data: 1\n\n"), RawBytes(b"x")], "data: 1\n\nx", id="raw bytes alone"),
        pytest.param([Malformed("{half")], "data: {half\n\n", id="malformed event alone"),
        pytest.param([Malformed("{half"), Crlf()], "data: {half\r\n\r\n", id="line ends"),
        pytest.param([KeepAlive(text="ping"), RawBytes(b"")], ": ping\n\n", id="comment"),
    ],
)
async def test_raw_steps_are_the_whole_body(client, reply, body):
    async with ModelServer(reply) as server:
        assert (await ask(client, server)).text == body


async def test_the_end_mark_can_be_missing(client):
    async with ModelServer(["Hi", NoEndMark()]) as server:
        body = (await ask(client, server)).text
    assert "[DONE]" not in body
    assert '"finish_reason":"stop"' in body


async def test_an_error_event_ends_a_stream_that_began_well(client):
    async with ModelServer(["Hi", ErrorEvent("Overloaded.", "overloaded_error")]) as server:
        answer = await ask(client, server)
    assert answer.status_code == 200
    assert json.loads(answer.text.rstrip().rpartition("data: ")[2])["error"]["message"] == "Overloaded."
    assert 'finish_reason":"stop' not in answer.text


async def test_a_reply_can_claim_to_be_something_else(client):
    async with ModelServer(["Hi", ContentType("text/plain")]) as server:
        assert (await ask(client, server)).headers["content-type"] == "text/plain"


# --- faults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (HttpError(429, headers={"retry-after": "7"}), "application/json"),
        (HttpError(529), "application/json"),
        (HttpError(400, {"detail": "odd"}), "application/json"),
        (HttpError(503, "busy"), "text/plain"),
        (HttpError.html(502), "text/html"),
    ],
)
async def test_an_error_has_status_headers_and_body(client, error, kind):
    async with ModelServer(error, [Delay(0), error]) as server:
        for _ in range(2):
            answer = await ask(client, server)
            assert (answer.status_code, answer.headers["content-type"]) == (error.status, kind)
            assert dict(error.headers).items() <= dict(answer.headers).items()
            if error.body is None:
                assert str(error.status) in answer.json()["error"]["message"]
            else:
                assert (answer.json() if kind == "application/json" else answer.text) == error.body


async def test_a_cut_ends_the_connection_where_it_says(client):
    async with ModelServer(["Hello", Cut(after_bytes=10)], ["Hello", Cut(), "never"], Cut()) as server:
        for received in (10, None, 0):
            pieces = []
            with pytest.raises(httpx2.RemoteProtocolError):
                await read_pieces(client, server, pieces)
            got = b"".join(pieces)
            if received is None:
                assert text_of(got.decode()) == "Hello"
            else:
                assert len(got) == received


async def test_a_clean_cut_looks_complete(client):
    async with ModelServer(["Hello", Cut(clean=True)], ["Hello", Cut(after_bytes=3, clean=True)]) as server:
        assert 'finish_reason":"stop' not in (await ask(client, server)).text
        assert (await ask(client, server)).content == b"dat"


async def test_a_cut_behind_the_end_changes_nothing(client):
    async with ModelServer(["Hello", Cut(after_bytes=100_000)]) as server:
        assert (await ask(client, server)).text.endswith("data: [DONE]\n\n")


# --- documents ---------------------------------------------------------------------------------------


async def test_faults_reach_clients_that_do_not_stream(client):
    replies = (["Hi", Malformed("{half")], ["Hi", ErrorEvent("No.")], [Drip(2), Delay(0), "Hi", KeepAlive()])
    async with ModelServer(*replies, ["Hi", Cut(after_bytes=5)], [call("add"), Cut()]) as server:
        assert (await ask(client, server, HELLO)).text == "{half"
        assert (await ask(client, server, HELLO)).json()["error"]["message"] == "No."
        assert (await ask(client, server, HELLO)).json()["choices"][0]["message"]["content"] == "Hi"
        for _ in range(2):
            with pytest.raises(httpx2.RemoteProtocolError):
                await ask(client, server, HELLO)
