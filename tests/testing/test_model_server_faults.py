from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import httpx2
import pytest
from tests.support.wires import WIRES, events

from robota.core.messages import ToolCall
from robota.core.provider import ToolInputChunk
from robota.testing import (
    CallIds,
    ContentType,
    Crlf,
    Cut,
    Drip,
    ErrorEvent,
    Forever,
    Gate,
    HttpError,
    KeepAlive,
    Malformed,
    ModelServer,
    NoEndMark,
    RawBytes,
    Stall,
    Tap,
    UnknownEvent,
    call,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("wire", WIRES, ids=[wire.name for wire in WIRES]),
]
both_ways = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@pytest.fixture
async def client():
    async with httpx2.AsyncClient(timeout=30) as client:
        yield client


async def ask(client, server, wire, stream=True):
    return await client.post(wire.url(server.url, stream=stream), json=wire.request(stream=stream))


async def read_pieces(client, server, wire, pieces, stream=True):
    url, body = wire.url(server.url, stream=stream), wire.request(stream=stream)
    async with client.stream("POST", url, json=body) as response:
        async for piece in response.aiter_raw():
            pieces.append(piece)
    return pieces


# --- refusals ----------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_an_error_speaks_the_protocol_of_the_request(client, wire, stream, status):
    async with ModelServer(HttpError(status)) as server:
        answer = await ask(client, server, wire, stream)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    error = answer.json()["error"]
    assert error["message"] == f"Scripted failure with status {status}."
    assert error["status" if wire.name == "gemini" else "type"]


@pytest.mark.parametrize(
    ("after", "header"),
    [(7, "7"), (0.5, "0.5"), (datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC), "Wed, 02 Jan 2030 03:04:05 GMT")],
)
async def test_a_refusal_says_when_to_come_back(client, wire, after, header):
    async with ModelServer(HttpError(429, retry_after=after)) as server:
        assert (await ask(client, server, wire)).headers["retry-after"] == header


@both_ways
@pytest.mark.parametrize("status", [200, 502])
async def test_a_page_can_come_instead_of_a_reply(client, wire, stream, status):
    async with ModelServer(HttpError.html(status)) as server:
        answer = await ask(client, server, wire, stream)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html")
    assert answer.text.startswith("<html>")


GARBAGE = [1, "x", None, [], {}, [1], ["x"], [None], [[]], [{}], [{"role": "user"}]]


@pytest.mark.parametrize("garbage", GARBAGE, ids=repr)
async def test_a_request_without_sense_is_refused_and_the_server_lives(client, wire, garbage):
    url, request = wire.url("", stream=True), wire.request(stream=True)
    async with ModelServer("Hi", repeat=True) as server:
        for field in ("messages", "input", "contents", "tools", "system", "model"):
            answer = await client.post(server.url + url, json={**request, field: garbage})
            assert answer.status_code in (200, 400)
        assert (await client.post(server.url + url, content=b"[" * 100_000)).status_code == 400


# --- replies with something wrong in them ------------------------------------------------------------


@both_ways
async def test_a_reply_can_say_nothing(client, wire, stream):
    async with ModelServer([], [RawBytes(b"")]) as server:
        silent = await ask(client, server, wire, stream)
        empty = await ask(client, server, wire, stream)
    said = wire.text(silent.text, stream=stream) if stream or wire.name != "chat" else ""
    assert (silent.status_code, said) == (200, "")
    assert (empty.status_code, empty.content) == (200, b"")


@both_ways
async def test_a_reply_can_claim_to_be_something_else(client, wire, stream):
    async with ModelServer(["Hi", ContentType("text/plain")]) as server:
        answer = await ask(client, server, wire, stream)
    assert answer.headers["content-type"] == "text/plain"
    assert wire.text(answer.text, stream=stream) == "Hi"


async def test_an_event_of_the_usual_kind_can_be_malformed(client, wire):
    async with ModelServer(["Hi", Malformed("{half")]) as server:
        body = (await ask(client, server, wire)).text
    named = {"messages": "content_block_delta", "responses": "response.output_text.delta"}.get(wire.name)
    event = f"event: {named}\ndata: {{half\n\n" if named else "data: {half\n\n"
    assert event in body


async def test_a_document_can_be_malformed(client, wire):
    async with ModelServer(["Hi", Malformed("{half")]) as server:
        assert (await ask(client, server, wire, stream=False)).text == "{half"


async def test_a_stream_can_have_an_event_that_nobody_knows(client, wire):
    async with ModelServer(["Hel", UnknownEvent("weather", {"sky": "blue"}), "lo"]) as server:
        body = (await ask(client, server, wire)).text
    assert wire.text(body, stream=True) == "Hello"
    assert [event for event in events(body) if "weather" in json.dumps(event)]


async def test_a_document_can_have_a_field_that_nobody_knows(client, wire):
    async with ModelServer(["Hi", UnknownEvent("weather", {"sky": "blue"})]) as server:
        answer = await ask(client, server, wire, stream=False)
    assert answer.json()["weather"] == {"sky": "blue"}
    assert wire.text(answer.text, stream=False) == "Hi"


@both_ways
async def test_a_failure_can_be_told_with_status_200(client, wire, stream):
    async with ModelServer(["Hi", ErrorEvent("Overloaded.", "overloaded_error")]) as server:
        answer = await ask(client, server, wire, stream)
    told = events(answer.text)[-1] if stream else answer.json()
    assert answer.status_code == 200
    assert told.get("error", told)["message"] == "Overloaded."


@both_ways
@pytest.mark.parametrize("id", ["c9", ""], ids=["the same", "none"])
async def test_calls_can_share_an_id_or_have_none(client, wire, stream, id):
    reply = [call("add", a=1), call("sub", a=2), CallIds(id)]
    async with ModelServer(reply) as server:
        body = (await ask(client, server, wire, stream)).text
    if not stream:
        assert [made.get("id") for made in wire.calls(body)] == [id or None] * 2
    assert "call_add" not in body
    assert "c9" in body if id else '"c9"' not in body
    assert '"call_id":' not in body or id


async def test_fragments_can_share_an_id_too(client, wire):
    reply = [ToolInputChunk(0, '{"a":', "c1", "add"), ToolInputChunk(0, "1}"), CallIds("c9")]
    async with ModelServer(reply) as server:
        body = (await ask(client, server, wire)).text
    assert '"c9"' in body
    assert '"c1"' not in body


@both_ways
async def test_arguments_can_be_no_json(client, wire, stream):
    half = '{"a": 1, "b'
    async with ModelServer([ToolCall("c1", "add", half)]) as server:
        answer = await ask(client, server, wire, stream)
    assert answer.status_code == 200
    if not stream:
        assert [made["arguments"] for made in wire.calls(answer.text)] == [half]
    assert r"\"a\": 1" in answer.text


# --- how bytes arrive --------------------------------------------------------------------------------


@both_ways
async def test_a_connection_can_break_at_any_byte(client, wire, stream):
    async with ModelServer("Hello", *[["Hello", Cut(after_bytes=at)] for at in (0, 1, 40)], Cut()) as server:
        whole = (await ask(client, server, wire, stream)).content
        for size in (0, 1, 40, 0):
            pieces: list[bytes] = []
            with pytest.raises(httpx2.RemoteProtocolError):
                await read_pieces(client, server, wire, pieces, stream)
            assert b"".join(pieces) == whole[:size]
    assert server.requests[0].reply_size == len(whole)


async def test_a_proxy_can_end_a_stream_early_and_properly(client, wire):
    async with ModelServer(["Hello", Cut(clean=True)], ["Hello", Cut(after_bytes=3, clean=True)]) as server:
        early = (await ask(client, server, wire)).text
        assert len((await ask(client, server, wire)).content) == 3
    assert wire.text(early, stream=True) == "Hello"
    assert not any(word in early for word in ("finishReason", "message_stop", "response.completed", "[DONE]"))


@both_ways
async def test_each_byte_can_be_a_write_of_its_own(client, wire, stream):
    async with ModelServer("🐢", ["🐢", Drip(1)]) as server:
        whole = (await ask(client, server, wire, stream)).content
        pieces = await read_pieces(client, server, wire, [], stream)
    assert b"".join(pieces) == whole
    if stream:
        assert {len(piece) for piece in pieces} == {1}


@both_ways
async def test_a_test_can_let_a_reply_out_piece_by_piece(client, wire, stream):
    tap = Tap()
    tap.tick()
    async with ModelServer(["Hello", Drip(10, tap=tap)]) as server:
        url, body = wire.url(server.url, stream=stream), wire.request(stream=stream)
        async with client.stream("POST", url, json=body) as response:
            pieces = response.aiter_raw()
            first = await anext(pieces)
            assert len(first) == 10
            assert not server.requests[0].answered.is_open
            tap.tick(1000)
            rest = b"".join([piece async for piece in pieces])
    assert wire.text((first + rest).decode(), stream=stream) == "Hello"


async def test_lines_can_end_with_carriage_returns_and_have_comments_between(client, wire):
    async with ModelServer([KeepAlive(text="ping"), "Hel", KeepAlive(), "lo", Crlf()]) as server:
        body = (await ask(client, server, wire)).content
    assert body.startswith(b": ping\r\n\r\n")
    assert b"\r\n\r\n: keep-alive\r\n\r\n" in body
    assert body.count(b"\n") == body.count(b"\r\n")
    assert wire.text(body.decode(), stream=True) == "Hello"


async def test_the_mark_of_the_end_can_be_missing(client, wire):
    async with ModelServer(["Hi", NoEndMark()]) as server:
        body = (await ask(client, server, wire)).text
    assert wire.text(body, stream=True) == "Hi"
    assert "[DONE]" not in body
    assert "message_stop" not in body


# --- replies that do not end -------------------------------------------------------------------------


async def test_a_stream_goes_on_until_the_test_releases_it(client, wire):
    gate = Gate()
    async with (
        ModelServer([Forever("la ", until=gate), "The end."]) as server,
        client.stream("POST", wire.url(server.url, stream=True), json=wire.request(stream=True)) as response,
    ):
        pieces = response.aiter_raw()
        heard = b""
        while wire.text(heard.decode(), stream=True).count("la ") < 5:
            heard += await anext(pieces)
        assert gate.reached.is_open
        gate.open()
        heard += b"".join([piece async for piece in pieces])
    assert wire.text(heard.decode(), stream=True).endswith("la The end.")


async def test_a_stream_goes_on_until_the_client_has_enough(client, wire):
    async with ModelServer([Forever("la ")]) as server:
        async with client.stream(
            "POST", wire.url(server.url, stream=True), json=wire.request(stream=True)
        ) as response:
            await anext(response.aiter_raw())
        await server.requests[0].disconnected.wait()


@pytest.mark.parametrize("endless", [Stall(), Forever("la ")], ids=["Stall", "Forever"])
async def test_a_document_may_never_come(client, wire, endless):
    async with ModelServer(["Hi", endless]) as server:
        asking = asyncio.ensure_future(ask(client, server, wire, stream=False))
        (request,) = await server.wait_for_requests(1)
        assert not asking.done()
        asking.cancel()
        await request.disconnected.wait()


async def test_a_gate_opened_when_the_server_is_gone_disturbs_nobody(wire):
    gate, tap = Gate(), Tap()
    with ModelServer([gate, "Hi"], ["Hi", Drip(1, tap=tap)]).in_thread() as server:
        for waiting in (1, 2):
            url, body = wire.url(server.url, stream=True), wire.request(stream=True)
            sending = httpx2.AsyncClient(timeout=30)
            asking = asyncio.ensure_future(sending.post(url, json=body))
            await server.wait_for_requests(waiting)
            asking.cancel()
            await asyncio.wait([asking])
            await sending.aclose()
    gate.open()
    tap.tick()
