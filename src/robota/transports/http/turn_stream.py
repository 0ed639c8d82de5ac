"""The answer to a prompt as a stream: the events by which front ends follow one turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from robota.core.jsontext import encode
from robota.transports.http.sse import (
    PING,
    PING_SECONDS,
    Clock,
    send_head,
    send_or_cut,
    wait_for_leave,
    write_frames,
)
from robota.transports.reader import Frame

if TYPE_CHECKING:
    from robota.core.messages import JsonObject, Prompt
    from robota.sdk.execution import ExecutionResult
    from robota.transports.host import HostedSession

MOST_WAITING = 10_000
"""Frames for a client that does not read; beyond that it is told only how the turn ends."""
CLOSING = ("complete", "interrupted", "error")


def describe_result(result: ExecutionResult[Any]) -> JsonObject:
    """How a turn ended."""
    command = result.command
    return {
        "response": result.text,
        "interrupted": result.interrupted,
        "stopReason": result.stop_reason,
        "rounds": result.rounds,
        "usage": to_builtins(result.usage),
        "toolSummaries": to_builtins(result.tool_summaries),
        "contextState": None if result.context_state is None else to_builtins(result.context_state),
        "command": None
        if command is None
        else {"message": command.message, "success": command.success, "data": dict(command.data)},
    }


PAYLOADS: dict[str, Callable[[Any], JsonObject]] = {
    "text_delta": lambda text: {"delta": text},
    "tool_start": to_builtins,
    "tool_end": to_builtins,
    "thinking": lambda busy: {"isThinking": busy},
    "complete": describe_result,
    "interrupted": describe_result,
    "error": lambda error: {"message": str(error), "code": getattr(error, "code", "ERROR")},
}
"""Names of events to what of them is sent."""


class TurnStream:
    """Follows one submitted prompt. Leaving it does not stop the turn, which others may watch."""

    def __init__(self, hosted: HostedSession) -> None:
        self._begun = not hosted.session.is_executing
        """Else the turn under way is another's."""
        self._closing = False
        self._frames: deque[Frame] = deque()
        self._news = asyncio.Event()
        self._over = False
        session = hosted.session
        self._leave = [session.on(name, self._listen(name)) for name in PAYLOADS]

    @classmethod
    async def begin(
        cls, hosted: HostedSession, prompt: Prompt, display: str | None, raw: str | None, *, id: str = ""
    ) -> TurnStream:
        await hosted.prepare()
        stream, task = cls(hosted), None
        try:
            task = await hosted.submit(prompt, display, raw, id=id)
            task.add_done_callback(stream._end)
        finally:
            if task is None:
                stream.close()
        return stream

    def _listen(self, name: str) -> Callable[[Any], None]:
        def hear(payload: Any) -> None:
            if name == "thinking" and payload is True:
                self._begun = True
            closing, last = name in CLOSING, name == "thinking" and payload is False
            if self._begun and (closing or last or len(self._frames) < MOST_WAITING):
                self._closing |= closing
                self._put(name, PAYLOADS[name](payload))
                if last:
                    self.close()  # what comes now is of the prompt that waited behind this one

        return hear

    def _put(self, name: str, data: JsonObject) -> None:
        self._frames.append(Frame(name, encode(data)))
        self._news.set()

    def _end(self, task: asyncio.Task[ExecutionResult[object]]) -> None:
        self.close()
        if not self._closing:  # it was taken back before its turn came
            failed = None if task.cancelled() else task.result().error
            if failed is None:
                self._put("interrupted", {"response": "", "interrupted": True})
            else:
                self._put("error", PAYLOADS["error"](failed))
        self._over = True
        self._news.set()

    def close(self) -> None:
        for leave in self._leave:
            leave()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.get_running_loop().create_task(wait_for_leave(receive))
        leaving.add_done_callback(lambda _: self._news.set())
        clock = Clock(PING_SECONDS, self._news.set)
        try:
            await send_head(send)
            while not leaving.done():
                await self._news.wait()
                self._news.clear()
                frames = list(self._frames)
                self._frames.clear()
                over = self._over
                body = write_frames(frames) if frames else b"" if over else PING
                message = {"type": "http.response.body", "body": body, "more_body": not over}
                await send_or_cut(scope, send, message)
                if over:
                    break
        except ClientDisconnect:
            return  # the turn goes on
        finally:
            clock.stop()
            self.close()
            leaving.cancel()
