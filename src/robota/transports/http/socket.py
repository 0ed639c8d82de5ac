"""`GET …/ws`: the handler of a WebSocket behind the guard."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from robota.core.errors import RobotaError
from robota.transports.http.call import check, read_name
from robota.transports.http.replies import HttpError, explain, refuse
from robota.transports.http.turns import EventsQuery
from robota.transports.ws import CLOSING_SECONDS, WsHandler, create_ws_handler

if TYPE_CHECKING:
    from robota.transports.host import HostedSession, SessionHost
    from robota.transports.http.app import ServerFacts

GOING_AWAY = 1001
FAILED = 1011


def socket_routes(host: SessionHost, facts: ServerFacts) -> list[BaseRoute]:
    endpoint = SocketEndpoint(host, facts)
    return [WebSocketRoute("/ws", endpoint), WebSocketRoute("/sessions/{id}/ws", endpoint)]


class SocketEndpoint:
    """One connection after the other; each is checked before it is accepted."""

    def __init__(self, host: SessionHost, facts: ServerFacts) -> None:
        self._host = host
        self._facts = facts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        try:
            hosted, after = await self._admit(socket)
        except HttpError as error:
            await socket.send_denial_response(refuse(error))
            return
        await socket.accept()
        await self._talk(socket, hosted, after)

    async def _admit(self, socket: WebSocket) -> tuple[HostedSession, int | None]:
        guard = self._facts.guard
        guard.check_place(socket.scope)
        guard.check_token(socket.scope, in_query=True)
        given = socket.query_params.get("after")
        after = None if given is None else check({"after": given}, EventsQuery, "query").after
        id = socket.path_params.get("id")
        try:
            return await (self._host.first() if id is None else self._host.require(id)), after
        except RobotaError as error:
            raise explain(error) from error

    async def _talk(self, socket: WebSocket, hosted: HostedSession, after: int | None) -> None:
        name = read_name(socket.query_params.get("name", "")) or "ws"

        async def send(text: str) -> None:
            with suppress(WebSocketDisconnect):  # `receive` tells of it
                await socket.send_text(text)

        handler = create_ws_handler(hosted, send, name=name, read_only=self._facts.read_only, after=after)
        listening = asyncio.get_running_loop().create_task(_listen(socket, handler))
        try:
            await asyncio.wait((listening, handler.pump), return_when=asyncio.FIRST_COMPLETED)
            if not listening.done():
                failure = handler.pump.exception()
                if failure is None:
                    await socket.close(GOING_AWAY, "The session was closed.")
                else:
                    logging.getLogger("robota.serve").error("A WebSocket ends: %s", failure)
                    await socket.close(FAILED, "The server failed; its log says why.")
                await asyncio.wait((listening,), timeout=CLOSING_SECONDS)
        finally:
            listening.cancel()
            await handler.cleanup()


async def _listen(socket: WebSocket, handler: WsHandler) -> None:
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        text = message.get("text")
        await handler.on_message(message.get("bytes") or b"" if text is None else text)
