"""Requests to a host of sessions, and the stream of one session's events, however often it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qs, urlsplit

from robota.core.errors import (
    AuthenticationError,
    ConfigurationError,
    NetworkError,
    RobotaError,
    SessionBusyError,
    SessionNotFoundError,
)
from robota.core.jsontext import decode, encode
from robota.core.messages import JsonObject
from robota.http.client import HttpClient
from robota.http.errors import HttpError, UrlError
from robota.http.exchange import Reply, build_request
from robota.http.sse import EventSplitter, ServerSentEvent
from robota.http.url import parse_url

ANSWER_LIMIT = 256 * 1024 * 1024
ANSWER_SECONDS = 120.0
"""How long the host may take to answer a request; opening a long session is the longest of them."""
SILENT_SECONDS = 45.0
"""Three of the host's pings."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
"""Seconds before a stream that broke is opened again."""
END = "end"
"""The name of the last event of a stream: the session was closed there, which a prompt opens again."""


class RemoteSessionError(RobotaError, code="REMOTE_SESSION_ERROR", category="user"):
    """A host of sessions refused something, or a prompt failed there."""


_ERRORS: dict[int, Callable[[str], RobotaError]] = {
    401: lambda said: AuthenticationError(f"{said} `robota serve` prints the token when it starts."),
    404: SessionNotFoundError,
    409: SessionBusyError,
}


def read_address(url: str, token: str) -> tuple[str, str, str]:
    """The address, the token and the session of what `robota serve` printed, or of an address alone."""
    parts = urlsplit(url)
    given = {name: values[-1] for name, values in parse_qs(parts.fragment).items()}
    token = token or given.get("token", "")
    if not token:
        raise ConfigurationError(f"A token is needed for {parts.scheme}://{parts.netloc}: {HELP}")
    return parts._replace(fragment="", query="").geturl().rstrip("/"), token, given.get("session", "")


HELP = "give the whole line that `robota serve` printed, or the token beside the address."


class Connection:
    """One host, and who we are there."""

    def __init__(self, url: str, token: str, *, name: str) -> None:
        try:
            parse_url(url)
        except UrlError as error:
            raise ConfigurationError(f"{url!r} is not the address of a host of sessions. {error}") from error
        self.url = url
        self._headers = {"Authorization": f"Bearer {token}", "Robota-Client": name}
        self._client = HttpClient(silence=ANSWER_SECONDS)
        self._streams = HttpClient(silence=SILENT_SECONDS)
        self.wanted = asyncio.Event()
        """Set by whoever does not want to wait for the stream any longer."""

    async def call(self, method: str, path: str, body: JsonObject | None = None) -> Any:
        """What the host answers; a refusal is raised in its words."""
        content = b"" if body is None else encode(body)
        reply = await self._send(self._client, method, path, {"Accept": "application/json"}, content)
        try:
            answer = await reply.read(ANSWER_LIMIT)
        except HttpError as error:
            raise self._lost(error) from error
        if reply.status >= 400:
            raise self._refusal(reply.status, answer)
        try:
            return decode(answer) if answer else None
        except ValueError as error:
            raise self.no_host() from error

    def no_host(self) -> RemoteSessionError:
        return RemoteSessionError(f"What answers at {self.url} is not `robota serve`: check the address.")

    async def _send(
        self, client: HttpClient, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> Reply:
        kind = {"Content-Type": "application/json"} if body else {}
        request = build_request(method, parse_url(f"{self.url}{path}"), {**self._headers, **headers, **kind})
        try:
            return await client.send(request, body)
        except HttpError as error:
            raise self._lost(error) from error

    def _lost(self, error: HttpError) -> NetworkError:
        return NetworkError(f"The host at {self.url} cannot be reached: {error}. Is `robota serve` running?")

    def _refusal(self, status: int, answer: bytes) -> RobotaError:
        try:
            said = str(decode(answer)["error"]["message"])
        except (ValueError, KeyError, TypeError):
            said = f"The host at {self.url} answered with status {status}."
        return _ERRORS.get(status, RemoteSessionError)(said)

    async def events(self, path: str, after: Callable[[], int]) -> AsyncGenerator[ServerSentEvent, None]:
        """The events behind a number, for ever: a stream that breaks is opened again where it was. Raises
        what a host refuses; one that cannot be reached is waited for."""
        wait = FIRST_WAIT
        while True:
            self.wanted.clear()
            try:
                async with aclosing(self._stream(path, after())) as events:
                    async for event in events:
                        wait = FIRST_WAIT
                        yield event
            except (NetworkError, HttpError):
                pass  # nothing is lost: the next stream begins behind the last number
            try:
                async with asyncio.timeout(wait):
                    await self.wanted.wait()
            except TimeoutError:
                wait = min(wait * 2, LONGEST_WAIT)

    async def _stream(self, path: str, after: int) -> AsyncGenerator[ServerSentEvent, None]:
        known = {"Last-Event-ID": str(after)} if after else {}
        reply = await self._send(self._streams, "GET", path, {"Accept": "text/event-stream", **known})
        if reply.status != 200:
            raise self._refusal(reply.status, await reply.read(ANSWER_LIMIT))
        splitter = EventSplitter()
        yield ServerSentEvent(b"", OPENED)
        async with reply, aclosing(reply.parts()) as parts:
            async for part in parts:
                for event in splitter.feed(part):
                    yield event

    async def aclose(self) -> None:
        await self._client.aclose()
        await self._streams.aclose()


OPENED = "opened"
"""Our own name for the moment at which a stream begins."""
