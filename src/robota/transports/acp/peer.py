"""One end of a JSON-RPC connection over lines: requests in both directions, each answered once.

Whatever comes in, the connection goes on: a line that is no message is answered with an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from robota.core.errors import RobotaError, SessionNotFoundError, ValidationError
from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject
from robota.transports.result_frame import describe_failure

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
CANCELLED = -32800
CANCEL = "$/cancel_request"

Serve: TypeAlias = Callable[[str, JsonObject, bool], Awaitable[JsonObject]]
"""Called with the method, its parameters and whether an answer is wanted."""


class RpcError(RobotaError, code="RPC_ERROR", category="user"):
    """An answer that says what is wrong, in one sentence."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class Disconnected(RobotaError, code="DISCONNECTED", category="user"):
    """The other end has left."""


class Peer:
    """Answers the other end, and asks it."""

    def __init__(self, write: Callable[[bytes], None], serve: Serve) -> None:
        self._write = write
        self._serve = serve
        self._tasks: dict[asyncio.Task[None], Json] = {}
        """What is being answered, with the id of the request."""
        self._open: dict[int, asyncio.Future[Json]] = {}
        self._last_id = 0
        self.closed = False

    # --- what is said ------------------------------------------------------------------------------------

    def tell(self, method: str, params: JsonObject) -> None:
        """Without an answer."""
        if not self.closed:
            self._send({"method": method, "params": params})

    async def ask(self, method: str, params: JsonObject) -> Json:
        """What the other end answers; raises `RpcError` with its error, `Disconnected` if it has left."""
        if self.closed:
            raise Disconnected("The client has left.")
        self._last_id += 1
        id, answer = self._last_id, asyncio.get_running_loop().create_future()
        self._open[id] = answer
        self._send({"id": id, "method": method, "params": params})
        try:
            return await answer
        finally:
            self._open.pop(id, None)

    def _send(self, message: JsonObject) -> None:
        self._write(encode({"jsonrpc": "2.0", **message}) + b"\n")

    def _fail(self, id: Json, number: int, words: str) -> None:
        self._send({"id": id, "error": {"code": number, "message": words}})

    # --- what is heard -----------------------------------------------------------------------------------

    def take_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = decode(line)
        except ValueError as error:
            self._fail(None, PARSE_ERROR, f"A line is not JSON: {error}")
            return
        match message:
            case {"method": str(method)}:
                self._take_call(method, message)
            case {"id": int(id), "result": _} | {"id": int(id), "error": _}:
                self._take_answer(id, message)
            case _:
                given = message.get("id") if isinstance(message, dict) else None
                self._fail(given, INVALID_REQUEST, "A message is an object with a `method`, or an answer.")

    def _take_call(self, method: str, message: JsonObject) -> None:
        wanted, id, params = "id" in message, message.get("id"), message.get("params")
        params = {} if params is None else params
        if not isinstance(params, dict):
            if wanted:
                self._fail(id, INVALID_PARAMS, f"The params of {method} are an object.")
        elif method == CANCEL:
            for task, known in self._tasks.items():
                if known == params.get("requestId") and known is not None:
                    task.cancel()
        else:
            task = asyncio.create_task(self._answer(id, method, params, wanted))
            self._tasks[task] = id
            task.add_done_callback(self._tasks.pop)

    def _take_answer(self, id: int, message: JsonObject) -> None:
        waiting = self._open.pop(id, None)
        if waiting is None or waiting.done():
            return  # nobody waits for it any more
        error = message.get("error")
        if isinstance(error, dict):
            number, words = error.get("code"), error.get("message")
            waiting.set_exception(
                RpcError(number if isinstance(number, int) else INTERNAL_ERROR, str(words or "it failed"))
            )
        else:
            waiting.set_result(message.get("result"))

    async def _answer(self, id: Json, method: str, params: JsonObject, wanted: bool) -> None:
        try:
            result = await self._serve(method, params, wanted)
        except asyncio.CancelledError:
            if wanted and not self.closed:
                self._fail(id, CANCELLED, f"{method} was cancelled.")
            raise
        except Exception as error:  # noqa: BLE001 - whatever fails, the other end gets an answer
            if wanted:
                self._fail(id, error_number(error), describe_failure(error))
        else:
            if wanted:
                self._send({"id": id, "result": result})

    def close(self) -> None:
        """No answer can come any more, and none is wanted."""
        self.closed = True
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(Disconnected("The client has left."))
        self._open.clear()

    async def end(self, timeout: float) -> None:
        """Let what is being answered come to its end, for so many seconds."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(tuple(self._tasks), timeout=timeout)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=timeout)


def error_number(error: Exception) -> int:
    match error:
        case RpcError(number=number):
            return number
        case SessionNotFoundError():
            return NOT_FOUND
        case ValidationError():
            return INVALID_PARAMS
        case RobotaError(code="AUTHENTICATION_ERROR"):
            return AUTH_REQUIRED
        case _:
            return INTERNAL_ERROR
