"""`robota acp`: robota as the agent of an editor that speaks the Agent Client Protocol."""

from __future__ import annotations

import os
import sys
from contextlib import aclosing

import click

from robota.cli.extras import needing
from robota.cli.flags import parse
from robota.cli.options import Options, read_options
from robota.cli.serving import serve


@click.command(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "ignore_unknown_options": True,
        "max_content_width": 100,
    }
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(options: tuple[str, ...]) -> int:
    """Serve an editor over standard input and output, until it leaves.

    The OPTIONS are those of robota itself, such as --model, --permission-mode and --trust; each session
    has the directory that the editor gives it.
    """
    wanted = read_server_options(options)
    with needing("acp", "robota acp"):
        from robota.transports.acp.server import run_acp  # noqa: PLC0415 - loads the protocol's types
    from robota.cli.diagnostics import start_log  # noqa: PLC0415
    from robota.cli.driven import take_streams  # noqa: PLC0415
    from robota.cli.session_maker import CommandSessions  # noqa: PLC0415

    start_log(os.environ, debug=wanted.debug)

    async def work() -> None:
        stdin, stdout = take_streams()
        async with aclosing(CommandSessions(wanted, remark)) as maker:
            await run_acp(maker, stdin=stdin, stdout=stdout)

    return serve(work())


def read_server_options(words: tuple[str, ...]) -> Options:
    """The options of robota for a program that holds sessions; a prompt is none of them."""
    parsed = parse(list(words))
    if parsed.words:
        raise click.UsageError(f"Got unexpected extra argument ({parsed.words[0]})")
    return read_options(parsed, os.environ)


def remark(words: str) -> None:
    print(f"robota: {words}", file=sys.stderr, flush=True)
