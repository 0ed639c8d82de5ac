"""What an adapter does with requests, replies and connections, whatever the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest
from tests.providers.loopback import Loopback, Reply
from tests.providers.reading import ask, listen, text_in, text_of
from tests.providers.wires import KEY, MODEL, WIRES, Wire, on_every_wire

from robota.core.errors import ConfigurationError, NetworkError, RobotaError
from robota.core.provider import Chunk, NativePayload, TextChunk
from robota.providers.wire import provider as wire_provider

pytestmark = pytest.mark.anyio

with_an_end_mark = pytest.mark.parametrize("name", [name for name in WIRES if name != "gemini"])


@asynccontextmanager
async def serve(wire: Wire, *replies: Reply) -> AsyncIterator[tuple[Any, Loopback]]:
    async with Loopback(*replies) as server, wire.connect(server.origin, name="acme") as provider:
        yield provider, server


def whole(wire: Wire) -> Reply:
    return Reply([wire.stream])


def begun(wire: Wire) -> tuple[bytes, str]:
    """A recorded reply up to its first text."""
    reader, sent = wire.reader(), b""
    for line in wire.stream.splitlines(keepends=True):
        sent += line
        text = text_in(reader.feed(line))
        if text:
            return sent, text
    raise AssertionError("the recorded reply has no text")


@on_every_wire
async def test_the_request_names_the_model_or_the_provider_does(wire: Wire) -> None:
    async with serve(wire, whole(wire), whole(wire)) as (provider, server):
        await listen(provider)
        await listen(provider, ask(model="other"))
        for sent, model in zip(server.requests, (MODEL, "other"), strict=True):
            assert model in (sent.json.get("model"), sent.path.partition("/models/")[2].partition(":")[0])
        provider.model = None
        with pytest.raises(ConfigurationError, match="needs a model"):
            await listen(provider)


@on_every_wire
async def test_native_payloads_are_the_bytes_that_were_sent_and_received(wire: Wire) -> None:
    async with serve(wire, whole(wire)) as (provider, server):
        chunks = await listen(provider, ask(want_raw=True))
    native = [chunk for chunk in chunks if isinstance(chunk, NativePayload)]
    assert [chunk.kind for chunk in native] == ["request"] + ["stream_event"] * (len(native) - 1)
    assert {chunk.api_surface for chunk in native} == {wire.content.surface}
    assert native[0].payload == server.requests[0].body
    assert MODEL in (server.requests[0].json.get("model"), native[0].metadata.get("model"))
    texts = [chunk.raw for chunk in chunks if isinstance(chunk, TextChunk)]
    received = [chunk.payload for chunk in native[1:]] + [raw for raw in texts if raw is not None]
    lines = [line.removeprefix(b"data: ") for line in wire.stream.splitlines()]
    assert received
    assert all(payload in lines for payload in received)


@on_every_wire
@pytest.mark.parametrize(
    "reply",
    [
        Reply([f'{{"error":{{"message":"bad key {KEY}"}}}}'.encode()], 401),
        Reply([f'data: {{"error":{{"message":"key {KEY} is blocked"}}}}\n\n'.encode()]),
        Reply([f"data: nonsense {KEY}\n\n".encode()]),
    ],
)
async def test_no_error_shows_the_key(wire: Wire, reply: Reply) -> None:
    async with serve(wire, reply) as (provider, _):
        with pytest.raises(RobotaError, match=r"\*\*\*") as caught:
            await listen(provider)
        assert KEY not in str(caught.value)


# --- connections -----------------------------------------------------------------------------------------


@on_every_wire
async def test_a_stream_read_to_its_end_leaves_a_connection_for_the_next(wire: Wire) -> None:
    gate = asyncio.Event()
    async with serve(wire, Reply([wire.stream, gate]), whole(wire)) as (provider, server):
        asyncio.get_running_loop().call_soon(gate.set)
        assert await text_of(provider) == await text_of(provider) != ""
        assert server.connections == 1


@with_an_end_mark
async def test_a_server_that_never_ends_its_message_does_not_hold_up_the_reply(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_provider, "DRAIN_SECONDS", 0.01)
    async with serve(WIRES[name], Reply([WIRES[name].stream], hang=True)) as (provider, server):
        assert await text_of(provider)
        await server.hung_up.wait()


@on_every_wire
async def test_a_connection_cut_in_mid_stream_is_a_network_error_after_the_text(wire: Wire) -> None:
    sent, text = begun(wire)
    async with serve(wire, Reply([sent], cut=True)) as (provider, _):
        heard: list[Chunk] = []
        with pytest.raises(NetworkError, match=r"^The connection to acme at http://127\.0\.0\.1:\d+ broke"):
            await listen(provider, heard=heard)
        assert heard[-1] == TextChunk(text)


@on_every_wire
async def test_a_connection_cut_after_the_last_word_is_no_error(wire: Wire) -> None:
    async with serve(wire, Reply([wire.stream], cut=True), whole(wire)) as (provider, _):
        assert await text_of(provider) == await text_of(provider)


@on_every_wire
async def test_an_abort_while_waiting_closes_the_connection(wire: Wire) -> None:
    sent, text = begun(wire)
    async with serve(wire, Reply([sent], hang=True), whole(wire)) as (provider, server):
        with anyio.CancelScope() as scope:
            async with aclosing(provider.stream(ask())) as chunks:
                async for chunk in chunks:
                    if chunk == TextChunk(text):
                        asyncio.get_running_loop().call_soon(scope.cancel)
        assert scope.cancelled_caught
        await server.hung_up.wait()
        assert await text_of(provider)


@on_every_wire
async def test_an_abort_before_the_first_byte_closes_the_connection(wire: Wire) -> None:
    gate = asyncio.Event()
    async with serve(wire, Reply([gate], hang=True)) as (provider, server):
        reading = asyncio.ensure_future(listen(provider))
        await server.asked.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        gate.set()
        await server.hung_up.wait()
