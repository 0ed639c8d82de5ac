"""An MCP server over Streamable HTTP that wants a login, and the authorization server where one gets it."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route


class LoginServer:
    """Grants every login at once, checks what a careful one checks, and can let tokens expire."""

    def __init__(self) -> None:
        self.port = 0
        self.clients: set[str] = set()
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: set[str] = set()
        self.refreshable: set[str] = set()
        self.granted: list[str] = []
        self.seconds = 3600

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def resource_metadata(self, _: Request) -> Response:
        return JSONResponse({"resource": f"{self.url}/mcp", "authorization_servers": [self.url]})

    async def metadata(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        )

    async def register(self, request: Request) -> Response:
        wanted = await request.json()
        id = secrets.token_hex(8)
        self.clients.add(id)
        return JSONResponse({**wanted, "client_id": id}, status_code=201)

    async def authorize(self, request: Request) -> Response:
        given = dict(request.query_params)
        assert given["client_id"] in self.clients
        assert given["redirect_uri"].startswith("http://127.0.0.1:")
        code = secrets.token_hex(8)
        self.codes[code] = given
        answer = urlencode({"code": code, "state": given["state"]})
        return RedirectResponse(f"{given['redirect_uri']}?{answer}")

    async def token(self, request: Request) -> Response:
        form: Any = dict(await request.form())
        self.granted.append(form["grant_type"])
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refreshable:
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
        else:
            asked = self.codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
            assert form["redirect_uri"] == asked["redirect_uri"]
        access, refresh = secrets.token_hex(8), secrets.token_hex(8)
        self.tokens.add(access)
        self.refreshable.add(refresh)
        return JSONResponse(
            {
                "access_token": access,
                "token_type": "Bearer",
                "expires_in": self.seconds,
                "refresh_token": refresh,
            }
        )


@asynccontextmanager
async def login_server(*, says_where: bool = True) -> AsyncIterator[LoginServer]:
    """Both, on one port of this machine. One that does not say where to log in has its metadata elsewhere."""
    from mcp.server import MCPServer  # takes longer to load than all of our tests

    login = LoginServer()
    tools = MCPServer("guarded")

    @tools.tool()
    def whisper(text: str) -> str:
        """Says it quietly."""
        return text.lower()

    inner = tools.streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/mcp"):
            headers = dict(scope["headers"])
            token = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
            if token not in login.tokens:
                where = f'Bearer resource_metadata="{login.url}/.well-known/oauth-protected-resource"'
                said = {"WWW-Authenticate": where if says_where else "Bearer"}
                refusal = Response(status_code=401, headers=said)
                await refusal(scope, receive, send)
                return
            await inner(scope, receive, send)
            return
        await outer(scope, receive, send)

    told = {"/hidden/metadata": login.metadata}
    if says_where:
        told = {
            "/.well-known/oauth-protected-resource": login.resource_metadata,
            "/.well-known/oauth-protected-resource/mcp": login.resource_metadata,
            "/.well-known/oauth-authorization-server": login.metadata,
        }
    outer = Starlette(
        routes=[
            *(Route(place, say) for place, say in told.items()),
            Route("/register", login.register, methods=["POST"]),
            Route("/authorize", login.authorize),
            Route("/token", login.token, methods=["POST"]),
        ],
        lifespan=inner.router.lifespan_context,
    )
    async with serving(guarded) as port:
        login.port = port
        yield login


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[int]:
    """An application on a port of this machine."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", timeout_graceful_shutdown=1)
    started = asyncio.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            started.set()

    server = Server(config)
    task = asyncio.create_task(server.serve())
    try:
        await started.wait()
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task
