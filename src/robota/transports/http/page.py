"""The web page: files of the package, with headers that let a browser run nothing else."""

from __future__ import annotations

from importlib.resources import files
from os import PathLike
from os.path import isdir

from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        b"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
]


def page_routes(directory: str | PathLike[str] | None = None) -> list[BaseRoute]:
    """`/` and the files of the page. They need no token: whoever has the page has nothing yet."""
    where = str(files("robota.transports") / "web") if directory is None else str(directory)
    if not isdir(where):
        return []
    return [Mount("/", WithHeaders(StaticFiles(directory=where, html=True, check_dir=False)))]


class WithHeaders:
    """Adds the headers to whatever is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            await send(message)

        await self._app(scope, receive, with_headers)
