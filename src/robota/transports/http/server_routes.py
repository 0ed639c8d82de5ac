"""The routes of the server itself."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp

from robota._version import __version__
from robota.transports.http.call import Call
from robota.transports.http.replies import reply
from robota.transports.http.route import Route


async def health(call: Call) -> ASGIApp:
    return reply({"status": "closing" if call.host.closed else "ok", "version": __version__})


async def models(call: Call) -> ASGIApp:
    listed = [] if call.facts.models is None else await call.facts.models()
    return reply({"models": listed})


ROUTES = [
    Route(
        method="GET", path="/health", handler=health, is_public=True,
        summary="Whether the server is there.", answers={200: dict[str, Any]},
    ),
    Route(
        method="GET", path="/models", handler=models,
        summary="The models that can be asked for.", answers={200: dict[str, Any]},
    ),
]  # fmt: skip
