"""`robota serve`: sessions over HTTP and WebSocket, and the page that shows them.

The first line on stdout says where, with the token; everything else is on stderr.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import aclosing, closing, contextmanager
from html import escape
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from robota.cli.acp import read_server_options
from robota.cli.options import Options
from robota.cli.serving import serve as run
from robota.cli.session_maker import CommandSessions
from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.private_directory import make_private_directories
from robota.sdk.places import find_places

if TYPE_CHECKING:
    from robota.providers.choice import ChosenProvider
    from robota.transports.http.route import Route

TOKEN_VARIABLE = "ROBOTA_SERVE_TOKEN"
PORT = 7070


@click.command(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "ignore_unknown_options": True,
        "max_content_width": 100,
    }
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any free one."
)
@click.option(
    "--token", metavar="TOKEN", help=f"What clients must send: else ${TOKEN_VARIABLE}, else a new one."
)
@click.option("--open", "opens", is_flag=True, help="Show the page in the browser.")
@click.option("--cwd", type=click.Path(), help="The directory of new sessions, by default this one.")
@click.option("--json", "as_json", is_flag=True, help="Print the address and the token as JSON.")
@click.option("--read-only", is_flag=True, help="Show sessions, and let nobody change or use them.")
@click.option(
    "--provider-host", is_flag=True, help="Let robotas elsewhere use the provider, with the same token."
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(
    *,
    host: str,
    port: int,
    token: str | None,
    opens: bool,
    cwd: str | None,
    as_json: bool,
    read_only: bool,
    provider_host: bool,
    options: tuple[str, ...],
) -> int:
    """Serve sessions over HTTP and WebSocket, with a page for the browser.

    The first line printed has the address and the token that every request needs. Ctrl-C ends it: sessions
    are saved, and opened again when somebody uses them. The OPTIONS are those of robota itself, such as
    --model, --permission-mode, --allow and --trust.
    """
    require_extra()
    if cwd is not None:
        change_directory(cwd)
    wanted = Wanted(
        host=host,
        port=port,
        token=choose_token(host, os.environ.get(TOKEN_VARIABLE) if token is None else token),
        opens=opens,
        as_json=as_json,
        read_only=read_only,
        provider_host=provider_host,
        options=read_server_options(options),
    )
    return run(serve(wanted), terminated=0)


class Wanted(Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    host: str
    port: int
    token: str
    opens: bool
    as_json: bool
    read_only: bool
    provider_host: bool
    options: Options


def require_extra() -> None:
    from importlib.util import find_spec  # noqa: PLC0415 - once

    missing = [name for name in ("starlette", "uvicorn", "websockets") if find_spec(name) is None]
    if missing:
        raise ConfigurationError(f"robota serve needs {', '.join(missing)}: pip install 'robota[server]'")


def change_directory(cwd: str) -> None:
    try:
        os.chdir(cwd)
    except OSError as error:
        raise ConfigurationError(f"--cwd {cwd} cannot be used: {error.strerror}.") from error


def choose_token(host: str, given: str | None) -> str:
    """The user's own, else a new one. A server that others can reach needs one that its user chose."""
    from robota.transports.http.security import require_token  # noqa: PLC0415 - loads Starlette

    require_token(host, given)
    return given or secrets.token_urlsafe(32)


async def serve(wanted: Wanted) -> None:
    """Until it is cancelled."""
    from robota.transports.host import SessionHost  # noqa: PLC0415 - an extra, which may be missing
    from robota.transports.http.app import ServerFacts, create_app  # noqa: PLC0415
    from robota.transports.http.openai_routes import ROUTES as OPENAI  # noqa: PLC0415
    from robota.transports.http.security import Guard  # noqa: PLC0415
    from robota.transports.http.server import bind, running  # noqa: PLC0415

    allow_many_files()
    with closing(bind(wanted.host, wanted.port)) as listener:
        async with aclosing(CommandSessions(wanted.options, tell)) as maker:
            chosen = await maker.chosen()
            host = SessionHost(maker.open, store=maker.store)
            facts = ServerFacts(
                guard=Guard(wanted.token, wanted.host), read_only=wanted.read_only, models=maker.models
            )
            app = create_app(host, facts, more_routes=[*OPENAI, *find_provider_routes(wanted, chosen)])
            async with running(app, listener), aclosing(host):
                with announced(wanted, listener.getsockname()[1]):
                    await asyncio.get_running_loop().create_future()


def find_provider_routes(wanted: Wanted, chosen: ChosenProvider) -> list[Route]:
    """The routes for robotas elsewhere, if they are wanted."""
    if not wanted.provider_host:
        return []
    from robota.cli.provider_host import provider_routes  # noqa: PLC0415 - for those who want it

    return provider_routes({chosen.provider.name: chosen.provider}, secrets=(wanted.token, *chosen.secrets))


def allow_many_files() -> None:
    """As many connections as the system lets us have."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - not on Windows

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def announced(wanted: Wanted, port: int) -> Iterator[None]:
    """Say where the server is, and show the page if that is wanted."""
    host = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
    url = f"http://{host}:{port}/"
    if wanted.as_json:
        print(encode({"url": url, "token": wanted.token}).decode(), flush=True)
    else:
        print(f"robota serves on {url}#token={wanted.token}", flush=True)
    if not wanted.opens:
        yield
        return
    with page_file(f"{url}#token={wanted.token}") as path:
        if not webbrowser.open(f"file://{path}"):
            tell("No browser could be started: open the address above.")
        yield


@contextmanager
def page_file(url: str) -> Iterator[str]:
    """A file for nobody else that leads to the page: everybody can read the command line of a browser."""
    directory = find_places().user("serve")
    make_private_directories(directory)
    path = os.path.join(directory, f"{secrets.token_hex(8)}.html")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(url)}">\n')
    try:
        yield path
    finally:
        os.unlink(path)


def tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
