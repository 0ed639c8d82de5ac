"""`/v1/…`: an agent for clients of the OpenAI protocols."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, TypeAlias

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from robota.core.errors import RobotaError
from robota.core.jsontext import encode
from robota.transports.http.call import Call
from robota.transports.http.openai_chat import describe_chat, stream_chat
from robota.transports.http.openai_requests import (
    AGENT,
    BadRequest,
    ChatBody,
    ResponsesBody,
    Task,
    read_chat,
    read_responses,
)
from robota.transports.http.openai_responses import describe_response, now, stream_response, write_failure
from robota.transports.http.openai_turn import AgentTurn, agent_turn
from robota.transports.http.replies import HEADERS, HttpError, explain, reply
from robota.transports.http.route import Route
from robota.transports.http.sse import run_while_there, send_or_cut
from robota.transports.result_frame import describe_failure

Handler: TypeAlias = Callable[[Call], Awaitable[ASGIApp]]
Write: TypeAlias = Callable[[AgentTurn], AsyncIterator[bytes]]
_SSE = {**HEADERS, "x-accel-buffering": "no"}
_KINDS = {401: "authentication_error", 404: "not_found_error", 409: "conflict_error", 429: "rate_limit_error"}


def in_their_shape(handler: Handler) -> Handler:
    """Failures as clients of these protocols read them."""

    async def answer(call: Call) -> ASGIApp:
        try:
            return await handler(call)
        except HttpError as error:
            return write_error(error)
        except RobotaError as error:
            return write_error(explain_failure(error))

    return answer


def explain_failure(error: Exception) -> HttpError:
    """A failure of ours, or of the service that the agent asks."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, RobotaError):
        status = getattr(error, "status", None)
        if status in (429, 503):
            return HttpError(status, error.code.lower(), str(error))
        if error.code == "MODEL_NOT_AVAILABLE":
            return HttpError(404, "model_not_found", str(error))
        known = explain(error)
        return known if known.status != 500 else HttpError(503, error.code.lower(), str(error))
    return HttpError(500, "internal_error", describe_failure(error))


def describe_error(error: HttpError) -> dict[str, Any]:
    kind = _KINDS.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
    field = error.field if isinstance(error, BadRequest) else None
    return {"error": {"message": error.message, "type": kind, "param": field, "code": error.code}}


def write_error(error: HttpError) -> Response:
    headers = {**HEADERS, **error.headers}
    return Response(encode(describe_error(error)), error.status, headers, "application/json")


class Streamed:
    """An answer that is written while the agent works. A client that leaves stops the turn."""

    def __init__(
        self, stack: AsyncExitStack, pieces: AsyncIterator[bytes], fail: Callable[[HttpError], bytes]
    ) -> None:
        self._stack = stack
        self._pieces = pieces
        self._fail = fail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._stack:
            with suppress(ClientDisconnect):
                await run_while_there(receive, self._write(partial(send_or_cut, scope, send)))

    async def _write(self, send: Send) -> None:
        names = {**_SSE, "content-type": "text/event-stream; charset=utf-8"}
        headers = [(name.encode(), value.encode()) for name, value in names.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            async for piece in self._pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except (HttpError, RobotaError) as error:
            last = self._fail(explain_failure(error))
            await send({"type": "http.response.body", "body": last, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def begin_stream(call: Call, task: Task, write: Write, fail: Callable[[HttpError], bytes]) -> ASGIApp:
    async with AsyncExitStack() as stack:
        turn = await stack.enter_async_context(agent_turn(call.host, task))
        return Streamed(stack.pop_all(), write(turn), fail)


@in_their_shape
async def chat_completions(call: Call) -> ASGIApp:
    task = read_chat(await call.body(ChatBody))
    if task.stream:
        return await begin_stream(
            call,
            task,
            lambda turn: stream_chat(turn, task),
            lambda error: b"data: %b\n\n" % encode(describe_error(error)),
        )
    async with agent_turn(call.host, task) as turn:
        return reply(describe_chat(turn, await run_while_there(call.request.receive, turn.run())))


@in_their_shape
async def responses(call: Call) -> ASGIApp:
    task, created = read_responses(await call.body(ResponsesBody)), now()
    if task.stream:
        return await begin_stream(
            call,
            task,
            lambda turn: stream_response(turn, created),
            lambda error: write_failure(error.message, error.code),
        )
    async with agent_turn(call.host, task) as turn:
        return reply(
            describe_response(turn, await run_while_there(call.request.receive, turn.run()), created)
        )


@in_their_shape
async def models(call: Call) -> ASGIApp:
    names = [AGENT, *(each.id for each in call.facts.models() if each.id)]
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": "robota"} for name in names]
    return reply({"object": "list", "data": rows})


ROUTES = [
    Route(
        method="POST", path="/v1/chat/completions", handler=chat_completions, body=ChatBody, changes=True,
        summary="A prompt for an agent, as a chat completion.", answers={200: dict[str, Any]},
    ),
    Route(
        method="POST", path="/v1/responses", handler=responses, body=ResponsesBody, changes=True,
        summary="A prompt for an agent, as a response.", answers={200: dict[str, Any]},
    ),
    Route(
        method="GET", path="/v1/models", handler=models,
        summary="The agent, and the models that it can use.", answers={200: dict[str, Any]},
    ),
]  # fmt: skip
