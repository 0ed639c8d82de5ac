"""The program at the other end of the pipes: questions go to it, and its answers come back in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from uuid import uuid4

from robota.core.errors import RobotaError
from robota.core.messages import Json, JsonObject


class HostError(RobotaError, code="HOST_ERROR", category="user"):
    """The host failed to answer, or cannot any more."""


class Host:
    """Asks, and hands out answers. When its input has ended it can answer nothing more."""

    def __init__(self, send: Callable[[JsonObject], None]) -> None:
        self._send = send
        self._open: dict[str, asyncio.Future[JsonObject]] = {}
        self._of_turn: set[str] = set()
        self._numbers = count(1)
        self._prefix = uuid4().hex[:8]
        self.closed = False

    async def ask(self, request: JsonObject, *, of_turn: bool = True) -> JsonObject:
        """What the host answers. `HostError` if it fails or has left. Cancelling withdraws the question;
        an interrupt does so if it is one `of_turn`."""
        if self.closed:
            raise HostError("the program at the other end of the pipe has left")
        id = f"robota_{next(self._numbers)}_{self._prefix}"
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._open[id] = answer
        if of_turn:
            self._of_turn.add(id)
        self._send({"type": "control_request", "request_id": id, "request": request})
        try:
            return await answer
        except asyncio.CancelledError:
            self._withdraw(id)
            raise
        finally:
            self._open.pop(id, None)
            self._of_turn.discard(id)

    def take(self, frame: JsonObject) -> None:
        """An answer; one to a question that is not open any more is ignored."""
        response = frame.get("response")
        if not isinstance(response, dict):
            return
        waiting = self._open.pop(str(response.get("request_id")), None)
        if waiting is None or waiting.done():
            return
        if response.get("subtype") == "error":
            waiting.set_exception(HostError(str(response.get("error") or "it gave no reason")))
            return
        body: Json = response.get("response")
        waiting.set_result(body if isinstance(body, dict) else {})

    def withdraw_all(self) -> None:
        """The turn needs no answers any more: whoever waits for one is about to be stopped."""
        for id in tuple(self._of_turn):
            self._withdraw(id)

    def close(self) -> None:
        """No answer can come any more."""
        self.closed = True
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(HostError("the program at the other end of the pipe has left"))
        self._open.clear()

    def _withdraw(self, id: str) -> None:
        if self._open.pop(id, None) is not None:
            self._send({"type": "control_cancel_request", "request_id": id})
