"""`robota mcp add|list|get|remove|login`: MCP servers in files, and logins at those that want one."""

from __future__ import annotations

import asyncio
import sys
import threading
import webbrowser
from collections.abc import Iterable

import click

from robota.cli.table import print_table
from robota.core.errors import ConfigurationError
from robota.core.given import suggest
from robota.sdk.mcp.edit import SCOPES, WriteScope, add_server, make_definition, remove_server
from robota.sdk.mcp.reaching import look_at
from robota.sdk.places import find_places
from robota.sdk.project import Project, ProjectOptions, load_project

scope_help = "local: yours in this project; project: in .mcp.json, for everybody; user: yours everywhere."


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--scope", "-s", type=click.Choice(SCOPES), default="local", show_default=True, help=scope_help)
@click.option(
    "--transport",
    "-t",
    type=click.Choice(("stdio", "http", "sse")),
    default="stdio",
    show_default=True,
    help="A command, or how the address is reached.",
)
@click.option("--env", "-e", multiple=True, metavar="NAME=VALUE", help="A variable for the command.")
@click.option("--header", "-H", multiple=True, metavar="'NAME: VALUE'", help="Sent to the address.")
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="COMMAND [ARGS]... | URL")
def add(
    scope: WriteScope,
    transport: str,
    env: tuple[str, ...],
    header: tuple[str, ...],
    name: str,
    words: tuple[str, ...],
) -> None:
    """Write the server NAME: a command with its arguments (behind -- if they begin with a dash), or a URL.

    Example: robota mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
    """
    places = find_places()
    words = words[1:] if words[0] == "--" else words
    if not words:
        raise ConfigurationError("Name the command or the URL of the server behind its name.")
    written = make_definition(words, transport, _pairs(env, "="), _pairs(header, ":"))
    path, counts = add_server(places, scope, name, written)
    print(f"The MCP server {name} is in {places.shown(path)}.")
    if not counts:
        print("It counts once this directory is trusted: start robota here, or say --trust.", file=sys.stderr)


@click.command("list")
def list_servers() -> int:
    """Show the servers that count here. Exit code 1: there are none."""
    project = _load()
    print_table([(each.name, each.scope, each.kind, each.address) for each in project.servers.values()])
    if not project.servers:
        print("There are no MCP servers here: robota mcp add NAME COMMAND writes one.", file=sys.stderr)
    return 0 if project.servers else 1


@click.command()
@click.argument("name")
def get(name: str) -> int:
    """Connect the server NAME and show what it has. Exit code 1: it cannot be connected."""
    project = _load()
    _check_name(project, name)
    lines, connected = asyncio.run(look_at(project.servers[name], project.places))
    print("\n".join(lines))
    return 0 if connected else 1


@click.command()
@click.argument("name")
@click.option("--scope", "-s", type=click.Choice(SCOPES), help="Only there; otherwise wherever it is.")
def remove(name: str, scope: WriteScope | None) -> int:
    """Take the server NAME out of the files. Exit code 1: it is in none."""
    places = find_places()
    changed = remove_server(places, scope, name)
    where = ", ".join(map(places.shown, changed))
    print(f"The MCP server {name} is no longer in {where}." if changed else f"No file has {name!r}.")
    return 0 if changed else 1


@click.command()
@click.argument("name")
def login(name: str) -> None:
    """Log in at the server NAME, in a browser. Its tokens are kept with your keys."""
    from robota.sdk.mcp.login import log_in  # noqa: PLC0415 - for those who log in

    project = _load()
    _check_name(project, name)

    def show(url: str) -> None:
        print(f"Open this page to log in at {name}:\n{url}", flush=True)
        # Some browsers are waited for, and the page that they open waits for us.
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    tools = asyncio.run(log_in(project.servers[name], project.places, show))
    print(f"You are logged in at {name}, which has {tools} tools.")


def _load() -> Project:
    project = load_project(ProjectOptions(places=find_places()))
    for problem in project.problems:
        if not problem.harmless:
            print(problem, file=sys.stderr)
    return project


def _check_name(project: Project, name: str) -> None:
    if name not in project.servers:
        raise ConfigurationError(f"There is no MCP server {name!r} here; {suggest(name, project.servers)}")


def _pairs(given: Iterable[str], sign: str) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, found, value = text.partition(sign)
        if not found or not name.strip():
            raise ConfigurationError(f"{text!r} has no name and value with {sign!r} between them.")
        pairs[name.strip()] = value.strip()
    return pairs
