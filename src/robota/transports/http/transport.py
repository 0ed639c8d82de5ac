"""HTTP for programs that embed robota: one session as a transport, or routes for an application of theirs."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

from robota.core.errors import ConfigurationError
from robota.transports.host import SessionHost
from robota.transports.http.app import ServerFacts, create_app
from robota.transports.http.security import Guard, require_token
from robota.transports.http.server import bind, running
from robota.transports.session_maker import SessionWish

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.kept_sessions import SessionStore

MadeSession: TypeAlias = "InteractiveSession | Awaitable[InteractiveSession]"


def create_agent_routes(
    *,
    session_factory: Callable[..., MadeSession],
    token: str,
    store: SessionStore | None = None,
    host: str = "127.0.0.1",
) -> ASGIApp:
    """All routes of `robota serve` as an ASGI application, without the page. `session_factory` makes a
    session, at once or awaited; one that has a parameter is told what the client wishes (`SessionWish`).
    With a `store` sessions can be listed and opened again. `host` is the name that clients know it by.
    """
    sessions = SessionHost(_adapt(session_factory), store=store)
    return create_app(sessions, ServerFacts(guard=Guard(token, host)), page=False)


def _adapt(factory: Callable[..., MadeSession]) -> Callable[[SessionWish], Awaitable[InteractiveSession]]:
    wants_wish = bool(inspect.signature(factory).parameters)

    async def make(wish: SessionWish) -> InteractiveSession:
        made: Any = factory(wish) if wants_wish else factory()
        session: InteractiveSession = await made if inspect.isawaitable(made) else made
        return session

    return make


def create_http_transport(
    *, token: str | None = None, host: str = "127.0.0.1", port: int = 0
) -> HttpTransport:
    """A transport for one session. Its `app` can be put into a server of yours; `start` brings its own."""
    return HttpTransport(token=token, host=host, port=port)


class HttpTransport:
    """One session over HTTP: `session.attach_transport(transport)`, then `await transport.start()`."""

    name = "http"

    def __init__(self, *, token: str | None, host: str, port: int) -> None:
        require_token(host, token)
        self.token = token or secrets.token_urlsafe(32)
        """What clients have to send."""
        self._host = host
        self._port = port
        self._sessions: SessionHost | None = None
        self._app: ASGIApp | None = None
        self._running: AsyncExitStack | None = None

    def attach(self, session: InteractiveSession, /) -> None:
        self._sessions = sessions = SessionHost(_no_others)
        sessions.adopt(session)
        self._app = create_app(sessions, ServerFacts(guard=Guard(self.token, self._host)), page=False)

    @property
    def app(self) -> ASGIApp:
        """The ASGI application."""
        if self._app is None:
            raise ConfigurationError(
                "This transport has no session yet: session.attach_transport(transport)."
            )
        return self._app

    @property
    def url(self) -> str:
        """Where it is, once it was started."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    async def start(self) -> None:
        app = self.app
        if self._running is not None:
            raise ConfigurationError("This transport was started already.")
        listener = bind(self._host, self._port)
        self._port = listener.getsockname()[1]
        self._running = AsyncExitStack()
        self._running.callback(listener.close)
        await self._running.enter_async_context(running(app, listener))

    async def stop(self) -> None:
        """Take no more requests; the session goes on."""
        stack, self._running = self._running, None
        if self._sessions is not None:
            self._sessions.let_go()
        if stack is not None:
            await stack.aclose()


async def _no_others(wish: SessionWish) -> InteractiveSession:
    raise ConfigurationError("This server has one session, and makes no others.")
