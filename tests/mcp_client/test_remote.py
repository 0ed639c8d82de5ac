"""Remote servers: Streamable HTTP and SSE, headers, and logins whose tokens are kept and renewed."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from tests.support.mcp_session import ends, opened, write_servers
from tests.support.oauth_server import LoginServer, login_server, serving

from robota.core.errors import ConfigurationError
from robota.sdk.auth import KeyStore
from robota.sdk.mcp.login import log_in
from robota.sdk.mcp.oauth import LoginStore
from robota.sdk.places import find_places
from robota.testing import ScriptedProvider, call
from robota.tools.mcp.definition import OAuthOptions, ServerDefinition

pytestmark = [pytest.mark.anyio, pytest.mark.system]


def make_server() -> MCPServer:
    server = MCPServer("remote")

    @server.tool()
    async def shout(text: str, ctx: Context) -> str:
        """Says it loudly."""
        await ctx.report_progress(1, 1, message="breathing in")
        return text.upper()

    return server


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_remote_server_is_reached_and_called(project: Path, kind: str) -> None:
    server, seen = make_server(), []
    inner = server.streamable_http_app() if kind == "http" else server.sse_app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(dict(scope["headers"]).get(b"x-team", b"").decode())
        await inner(scope, receive, send)

    helper = f"{sys.executable} -c 'print({json.dumps(json.dumps({'X-Team': 'blue'}))})'"
    async with serving(app) as port:
        url = f"http://127.0.0.1:{port}/{'mcp' if kind == 'http' else 'sse'}"
        write_servers(project, remote={"type": kind, "url": url, "headersHelper": helper})
        provider = ScriptedProvider([call("mcp__remote__shout", text="hello")], "Done.")
        async with opened(project, provider) as session:
            assert session.kit.servers.connections["remote"].error == ""
            heard = ends(session)
            await session.submit("Go.")
    assert [(each.error, each.content) for each in heard] == [(None, "HELLO")]
    assert set(seen) == {"blue"}


async def test_a_server_that_wants_a_login_says_so_until_the_user_has_logged_in(project: Path) -> None:
    async with login_server() as server:
        write_servers(project, guarded={"type": "http", "url": f"{server.url}/mcp"})
        async with opened(project, ScriptedProvider("x")) as session:
            connection = session.kit.servers.connections["guarded"]
            assert connection.state == "needs-auth"
            assert "robota mcp login guarded" in connection.describe_absence()
        assert not server.clients
        assert await log_in_by_hand(server) == 1
        provider = ScriptedProvider([call("mcp__guarded__whisper", text="HELLO")], "Done.")
        async with opened(project, provider) as session:
            heard = ends(session)
            await session.submit("Go.")
        assert [(each.error, each.content) for each in heard] == [(None, "hello")]
        kept = KeyStore(find_places().robota_home)
        assert [name.startswith("mcp:guarded:") for name in kept.names] == [True]


async def test_tokens_that_have_expired_are_renewed_without_a_question(project: Path) -> None:
    async with login_server() as server:
        await log_in_by_hand(server)
        server.tokens.clear()
        definition = ServerDefinition(name="guarded", kind="http", url=f"{server.url}/mcp")
        store = LoginStore(definition, find_places())
        store.kept.expires = 1.0
        await store._write()
        write_servers(project, guarded={"type": "http", "url": f"{server.url}/mcp"})
        async with opened(project, ScriptedProvider("x")) as session:
            assert session.kit.servers.connections["guarded"].state == "connected"
        assert server.granted[0] == "authorization_code"
        assert set(server.granted[1:]) == {"refresh_token"}
        server.tokens.clear()
        server.refreshable.clear()
        async with opened(project, ScriptedProvider("x")) as session:
            assert session.kit.servers.connections["guarded"].state == "needs-auth"


async def test_the_address_of_the_metadata_counts_above_what_the_server_says(project: Path) -> None:
    async with login_server(says_where=False) as server:
        where = OAuthOptions(metadata_url=f"{server.url}/hidden/metadata")
        assert await log_in_by_hand(server, where) == 1
        oauth = {"authServerMetadataUrl": where.metadata_url}
        write_servers(project, guarded={"type": "http", "url": f"{server.url}/mcp", "oauth": oauth})
        async with opened(project, ScriptedProvider("x")) as session:
            assert session.kit.servers.connections["guarded"].state == "connected"
        lost = OAuthOptions(metadata_url=f"{server.url}/nowhere")
        with pytest.raises(ConfigurationError, match=r"authServerMetadataUrl.*says 404"):
            await log_in_by_hand(server, lost)


async def log_in_by_hand(server: LoginServer, oauth: OAuthOptions | None = None) -> int:
    """As a user does who has the page opened by a browser."""
    visits: list[asyncio.Task[None]] = []

    def show(url: str) -> None:
        visits.append(asyncio.create_task(asyncio.to_thread(visit, url)))

    definition = ServerDefinition(name="guarded", kind="http", url=f"{server.url}/mcp", oauth=oauth)
    tools = await log_in(definition, find_places(), show)
    await asyncio.gather(*visits)
    return tools


def visit(url: str) -> None:
    with urllib.request.urlopen(url, timeout=30) as page:
        assert b"close this page" in page.read()
