"""`robota mcp serve`: robota as a server of tools, for other agents."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

import click

from robota.cli.acp import read_server_options, remark
from robota.cli.extras import needing
from robota.cli.serving import serve
from robota.core.jsontext import encode

if TYPE_CHECKING:
    from mcp.server import Server

PORT = 7071


@click.command(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "ignore_unknown_options": True,
        "max_content_width": 100,
    }
)
@click.option("--no-commands", is_flag=True, help="Offer `submit` alone, no command_… tools.")
@click.option("--http", "over_http", is_flag=True, help="Serve over Streamable HTTP instead, until Ctrl-C.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any free one."
)
@click.option("--token", metavar="TOKEN", help="What clients must send: else $ROBOTA_SERVE_TOKEN, else new.")
@click.option("--json", "as_json", is_flag=True, help="With --http: print the address and token as JSON.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(*, no_commands: bool, over_http: bool, options: tuple[str, ...], **place: Any) -> int:
    """Serve an MCP client over standard input and output, until it leaves.

    The OPTIONS are those of robota itself, such as --model, --permission-mode and --allow. The sessions work
    in the directory that the command is started in.
    """
    wanted = read_server_options(options)
    with needing("mcp", "robota mcp serve"):
        from robota.transports.mcp_server.server import create_agent_mcp_server  # noqa: PLC0415 - an extra
        from robota.transports.mcp_server.sessions import AgentSessions  # noqa: PLC0415
    from robota.cli.diagnostics import start_log  # noqa: PLC0415
    from robota.cli.session_maker import CommandSessions  # noqa: PLC0415

    start_log(os.environ, debug=wanted.debug)
    keep_quiet("mcp")

    async def work() -> None:
        async with (
            aclosing(CommandSessions(wanted, remark)) as maker,
            aclosing(AgentSessions(maker=maker)) as sessions,
        ):
            server = create_agent_mcp_server(sessions=sessions, expose_commands=not no_commands)
            await (serve_http(server, **place) if over_http else serve_stdio(server))

    return serve(work())


async def serve_stdio(server: Server[Any]) -> None:
    from robota.cli.driven import take_streams  # noqa: PLC0415 - not for HTTP
    from robota.transports.mcp_server.stdio import run_stdio  # noqa: PLC0415

    stdin, stdout = take_streams()
    await run_stdio(server, stdin=stdin, stdout=stdout)


async def serve_http(server: Server[Any], *, host: str, port: int, token: str | None, as_json: bool) -> None:
    """Until a signal ends it. The first line on stdout says where, with the token."""
    from robota.cli.serve import TOKEN_VARIABLE, choose_token, require_extra  # noqa: PLC0415 - for HTTP

    require_extra()
    from robota.transports.http.security import Guard  # noqa: PLC0415 - what was just required
    from robota.transports.http.server import bind  # noqa: PLC0415
    from robota.transports.mcp_server.http import PATH, serving_http  # noqa: PLC0415

    token = choose_token(host, os.environ.get(TOKEN_VARIABLE) if token is None else token)
    with closing(bind(host, port)) as listener:
        async with serving_http(server, listener, Guard(token, host)):
            shown = f"[{host}]" if ":" in host else host
            url = f"http://{shown}:{listener.getsockname()[1]}{PATH}"
            words = f"robota serves MCP on {url} with Authorization: Bearer {token}"
            print(encode({"url": url, "token": token}).decode() if as_json else words, flush=True)
            await asyncio.get_running_loop().create_future()


def keep_quiet(name: str) -> None:
    """A library that tells of its clients' mistakes on standard error, with tracebacks."""
    import logging  # noqa: PLC0415 - loaded by the library anyway

    logger = logging.getLogger(name)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
