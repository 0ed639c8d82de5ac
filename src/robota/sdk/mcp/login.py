"""Logging in at a remote server: its page in the user's browser, the answer on a port of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from anyio import to_thread
from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.sdk.places import Places
from robota.tools.mcp.connection import ServerConnection, load_library
from robota.tools.mcp.definition import ServerDefinition

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

LOGIN_SECONDS = 300.0
_PAGE = (
    b"<!doctype html><meta charset=utf-8><title>robota</title><p>You may close this page and go back.</p>\n"
)


async def log_in(definition: ServerDefinition, places: Places, show: Callable[[str], None]) -> int:
    """Have the user log in, keep what comes of it, and try it: the number of tools that the server has then.
    `show` gets the address of the page to open."""
    if definition.kind not in ("http", "sse"):
        raise ConfigurationError(
            f"The MCP server {definition.name!r} runs on this machine and wants no login."
        )
    await to_thread.run_sync(load_library)
    from robota.sdk.mcp.oauth import LoginStore, make_auth  # noqa: PLC0415 - loads the library
    from robota.tools.mcp.transports import open_transport  # noqa: PLC0415 - likewise

    store = await to_thread.run_sync(LoginStore, definition, places)
    store.kept.tokens = ""
    port = 0 if definition.oauth is None else definition.oauth.callback_port
    async with _callback(port) as (address, code):

        async def open_page(url: str) -> None:
            show(url)

        async def wait_for_code() -> AuthorizationCodeResult:
            return await code

        known = await store.get_client_info()
        if (
            known is not None
            and address not in map(str, known.redirect_uris or ())
            and not (definition.oauth and definition.oauth.client_id)
        ):
            store.kept.client = ""  # it was registered for another port
        auth = make_auth(store, definition, address=address, open_page=open_page, wait_for_code=wait_for_code)
        connection = ServerConnection(
            replace(definition, start_timeout=LOGIN_SECONDS), partial(open_transport, auth=auth)
        )
        connection.start()
        try:
            await connection.settle()
            if connection.state != "connected":
                raise ConfigurationError(connection.error or "The login was not completed in time.")
            return len(connection.offer.tools)
        finally:
            await connection.close()


@asynccontextmanager
async def _callback(port: int) -> AsyncIterator[tuple[str, asyncio.Future[AuthorizationCodeResult]]]:
    """An address of this machine, and what the server's page sends there."""
    from mcp.shared.auth import AuthorizationCodeResult  # noqa: PLC0415 - loaded

    code: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                line = await reader.readline()
            target = urlsplit(line.decode("ascii", "replace").split(" ")[1] if b" " in line else "/")
            given = {name: values[0] for name, values in parse_qs(target.query).items()}
            if target.path == "/callback" and not code.done() and given.keys() & {"code", "error"}:
                if "error" in given:
                    said = given.get("error_description") or given["error"]
                    code.set_exception(ConfigurationError(f"The login was refused: {said}"))
                else:
                    code.set_result(
                        AuthorizationCodeResult(
                            code=given["code"], state=given.get("state"), iss=given.get("iss")
                        )
                    )
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + _PAGE)
            await writer.drain()
        except (TimeoutError, OSError, ValueError):
            return  # whoever asked is gone
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, "127.0.0.1", port)
    except OSError as error:
        raise ConfigurationError(
            f"The port {port} for the login's answer is taken ({error.strerror}): set another `callbackPort`."
        ) from error
    async with server:
        number = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{number}/callback", code
    if not code.done():
        code.cancel()
