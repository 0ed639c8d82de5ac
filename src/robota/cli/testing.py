"""`robota testing …`: tools for people who test their agents.

`serve-model` answers like a model service until it is told to end: status 130 after Ctrl-C, 0 after SIGTERM.
The first line of stdout is JSON with the addresses; requests are told on stderr.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

import click

from robota.core.errors import ConfigurationError
from robota.testing.http_server import ReceivedRequest
from robota.testing.served_model import RequestLog, Script, read_script

GREETING = "Hello from the scripted model."


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def command() -> None:
    """Tools for people who test their agents."""


@command.command("serve-model")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; 0: any free one.")
@click.option("--say", multiple=True, metavar="TEXT", help="Answer with this text; repeatable, in order.")
@click.option(
    "--script", type=click.Path(path_type=Path), metavar="FILE", help="Answer as a YAML or JSON file says."
)
@click.option("--echo", is_flag=True, help="Answer with what the user said last.")
@click.option("--lenient", is_flag=True, help="Also answer requests that a real service would refuse.")
@click.option("-v", "--verbose", is_flag=True, help="Show headers and bodies of requests, without secrets.")
def serve_model(
    *, port: int, say: tuple[str, ...], script: Path | None, echo: bool, lenient: bool, verbose: bool
) -> int:
    """Serve a scripted model on 127.0.0.1, in every protocol, until Ctrl-C.

    The first line printed is JSON with the base URL for each protocol.
    """
    if sum((bool(say), script is not None, echo)) > 1:
        raise click.UsageError("Give one of --say, --script and --echo.")
    chosen = _script(say, script, echo)
    return _serve(chosen, port, strict=chosen.strict and not lenient, log=RequestLog(verbose=verbose))


def _script(say: tuple[str, ...], file: Path | None, echo: bool) -> Script:
    if file is not None:
        return read_script(file)
    if echo:
        return Script((_echo,))
    return Script(say or (GREETING,))


def _echo(request: ReceivedRequest) -> str:
    return next(reversed(request.conversation.texts("user")), "")


def _serve(script: Script, port: int, *, strict: bool, log: RequestLog) -> int:
    import asyncio  # noqa: PLC0415 - after the arguments, which are often wrong

    return asyncio.run(_serve_until_told(script, port, strict=strict, log=log))


async def _serve_until_told(script: Script, port: int, *, strict: bool, log: RequestLog) -> int:
    import asyncio  # noqa: PLC0415 - see _serve

    import msgspec  # noqa: PLC0415

    from robota.testing.model_server import ModelServer  # noqa: PLC0415

    def tell(request: ReceivedRequest) -> None:
        print(*log.lines(request), sep="\n", file=sys.stderr, flush=True)

    told = asyncio.Event()
    codes: list[int] = []
    loop = asyncio.get_running_loop()

    def end(number: int, frame: FrameType | None) -> None:
        codes.append(130 if number == signal.SIGINT else 0)
        loop.call_soon_threadsafe(told.set)

    server = ModelServer(
        *script.replies, repeat=script.repeat, strict=strict, record=False, models=script.models,
        port=port, on_request=tell,
    )  # fmt: skip
    try:
        await server.start()
    except OSError as error:
        raise ConfigurationError(
            f"Port {port} on 127.0.0.1 cannot be used: {error.strerror}; choose another with --port, "
            "or leave it out."
        ) from error
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        where = {"port": server.port, "url": server.url, "base_urls": server.base_urls}
        print(msgspec.json.encode(where).decode(), flush=True)
        await told.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        await server.stop()
    return codes[0]
