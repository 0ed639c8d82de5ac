"""A generation service on the loopback interface: its tasks move on by a script whenever somebody looks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote

from robota.testing.http_server import ReceivedRequest, RequestReader, response

PATH = "/api/v3/contents/generations/tasks"
State = str | dict[str, Any] | int | None
"""A status, fields of a task, an HTTP status to refuse with, or `None` for hanging up."""


class ArkServer:
    def __init__(self, *states: State, key: str = "ark-key-1234") -> None:
        self.states: list[State] = list(states)
        """What the next looks find; the last one stays."""
        self.tasks: dict[str, dict[str, Any]] = {}
        self.requests: list[ReceivedRequest] = []
        self.key = key

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/api/v3"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    def asked(self) -> Sequence[tuple[str, str]]:
        return [(request.method, request.path.removeprefix(PATH)) for request in self.requests]

    def answer(self, request: ReceivedRequest) -> bytes | None:
        self.requests.append(request)
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return _refuse(401, "AuthenticationError", f"The API key {self.key} is wrong")
        if not request.path.startswith(PATH):
            return response(404, {"content-type": "text/html"}, b"<html>nothing here</html>")
        name = unquote(request.path.removeprefix(PATH).lstrip("/"))
        if request.method == "POST":
            return self._create(request.json)
        if not name:
            return self._list(request.query)
        if name not in self.tasks:
            return _refuse(404, "ResourceNotFound", f"The task {name} was not found")
        return self._look(name) if request.method == "GET" else self._delete(name)

    def _create(self, body: dict[str, Any]) -> bytes:
        if body.get("model") == "no-such":
            return _refuse(404, "InvalidEndpointOrModel.NotFound", "The model no-such does not exist")
        name = f"cgt-{len(self.tasks) + 1}"
        self.tasks[name] = {"id": name, "model": body["model"], "status": "queued", "created_at": 1}
        return _json({"id": name})

    def _look(self, name: str) -> bytes | None:
        state = (self.states.pop(0) if len(self.states) > 1 else self.states[0]) if self.states else "queued"
        if state is None:
            return None
        if isinstance(state, int):
            return _refuse(
                state, "Scripted", "Scripted failure", {"retry-after": "7"} if state == 429 else {}
            )
        self.tasks[name].update({"status": state} if isinstance(state, str) else state)
        return _json(self.tasks[name])

    def _delete(self, name: str) -> bytes:
        if self.tasks[name]["status"] == "running":
            return _refuse(409, "InvalidAction.RunningTaskDeletion", "A running task cannot be deleted")
        del self.tasks[name]
        return _json({})

    def _list(self, query: str) -> bytes:
        wanted = parse_qs(query)
        found = [
            task
            for task in self.tasks.values()
            if task["status"] in wanted.get("filter.status", [task["status"]])
            and task["id"] in wanted.get("filter.task_ids", [task["id"]])
        ]
        size = int(wanted["page_size"][0])
        start = (int(wanted["page_num"][0]) - 1) * size
        return _json({"items": found[start : start + size], "total": len(found)})


class _Connection(asyncio.Protocol):
    def __init__(self, server: ArkServer) -> None:
        self._server = server
        self._reader = RequestReader()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        request = self._reader.next()
        if request is not None:
            answer = self._server.answer(request)
            if answer is None:
                self._transport.abort()
            else:
                self._transport.write(answer)


def _json(value: object) -> bytes:
    return response(200, {"content-type": "application/json"}, json.dumps(value).encode())


def _refuse(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> bytes:
    body = json.dumps({"error": {"code": code, "message": message, "type": "x", "param": ""}}).encode()
    return response(status, {"content-type": "application/json", **(headers or {})}, body)
