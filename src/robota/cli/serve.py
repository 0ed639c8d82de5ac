"""`robota serve`: sessions over HTTP and WebSocket, and the page that shows them.

The first line on stdout says where, with the token; everything else is on stderr.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import aclosing, closing, contextmanager
from functools import partial
from html import escape
from types import FrameType
from typing import TYPE_CHECKING

import click
from anyio import to_thread
from msgspec import Struct

from robota.cli.chosen_provider import chosen_provider
from robota.cli.opening import provider_arguments, read_own_settings
from robota.cli.options import Options
from robota.cli.session_choice import gather_more
from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.private_directory import make_private_directories
from robota.core.provider_definition import selectable_models
from robota.providers.definitions import find_definition
from robota.sdk.assembly import require_mode
from robota.sdk.interactive import InteractiveSession
from robota.sdk.kept_sessions import SessionStore, create_project_session_store, restore_session
from robota.sdk.places import find_places

if TYPE_CHECKING:
    from robota.core.messages import JsonObject
    from robota.providers.choice import ChosenProvider
    from robota.transports.host import SessionFactory, SessionWish
    from robota.transports.http.route import Route

TOKEN_VARIABLE = "ROBOTA_SERVE_TOKEN"
PORT = 7070


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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
@click.option("--provider", metavar="NAME", help="Who answers, as with robota itself.")
@click.option("--model", metavar="NAME", help="The model that answers.")
@click.option("--base-url", metavar="URL", help="The address of a service of the OpenAI protocol.")
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
    provider: str | None,
    model: str | None,
    base_url: str | None,
) -> int:
    """Serve sessions over HTTP and WebSocket, with a page for the browser.

    The first line printed has the address and the token that every request needs. Ctrl-C ends it: sessions
    are saved, and opened again when somebody uses them.
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
        options=Options(
            provider=provider or os.environ.get("ROBOTA_PROVIDER") or None,
            model=model or os.environ.get("ROBOTA_MODEL") or None,
            base_url=base_url or os.environ.get("ROBOTA_BASE_URL") or None,
        ),
    )
    return asyncio.run(serve(wanted))


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


async def serve(wanted: Wanted) -> int:
    """Until a signal ends it: status 130 after Ctrl-C, 0 after SIGTERM."""
    from robota.transports.host import SessionHost  # noqa: PLC0415 - an extra, which may be missing
    from robota.transports.http.app import ServerFacts, create_app  # noqa: PLC0415
    from robota.transports.http.openai_routes import ROUTES as OPENAI  # noqa: PLC0415
    from robota.transports.http.security import Guard  # noqa: PLC0415
    from robota.transports.http.server import bind, running  # noqa: PLC0415

    settings = read_own_settings(os.environ)
    listener = bind(wanted.host, wanted.port)
    allow_many_files()
    with closing(listener), Ending() as ending:
        given = provider_arguments(wanted.options, settings, tell, None)
        async with chosen_provider(given, settings.profiles) as chosen:
            if chosen.note:
                tell(chosen.note)
            store = create_project_session_store()
            host = SessionHost(session_factory(wanted.options, chosen, store), store=store)
            facts = ServerFacts(
                guard=Guard(wanted.token, wanted.host),
                read_only=wanted.read_only,
                models=partial(list_models, chosen),
            )
            app = create_app(host, facts, more_routes=[*OPENAI, *find_provider_routes(wanted, chosen)])
            async with running(app, listener), aclosing(host):
                with announced(wanted, listener.getsockname()[1]):
                    await ending.told.wait()
    return ending.code


def find_provider_routes(wanted: Wanted, chosen: ChosenProvider) -> list[Route]:
    """The routes for robotas elsewhere, if they are wanted."""
    if not wanted.provider_host:
        return []
    from robota.cli.provider_host import provider_routes  # noqa: PLC0415 - for those who want it

    return provider_routes({chosen.provider.name: chosen.provider}, secrets=(wanted.token, *chosen.secrets))


async def list_models(chosen: ChosenProvider) -> list[JsonObject]:
    """The model that answers, and the others that its service is known to have."""
    definition = find_definition(chosen.provider.name)
    known = () if definition is None else selectable_models(definition.model_catalog)
    names = {chosen.model: "", **{entry.id: entry.display_name or "" for entry in known}}
    return [{"id": id, "name": name or id} for id, name in names.items()]


def session_factory(options: Options, chosen: ChosenProvider, store: SessionStore) -> SessionFactory:
    """Makes sessions as clients wish, else as the command line says."""

    async def make(wish: SessionWish) -> InteractiveSession:
        start = None
        if wish.resume is not None:
            start = await to_thread.run_sync(partial(restore_session, store, wish.resume, fork=wish.fork))
        more = gather_more(options, chosen)
        if start is not None:
            more["start"] = start
        known = start.model if start is not None and start.provider == chosen.provider.name else None
        return InteractiveSession(
            provider=chosen.provider,
            model=wish.model or known or chosen.model,
            cwd=wish.cwd or (start.cwd if start is not None else None) or None,
            permission_mode=None if wish.permission_mode is None else require_mode(wish.permission_mode),
            session_store=store,
            session_name=wish.name,
            resume_session_id=wish.resume,
            fork_session=wish.fork,
            **more,
        )

    return make


class Ending:
    """The signal that ends the server."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.code = 0
        self._before: dict[int, object] = {}

    def __enter__(self) -> Ending:
        loop = asyncio.get_running_loop()

        def end(number: int, frame: FrameType | None) -> None:
            self.code = 130 if number == signal.SIGINT else 0
            loop.call_soon_threadsafe(self.told.set)

        self._before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *failure: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


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
