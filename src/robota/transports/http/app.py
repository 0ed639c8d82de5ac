"""The application: routes behind the guard, and one sentence for whatever goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from robota.core.errors import RobotaError
from robota.transports.host import SessionHost
from robota.transports.http import images, server_routes, sessions, trust, turns
from robota.transports.http.call import Call, read_query
from robota.transports.http.metrics import Metrics
from robota.transports.http.page import page_routes
from robota.transports.http.replies import HttpError, explain, refuse
from robota.transports.http.route import Route
from robota.transports.http.security import Guard
from robota.transports.http.socket import socket_routes
from robota.transports.session_maker import OfferedModel

ROUTES = [*server_routes.ROUTES, *sessions.ROUTES, *turns.ROUTES, *trust.ROUTES, *images.ROUTES]
"""All of them; the OpenAPI document is made of the same table."""


class ServerFacts(Struct, frozen=True, kw_only=True):
    """What the server is, for its routes."""

    guard: Guard
    metrics: Metrics = field(default_factory=Metrics)
    read_only: bool = False
    models: Callable[[], Sequence[OfferedModel]] = tuple
    """Lists the models that can be asked for."""


def create_app(
    host: SessionHost,
    facts: ServerFacts,
    *,
    more_routes: Sequence[Route] = (),
    mounted: Sequence[BaseRoute] = (),
    page: bool = True,
) -> ASGIApp:
    """The ASGI application. `more_routes` join the table of ours, `mounted` are Starlette's own and guard
    themselves; without `page` there is nothing for browsers."""
    table = [*ROUTES, *more_routes]
    by_path: dict[str, dict[str, Route]] = {}
    for route in table:
        by_path.setdefault(route.path, {})[route.method] = route
    endpoints: list[BaseRoute] = [
        StarletteRoute(path, Endpoint(methods, host, facts, table), methods=list(methods))
        for path, methods in by_path.items()
    ]
    app = Starlette(
        routes=[*endpoints, *socket_routes(host, facts), *mounted, *(page_routes() if page else ())],
        exception_handlers={HTTPException: _refuse_http},
    )
    return Doorkeeper(app, facts)


async def _refuse_http(request: Request, error: Exception) -> Any:
    assert isinstance(error, HTTPException)
    words = {404: "There is nothing at this path.", 405: "This path does not take that method."}
    message = words.get(error.status_code, error.detail)
    return refuse(HttpError(error.status_code, f"http_{error.status_code}", message, error.headers))


class Doorkeeper:
    """Refuses requests from elsewhere before any state is touched."""

    def __init__(self, app: ASGIApp, facts: ServerFacts) -> None:
        self._app = app
        self._guard = facts.guard
        self._metrics = facts.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self._guard.check_place(scope)
            except HttpError as error:
                self._metrics.requests[error.status] += 1
                await refuse(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class Endpoint:
    """What happens at one path: the token is checked, the route's function asked, its failure told."""

    def __init__(
        self, methods: dict[str, Route], host: SessionHost, facts: ServerFacts, table: Sequence[Route]
    ) -> None:
        self._methods = methods
        self._host = host
        self._facts = facts
        self._table = table

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        try:
            answer = await self._answer(self._methods[method], Request(scope, receive))
        except HttpError as error:
            answer = refuse(error)
        except RobotaError as error:
            answer = refuse(explain(error))
        except ClientDisconnect:
            return
        except Exception:
            logging.getLogger("robota.serve").exception("%s %s failed.", method, scope["path"])
            answer = refuse(HttpError(500, "internal_error", "The server failed; its log says why."))
        self._facts.metrics.requests[getattr(answer, "status_code", 200)] += 1
        await answer(scope, receive, send)

    async def _answer(self, route: Route, request: Request) -> ASGIApp:
        facts = self._facts
        if not route.is_public:
            facts.guard.check_token(request.scope, in_query=route.token_in_query)
        if route.changes and facts.read_only:
            raise HttpError(
                403, "read_only", "This server only shows sessions: it was started with --read-only."
            )
        query = read_query(request, route.query)
        return await route.handler(Call(request, self._host, facts, query, self._table))
