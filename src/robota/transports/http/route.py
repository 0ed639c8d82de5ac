"""The table of routes, from which both the application and its OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from starlette.types import ASGIApp

from robota.transports.http.call import Call

Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE"]
Handler: TypeAlias = Callable[[Call], Awaitable[ASGIApp]]


class NoQuery(Struct, frozen=True):
    """A route without parameters in its query."""


class Route(Struct, frozen=True, kw_only=True):
    """One method at one path."""

    method: Method
    path: str
    """As Starlette has it; `{id}` is a session."""
    handler: Handler
    summary: str
    body: type[Struct] | None = None
    query: type[Struct] = NoQuery
    answers: dict[int, Any] = {}
    """Status to the type of the JSON that comes with it; a text for another media type. Errors that every
    route may give are not listed."""
    is_public: bool = False
    """No token is needed."""
    token_in_query: bool = False
    is_session: bool = False
    """It is about the first session, when the path names none."""
    changes: bool = False
    """Something may be different afterwards: refused by a server that is read-only."""


def at_both(*routes: Route) -> list[Route]:
    """Routes of a session: below its path, and at the root for the first one."""
    from msgspec.structs import replace  # noqa: PLC0415 - once

    return [
        made
        for route in routes
        for made in (replace(route, path=f"/sessions/{{id}}{route.path}"), replace(route, is_session=True))
    ]
