"""Server-sent events: the stream of a session, and the end of a connection that nobody reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from robota.transports.reader import Frame, Reader

T = TypeVar("T")
PING_SECONDS = 15.0
PAUSE_SECONDS = 0.01
"""Between two writes: what comes alone goes at once, what comes fast goes together."""
STALLED_SECONDS = 60.0
"""A client that takes nothing for so long is gone."""
ABORT = "robota.abort"
"""The extension of an ASGI scope that cuts the connection."""
PING = b": ping\n\n"
_END = b"event: end\ndata: {}\n\n"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


def write_frames(frames: Sequence[Frame]) -> bytes:
    return b"".join(
        [
            b"id: %d\nevent: %b\ndata: %b\n\n" % (frame.number, frame.name.encode(), frame.data)
            if frame.number
            else b"event: %b\ndata: %b\n\n" % (frame.name.encode(), frame.data)
            for frame in frames
        ]
    )


class EventStream:
    """The answer to `GET …/events`: it lasts as long as its reader and its client."""

    def __init__(self, reader: Reader, arrive: Callable[[], Callable[[], None]] | None = None) -> None:
        self._reader = reader
        self._arrive = arrive
        """Shows the client to the others; what it returns takes that back."""
        self._wrote = False
        """Something was sent since the clock last looked."""
        self._sending_since = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader, loop = self._reader, asyncio.get_running_loop()
        leaving = loop.create_task(wait_for_leave(receive))
        leaving.add_done_callback(lambda _: reader.close())
        abort = scope.get("extensions", {}).get(ABORT, reader.close)
        leave = self._arrive() if self._arrive is not None else bool
        clock = Clock(PING_SECONDS, lambda: self._look(loop, abort))
        try:
            await send_head(send)
            while not reader.closed:
                frames = await reader.read()
                if frames or not reader.closed:
                    await self._send(send, write_frames(frames) if frames else PING, loop)
                    await asyncio.sleep(PAUSE_SECONDS)
            if not leaving.done():
                await send({"type": "http.response.body", "body": _END, "more_body": False})
        finally:
            clock.stop()
            reader.close()
            leaving.cancel()
            leave()

    async def _send(self, send: Send, body: bytes, loop: asyncio.AbstractEventLoop) -> None:
        self._sending_since, self._wrote = loop.time(), True
        await send({"type": "http.response.body", "body": body, "more_body": True})
        self._sending_since = 0.0

    def _look(self, loop: asyncio.AbstractEventLoop, abort: Callable[[], None]) -> None:
        if self._sending_since:
            if loop.time() - self._sending_since > STALLED_SECONDS:
                abort()
        elif not self._wrote:
            self._reader.wake()
        self._wrote = False


async def send_head(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": b"retry: 1000\n\n", "more_body": True})


class Clock:
    """Calls something again and again."""

    __slots__ = ("_act", "_seconds", "_timer")

    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        self._seconds = seconds
        self._act = act
        self._timer = asyncio.get_running_loop().call_later(seconds, self._tick)

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._tick)
        self._act()

    def stop(self) -> None:
        self._timer.cancel()


async def send_or_cut(scope: Scope, send: Send, message: Message) -> None:
    """Send, unless the client takes nothing for so long that it is gone."""
    try:
        async with asyncio.timeout(STALLED_SECONDS):
            await send(message)
    except TimeoutError as error:
        abort = scope.get("extensions", {}).get(ABORT)
        if abort is not None:
            abort()
        raise ClientDisconnect from error


async def run_while_there(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives, unless the client leaves before: then it is stopped."""
    running = asyncio.create_task(work)
    leaving = asyncio.create_task(wait_for_leave(receive))
    try:
        await asyncio.wait((running, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (running, leaving):
            task.cancel()
        await asyncio.wait((running, leaving))
    if running.cancelled():
        raise ClientDisconnect
    return running.result()


async def wait_for_leave(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
