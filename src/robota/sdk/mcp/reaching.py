"""How the servers of a session are reached: with headers of helpers, logins of the user, or by a relay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from robota.core.errors import ConfigurationError
from robota.core.jsontext import decode
from robota.core.process import run_process
from robota.sdk.places import Places

if TYPE_CHECKING:
    from robota.sdk.mcp.servers import OpenRelay
    from robota.tools.mcp.connection import OpenTransport
    from robota.tools.mcp.definition import ServerDefinition
    from robota.tools.mcp.failure import Noise

HELPER_SECONDS = 10.0


def make_opener(places: Places, relay: Callable[[], OpenRelay | None]) -> OpenTransport:
    """What opens a connection to any server of a session."""

    def open_one(definition: ServerDefinition, noise: Noise) -> AbstractAsyncContextManager[Any]:
        from robota.tools.mcp.transports import open_transport  # noqa: PLC0415 - loads the library

        if definition.kind == "client" and (through := relay()) is not None:
            return through(definition.name)
        if definition.kind in ("http", "sse"):
            return _open_remote(definition, noise, places)
        return open_transport(definition, noise)

    return open_one


@asynccontextmanager
async def _open_remote(definition: ServerDefinition, noise: Noise, places: Places) -> AsyncIterator[Any]:
    from robota.sdk.mcp.oauth import LoginStore, make_auth  # noqa: PLC0415 - loads the library
    from robota.tools.mcp.transports import open_transport  # noqa: PLC0415 - loads the library

    headers = await read_headers(definition, places) if definition.headers_helper else {}
    auth = None
    if "authorization" not in {name.lower() for name in (*definition.headers, *headers)}:
        store = await to_thread.run_sync(LoginStore, definition, places)
        auth = make_auth(store, definition) if store.kept.tokens else None
    async with open_transport(definition, noise, headers, auth) as streams:
        yield streams


async def read_headers(definition: ServerDefinition, places: Places) -> dict[str, str]:
    """What the server's helper prints: a JSON object of headers."""
    result = await run_process(
        ["/bin/sh", "-c", definition.headers_helper], cwd=places.cwd, timeout=HELPER_SECONDS
    )
    try:
        printed = decode(result.stdout.encode())
    except ValueError:
        printed = None
    if result.exit_code != 0 or not isinstance(printed, dict):
        raise ConfigurationError(
            f"The headersHelper of the MCP server {definition.name!r} did not print a JSON object of headers "
            f"({result.error or f'exit code {result.exit_code}'})."
        )
    return {str(name): str(value) for name, value in printed.items()}


async def look_at(definition: ServerDefinition, places: Places) -> tuple[list[str], bool]:
    """Connect a server for a moment: what is to be said about it, and whether it was connected."""
    from robota.sdk.mcp.servers import McpServers  # noqa: PLC0415 - they would load each other
    from robota.sdk.mcp.status import describe_one  # noqa: PLC0415 - likewise

    servers = McpServers(set(), make_opener(places, lambda: None))
    servers.take({definition.name: definition})
    async with servers:
        connection = servers.get(definition.name)
        await connection.settle()
        return describe_one(servers, definition.name), connection.state == "connected"
