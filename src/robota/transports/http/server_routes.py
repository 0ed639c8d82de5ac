"""The routes of the server itself."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp

from robota._version import __version__
from robota.transports.http.call import Call
from robota.transports.http.metrics import CONTENT_TYPE
from robota.transports.http.openapi import describe_routes
from robota.transports.http.replies import HEADERS, reply
from robota.transports.http.route import Route


async def health(call: Call) -> ASGIApp:
    return reply({"status": "closing" if call.host.closed else "ok", "version": __version__})


async def metrics(call: Call) -> ASGIApp:
    return Response(call.facts.metrics.render(call.host), headers={**HEADERS, "content-type": CONTENT_TYPE})


async def openapi(call: Call) -> ASGIApp:
    return reply(describe_routes(call.table))


async def models(call: Call) -> ASGIApp:
    return reply({"models": [{"id": each.id, "name": each.title or each.id} for each in call.facts.models()]})


ROUTES = [
    Route(
        method="GET", path="/health", handler=health, is_public=True,
        summary="Whether the server is there.", answers={200: dict[str, Any]},
    ),
    Route(
        method="GET", path="/metrics", handler=metrics,
        summary="Counts, in the text format of Prometheus.", answers={200: "text/plain"},
    ),
    Route(
        method="GET", path="/openapi.json", handler=openapi,
        summary="This document.", answers={200: dict[str, Any]},
    ),
    Route(
        method="GET", path="/models", handler=models,
        summary="The models that can be asked for.", answers={200: dict[str, Any]},
    ),
]  # fmt: skip
