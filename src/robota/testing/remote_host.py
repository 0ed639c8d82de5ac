"""A robota host for tests: serves providers on the loopback interface to `RemoteProvider`s.

    async with RemoteHost(ScriptedProvider("Hello."), api_key="test") as host:
        provider = RemoteProvider(host.url, "test", "scripted", "any-model")

It speaks the wire of docs/adr/0006-remote-wire.md. A client that leaves cancels its model call.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Mapping
from contextlib import aclosing

from robota.core.errors import AuthenticationError, ConfigurationError, RobotaError
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
from robota.testing.http_server import (
    BadRequest,
    LoopbackServer,
    ReceivedRequest,
    ServerConnection,
    response,
)

SIGN_OF_LIFE = 10.0
"""Seconds between two signs of life while a model says nothing."""
_PATHS = ("/chat", "/chat/stream")
_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}


class KeyRefused(AuthenticationError):
    """Not the vendor's refusal of the host's key, but the host's of a client's."""


class RemoteHost(LoopbackServer):
    """Serves one provider under its own name, or several under the names of a mapping."""

    def __init__(
        self,
        provider: Provider | Mapping[str, Provider],
        *,
        api_key: str,
        port: int = 0,
        sign_of_life: float = SIGN_OF_LIFE,
    ) -> None:
        if not api_key:
            raise ConfigurationError("A host needs an api_key: without one, anybody could use its models.")
        super().__init__(port)
        known = provider if isinstance(provider, Mapping) else {provider.name: provider}
        self._hosted = HostedProviders(known, (api_key,))
        self.requests: list[RemoteRequest] = []
        """What was asked with the right key, in order."""
        self.sign_of_life = sign_of_life
        self._key = api_key

    def connect(self) -> _Connection:
        return _Connection(self)

    def admit(self, request: ReceivedRequest) -> tuple[Provider, RemoteRequest]:
        """Who answers it, and what was asked. Whoever has the wrong key learns nothing else."""
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._key.encode()):
            raise KeyRefused("The host does not accept this key; check user_api_key.", status=401)
        if request.method != "POST" or request.path not in _PATHS:
            raise ConfigurationError(
                f"This host has nothing at {request.method} {request.path}, only POST {' and '.join(_PATHS)}."
            )
        provider, asked = self._hosted.admit(request.raw)
        self.requests.append(asked)
        return provider, asked

    def describe(self, error: Exception, provider: str) -> JsonObject:
        return self._hosted.describe(error, provider)


class _Connection(ServerConnection):
    """Answers each request in a task that ends with the connection."""

    def __init__(self, host: RemoteHost) -> None:
        super().__init__(host)
        self._host = host
        self._task: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._task is not None:
            self._task.cancel()
        else:
            self.let_go()

    def serve(self) -> None:
        if self._task is not None or self.transport is None:
            return
        try:
            request = self.reader.next()
        except BadRequest as error:
            self.refuse(error)
            return
        if request is not None:
            self._task = self.loop.create_task(self._answer(request, self.transport))
            self._task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._task = None
        failed = task.cancelled() or task.exception() is not None
        if self.transport is None:
            self.let_go()
        elif failed:
            self.transport.abort()
        else:
            self.serve()

    async def _answer(self, request: ReceivedRequest, transport: asyncio.Transport) -> None:
        streamed = request.path == "/chat/stream"
        answer = _Answer(transport, streamed=streamed)
        name = "remote"
        try:
            provider, asked = self._host.admit(request)
            name = asked.provider
            answer.show_life_every(self._host.sign_of_life)
            if not streamed:
                answer.write(await whole_reply(provider, asked))
            else:
                async with aclosing(stream_reply(provider, asked)) as events:
                    async for event in events:
                        answer.write(event)
                        await self._drained.wait()
        except Exception as error:
            if not isinstance(error, RobotaError):
                logging.getLogger("robota.remote").exception("Provider %r failed.", name)
            answer.fail(error, self._host.describe(error, name))
        finally:
            answer.end()


class _Answer:
    """The bytes of one HTTP answer. Its head leaves with the first of them: until then it may be an error."""

    def __init__(self, transport: asyncio.Transport, *, streamed: bool) -> None:
        self._transport = transport
        self._streamed = streamed
        self._begun = False
        self._over = False
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        """When something was written."""
        self._timer: asyncio.TimerHandle | None = None

    def write(self, data: bytes) -> None:
        self._last = self._loop.time()
        if not self._begun:
            self._begun = True
            self._transport.write(response(200, _EVENTS if self._streamed else _JSON, None))
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def show_life_every(self, seconds: float) -> None:
        if self._loop.time() >= self._last + seconds:
            self.write(KEEP_ALIVE if self._streamed else b" ")
        self._timer = self._loop.call_at(self._last + seconds, self.show_life_every, seconds)

    def fail(self, error: Exception, told: JsonObject) -> None:
        if self._begun:
            self.write(encode_failure(told) if self._streamed else encode({"error": told}))
            return
        self._over = True
        headers = dict(_JSON)
        if told.get("retryAfter") is not None:
            headers["retry-after"] = f"{max(told['retryAfter'], 0):.0f}"
        status = 401 if isinstance(error, KeyRefused) else http_status(error)
        self._transport.write(response(status, headers, encode({"error": told})))

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._begun and not self._over and not self._transport.is_closing():
            self._over = True
            self._transport.write(b"0\r\n\r\n")
