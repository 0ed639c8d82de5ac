"""An MCP server inside the host's program: messages go there and back as control requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio

from robota.core.errors import ValidationError
from robota.core.given import suggest
from robota.core.messages import Json, JsonObject
from robota.transports.stream_json.host import Host, HostError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

_FAILED = -32000


class HostServer:
    """The transport of one server; entered and left like any other."""

    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._name = name
        self._open: dict[object, asyncio.Task[None]] = {}
        self._pump: asyncio.Task[None] | None = None

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[Any], MemoryObjectSendStream[Any]]:
        self._to_us, self._from_server = _stream()
        self._to_server, self._from_us = _stream()
        self._pump = asyncio.create_task(self._pass_on(), name=f"mcp {self._name} of the host")
        return self._from_server, self._to_server

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._open.values(), *([self._pump] if self._pump is not None else [])]
        for task in tasks:
            task.cancel()
        for stream in (self._to_us, self._from_server, self._to_server, self._from_us):
            stream.close()
        await asyncio.wait(tasks, timeout=1)

    async def _pass_on(self) -> None:
        async for sent in self._from_us:
            message: JsonObject = sent.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            if message.get("method") == "notifications/cancelled":
                given_up = self._open.get((message.get("params") or {}).get("requestId"))
                if given_up is not None:
                    given_up.cancel()
            key = message.get("id", object())
            task = self._open[key] = asyncio.create_task(self._exchange(message))
            task.add_done_callback(lambda _, key=key: self._open.pop(key, None))  # type: ignore[misc]

    async def _exchange(self, message: JsonObject) -> None:
        request = {"subtype": "mcp_message", "server_name": self._name, "message": message}
        id = message.get("id")
        try:
            # A call that a turn gives up is cancelled; what belongs to the connection outlives the turn.
            answer = (await self._host.ask(request, of_turn=False)).get("mcp_response")
        except HostError as error:
            if self._host.closed:
                self._to_us.close()
                return
            answer = {"jsonrpc": "2.0", "id": id, "error": {"code": _FAILED, "message": str(error)}}
        if id is not None and isinstance(answer, dict):
            await self._hand_over({"jsonrpc": "2.0", **answer, "id": id})

    async def _hand_over(self, answer: JsonObject) -> None:
        try:
            await self.take(answer)
        except ValidationError as error:
            problem = {"code": _FAILED, "message": str(error)}
            await self.take({"jsonrpc": "2.0", "id": answer["id"], "error": problem})

    async def take(self, message: Json) -> None:
        """Something that the server says: an answer, or a word of its own."""
        import mcp_types  # noqa: PLC0415 - whoever entered this has loaded it
        from mcp.shared.message import SessionMessage  # noqa: PLC0415 - likewise

        try:
            read = mcp_types.jsonrpc_message_adapter.validate_python(message, by_name=False)
        except ValueError as error:
            raise ValidationError(f"The server said what cannot be read: {error}") from error
        try:
            await self._to_us.send(SessionMessage(read))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody listens to it any more


class HostServers:
    """The servers inside one host, by name: each as it was reached last."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._servers: dict[str, HostServer] = {}

    def open(self, name: str) -> HostServer:
        server = self._servers[name] = HostServer(self._host, name)
        return server

    async def take(self, name: str, message: Json) -> None:
        """What a server says by itself."""
        if name not in self._servers:
            raise ValidationError(
                f"There is no MCP server {name!r} of this host; {suggest(name, self._servers)}"
            )
        await self._servers[name].take(message)


def _stream() -> tuple[MemoryObjectSendStream[Any], MemoryObjectReceiveStream[Any]]:
    return anyio.create_memory_object_stream(0)
