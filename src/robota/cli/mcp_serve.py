"""`robota mcp serve`: robota as a server of tools, for other agents."""

from __future__ import annotations

import os

import click

from robota.cli.acp import read_server_options, remark
from robota.cli.extras import needing
from robota.cli.serving import serve


@click.command(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "ignore_unknown_options": True,
        "max_content_width": 100,
    }
)
@click.option("--no-commands", is_flag=True, help="Offer `submit` alone, no command_… tools.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(*, no_commands: bool, options: tuple[str, ...]) -> int:
    """Serve an MCP client over standard input and output, until it leaves.

    The OPTIONS are those of robota itself, such as --model, --permission-mode and --allow. The sessions work
    in the directory that the command is started in.
    """
    wanted = read_server_options(options)
    with needing("mcp", "robota mcp serve"):
        from robota.transports.mcp_server.server import create_agent_mcp_server  # noqa: PLC0415 - an extra
        from robota.transports.mcp_server.sessions import AgentSessions  # noqa: PLC0415
        from robota.transports.mcp_server.stdio import run_stdio  # noqa: PLC0415
    from robota.cli.diagnostics import start_log  # noqa: PLC0415
    from robota.cli.driven import take_streams  # noqa: PLC0415
    from robota.cli.session_maker import CommandSessions  # noqa: PLC0415

    start_log(os.environ, debug=wanted.debug)
    keep_quiet("mcp")

    async def work() -> None:
        stdin, stdout = take_streams()
        maker = CommandSessions(wanted, remark)
        sessions = AgentSessions(maker=maker)
        server = create_agent_mcp_server(sessions=sessions, expose_commands=not no_commands)
        try:
            await run_stdio(server, stdin=stdin, stdout=stdout)
        finally:
            await sessions.close()
            await maker.close()

    return serve(work())


def keep_quiet(name: str) -> None:
    """A library that tells of its clients' mistakes on standard error, with tracebacks."""
    import logging  # noqa: PLC0415 - loaded by the library anyway

    logger = logging.getLogger(name)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
