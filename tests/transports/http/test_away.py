"""Clients that are really cut off while a session goes on, and come back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.serving import TOKEN, Serving, SseEvent, ended, serving, until
from websockets.asyncio.client import connect

from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio
WORDS = [f"{number} " for number in range(400)]
Told = list[tuple[int, dict[str, Any]]]


def told(events: list[SseEvent]) -> Told:
    return [(event.id, event.data) for event in events if event.id]


async def follow_socket(server: Serving, id: str, after: int, until_seen: int, *, cut: bool) -> Told:
    """What a WebSocket is told, to the event of a number; then it leaves, or its connection is cut."""
    found: Told = []
    url = f"ws://127.0.0.1:{server.port}/sessions/{id}/ws?token={TOKEN}&after={after}"
    async with connect(url, max_size=None) as socket:
        while not found or found[-1][0] < until_seen:
            message = json.loads(await socket.recv())
            if "seq" in message and "transient" not in message:
                del message["type"]
                found.append((message["seq"], message))
        if cut:
            socket.transport.abort()
    return found


async def test_who_was_cut_off_while_events_went_on_catches_up_exactly(project: Path) -> None:
    async with serving(ScriptedProvider(WORDS, WORDS, WORDS), project) as server:
        id = await server.new()
        hosted = server.host.sessions[id]
        runs = 0

        def third_end(event: SseEvent) -> bool:
            nonlocal runs
            runs += ended(event)
            return runs == 3

        steady = asyncio.create_task(server.read(id, third_end))
        await until(lambda: hosted.readers)
        await server.submit(id, "one")
        stream = await server.read(id, lambda event: event.id >= 3)
        socket = await follow_socket(server, id, 0, 3, cut=True)
        await until(lambda: len(hosted.readers) == 1)  # the server has noticed that both are gone
        await until(lambda: hosted.state == "idle")
        first = hosted.session.events.seq
        await server.submit(id, "two")
        await until(lambda: hosted.session.events.seq > first + len(WORDS))
        cursor = {"last-event-id": str(told(stream)[-1][0])}
        back = asyncio.create_task(
            server.read(id, lambda event: ended(event) and event.id > 2 * first, **cursor)
        )
        await until(lambda: hosted.state == "idle")
        await server.submit(id, "three")  # so that it comes back into the middle of something
        whole = told(await steady)
        stream += await back
        socket += await follow_socket(server, id, socket[-1][0], whole[-1][0], cut=False)

    assert len(whole) > 3 * len(WORDS)
    assert [number for number, _ in whole] == list(range(1, len(whole) + 1))
    assert told(stream) == whole
    assert socket == whole
