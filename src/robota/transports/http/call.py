"""One request on its way to the function that answers it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.requests import Request

from robota.core.jsontext import decode
from robota.transports.http.replies import CLOSE, HttpError

if TYPE_CHECKING:
    from robota.transports.host import HostedSession, SessionHost
    from robota.transports.http.app import ServerFacts
    from robota.transports.http.route import Route

BODY_BYTES = 8 << 20
"""Of a request; images are in it."""
DRAINED_BYTES = 64 << 20
"""What is read of a body that is too large, so that its sender gets to the answer."""
BODY_SECONDS = 30.0
_Value = TypeVar("_Value")


class Call:
    """A request with what is needed to answer it."""

    __slots__ = ("facts", "host", "query", "request", "table")

    def __init__(
        self, request: Request, host: SessionHost, facts: ServerFacts, query: Any, table: Sequence[Route]
    ) -> None:
        self.request = request
        self.host = host
        self.facts = facts
        self.query = query
        """The parameters, as the route describes them."""
        self.table = table
        """All routes of the server."""

    @property
    def session_id(self) -> str | None:
        """The session that the path names; none at the root."""
        return self.request.path_params.get("id")

    @property
    def client(self) -> str:
        """What the client calls itself, for others who see what it did."""
        given = self.request.headers.get("robota-client", "").encode("latin-1")  # as bytes, names are UTF-8
        return read_name(given.decode("utf-8", "replace")) or "http"

    async def find(self) -> HostedSession | None:
        """The session if it is open."""
        return None if self.session_id is None else await self.host.find(self.session_id)

    async def session(self) -> HostedSession:
        """The session that the path names, opened if it is kept; at the root the first one."""
        id = self.session_id
        return await self.host.first() if id is None else await self.host.require(id)

    async def body(self, kind: type[_Value]) -> _Value:
        """What was sent, checked."""
        content = (
            self.request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        )
        if content != "application/json":
            raise HttpError(415, "unsupported_media_type", "Send JSON, with Content-Type: application/json.")
        if self.request.headers.get("content-encoding", "identity").lower() != "identity":
            raise HttpError(415, "unsupported_encoding", "Send the body as it is, without Content-Encoding.")
        data = await read_body(self.request)
        try:
            value = decode(data or b"{}")
        except ValueError as error:
            raise HttpError(400, "malformed_json", f"The body is not JSON: {error}.") from error
        return check(value, kind, "body")


def check(value: Any, kind: type[_Value], what: str) -> _Value:
    """A value as its kind describes it."""
    try:
        return msgspec.convert(value, kind, strict=what == "body")
    except (msgspec.ValidationError, RecursionError) as error:
        raise HttpError(
            422, "invalid", f"The {what} is not as described in /openapi.json: {error}."
        ) from error


def read_query(request: Request, kind: type[_Value]) -> _Value:
    given: Mapping[str, str] = dict(request.query_params)
    return check({name: value for name, value in given.items() if name != "token"}, kind, "query")


def read_name(text: str) -> str:
    """A client's name in one short line."""
    return " ".join(text.split())[:64] if text.isprintable() else ""


async def read_body(request: Request, most: int = BODY_BYTES) -> bytes:
    """The whole body, unless it is too long, or too long under way."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size <= most:
                    parts.append(part)
                elif size > DRAINED_BYTES:
                    break
    except TimeoutError as error:
        raise HttpError(408, "timeout", f"The body did not come within {BODY_SECONDS:g} s.", CLOSE) from error
    if size > most:
        raise HttpError(413, "too_large", f"The body is larger than {most >> 20} MB.", CLOSE)
    return b"".join(parts)
