"""`robota serve --provider-host`: the provider of this server for robotas elsewhere (docs/remote.md).

The wire is that of docs/adr/0006-remote-wire.md, behind the guard and the limits of the server. A client that
leaves, or takes nothing for a minute, ends its model call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from robota.core.errors import RobotaError
from robota.core.jsontext import encode
from robota.core.messages import JsonObject
from robota.core.provider import Provider
from robota.providers.remote.failures import http_status
from robota.providers.remote.protocol import (
    KEEP_ALIVE,
    HostedProviders,
    RemoteRequest,
    encode_failure,
    stream_reply,
    whole_reply,
)
from robota.transports.http.call import Call, read_body
from robota.transports.http.openapi import Error
from robota.transports.http.replies import HEADERS, reply
from robota.transports.http.route import Route
from robota.transports.http.sse import run_while_there, send_or_cut

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

REQUEST_BYTES = 32 << 20
"""Of a request, which has a whole conversation with its images."""
SIGN_OF_LIFE = 10.0
"""Seconds between two signs of life while a model says nothing."""
_EVENTS, _JSON = "text/event-stream; charset=utf-8", "application/json"


class ProviderList(Struct, frozen=True):
    """The names that requests may give as `provider`."""

    providers: tuple[str, ...]


def provider_routes(
    providers: Mapping[str, Provider], *, secrets: tuple[str, ...] = (), sign_of_life: float = SIGN_OF_LIFE
) -> list[Route]:
    """`/chat` and `/chat/stream` for some providers; `secrets` are told to nobody."""
    hosted = HostedProviders(providers, secrets)

    async def show(call: Call) -> ASGIApp:
        return reply(ProviderList(tuple(hosted.providers)))

    async def answer(call: Call) -> ASGIApp:
        streamed = call.request.url.path.endswith("/stream")
        body = await read_body(call.request, REQUEST_BYTES)
        try:
            provider, asked = hosted.admit(body)
        except RobotaError as error:
            return refuse(error, hosted.describe(error, "remote"))
        return ModelReply(hosted, provider, asked, streamed=streamed, sign_of_life=sign_of_life)

    failures = dict.fromkeys((400, 404, 408, 413, 429, 502), Error)
    return [
        Route(
            method="GET", path="/chat", handler=show, summary="The providers that this host has.",
            answers={200: ProviderList},
        ),
        Route(
            method="POST", path="/chat", handler=answer, body=RemoteRequest, changes=True,
            summary="Ask a model of this host.", answers={200: dict[str, Any], **failures},
        ),
        Route(
            method="POST", path="/chat/stream", handler=answer, body=RemoteRequest, changes=True,
            summary="The same, as the events of docs/adr/0006-remote-wire.md.",
            answers={200: "text/event-stream", **failures},
        ),
    ]  # fmt: skip


def refuse(error: Exception, told: JsonObject) -> Response:
    headers = dict(HEADERS)
    if told.get("retryAfter") is not None:
        headers["retry-after"] = f"{max(told['retryAfter'], 0):.0f}"
    return Response(encode({"error": told}), http_status(error), headers, _JSON)


class ModelReply:
    """The answer of a model. Its head leaves with its first piece: until then it may be an error."""

    def __init__(
        self,
        hosted: HostedProviders,
        provider: Provider,
        asked: RemoteRequest,
        *,
        streamed: bool,
        sign_of_life: float,
    ) -> None:
        self._hosted = hosted
        self._provider = provider
        self._asked = asked
        self._streamed = streamed
        self._sign_of_life = sign_of_life
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientDisconnect):
            await run_while_there(receive, self._answer(scope, receive, partial(send_or_cut, scope, send)))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._pass_on(send)
        except ClientDisconnect:
            raise
        except Exception as error:
            if not isinstance(error, RobotaError):
                logging.getLogger("robota.serve").exception("Provider %r failed.", self._asked.provider)
            told = self._hosted.describe(error, self._asked.provider)
            if not self._begun:
                await refuse(error, told)(scope, receive, send)
                return
            await self._send(send, encode_failure(told) if self._streamed else encode({"error": told}))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pass_on(self, send: Send) -> None:
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue()  # a reply has an end, so it needs no bound
        asking = asyncio.create_task(self._ask(pieces))
        asking.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await self._next(pieces)) is not None:
                await self._send(send, piece)
            asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask(self, pieces: asyncio.Queue[bytes | None]) -> None:
        """In a task of its own, in which the provider's stream is opened and closed."""
        if not self._streamed:
            pieces.put_nowait(await whole_reply(self._provider, self._asked))
            return
        async with aclosing(stream_reply(self._provider, self._asked)) as events:
            async for event in events:
                pieces.put_nowait(event)

    async def _next(self, pieces: asyncio.Queue[bytes | None]) -> bytes | None:
        try:
            async with asyncio.timeout(self._sign_of_life):
                return await pieces.get()
        except TimeoutError:
            return KEEP_ALIVE if self._streamed else b" "

    async def _send(self, send: Send, body: bytes) -> None:
        if not self._begun:
            self._begun = True
            kind = _EVENTS if self._streamed else _JSON
            headers = {**HEADERS, "content-type": kind, "x-accel-buffering": "no"}
            lines = [(name.encode(), value.encode()) for name, value in headers.items()]
            await send({"type": "http.response.start", "status": 200, "headers": lines})
        await send({"type": "http.response.body", "body": body, "more_body": True})
