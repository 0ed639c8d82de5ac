"""`robota plugin`: bundle plugins and the marketplaces they come from. What goes on is told on stderr."""

from __future__ import annotations

import sys
from typing import Literal

import click

from robota.cli.table import print_table
from robota.sdk.bundle.desk import BundleDesk, Pending
from robota.sdk.bundle.names import BundleError
from robota.sdk.places import find_places
from robota.sdk.view.neutral import neutral_line, neutralise

REFUSED = 1
_HELP = {"help_option_names": ["-h", "--help"]}
_scope = click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    help="For you everywhere, or for this project and everybody who works on it.",
)
_yes = click.option("-y", "--yes", is_flag=True, help="Agree to what it runs without being asked.")


@click.group(help="Bundle plugins and the marketplaces they come from.", context_settings=_HELP)
def command() -> None: ...


@command.group(help="The marketplaces that plugins come from.", context_settings=_HELP)
def marketplace() -> None: ...


def _desk() -> BundleDesk:
    from robota.sdk.bundle.trusting import load_trusted_settings  # noqa: PLC0415 - after the arguments

    places = find_places()
    extra = load_trusted_settings(places).get("extraKnownMarketplaces")
    return BundleDesk(places, extra=extra, tell=lambda text: print(neutral_line(text), file=sys.stderr))


def _say(lines: list[str]) -> None:
    for line in lines:
        print(neutralise(line))


def _decide(pending: Pending, *, yes: bool) -> int:
    """Show what there is to know and ask; a script says yes with a flag."""
    _say(pending.lines)
    if not pending.question:
        return 0
    try:
        if not yes and not sys.stdin.isatty():
            raise BundleError(f"{pending.question} Nobody can be asked here: --yes agrees to the above.")
        agreed = yes or click.confirm(pending.question, err=True)
        _say(pending.agree() if agreed else ["Nothing was changed."])
    finally:
        pending.drop()
    return 0 if agreed else REFUSED


@command.command("list")
def list_plugins() -> None:
    """Show what is installed, and whether it is used."""
    rows = _desk().list_rows()
    print_table([tuple(map(neutral_line, row)) for row in rows])
    if not rows:
        print("No plugins are installed: robota plugin search shows what there is.", file=sys.stderr)


@command.command()
@click.argument("text", nargs=-1)
@click.option("--category", help="Only plugins of this category.")
def search(text: tuple[str, ...], category: str | None) -> int:
    """Show what the marketplaces offer that has TEXT in its name, keywords, category or description."""
    desk = _desk()
    rows = desk.search_rows(" ".join(text), category)
    print_table([tuple(map(neutral_line, row)) for row in rows])
    for problem in desk.marketplaces.problems:
        print(problem, file=sys.stderr)
    if not rows:
        print("No marketplace offers that.", file=sys.stderr)
    return 0 if rows else REFUSED


@command.command()
@click.argument("plugin")
@_scope
@_yes
def install(plugin: str, scope: Literal["user", "project"], yes: bool) -> int:
    """Fetch PLUGIN (name@marketplace, or a name), show what it runs, and install it on a yes."""
    return _decide(_desk().prepare_install(plugin, scope), yes=yes)


@command.command()
@click.argument("plugin")
def uninstall(plugin: str) -> None:
    """Take PLUGIN out."""
    _say(_desk().uninstall(plugin))


@command.command()
@click.argument("plugin")
@_yes
def enable(plugin: str, yes: bool) -> int:
    """Show what PLUGIN runs, and use it on a yes; also after its files have changed."""
    return _decide(_desk().prepare_enable(plugin), yes=yes)


@command.command()
@click.argument("plugin")
def disable(plugin: str) -> None:
    """Use PLUGIN no more, in sessions that are open too; it stays installed."""
    _say(_desk().disable(plugin))


@command.command()
@click.argument("plugin", required=False)
@_yes
def update(plugin: str | None, yes: bool) -> int:
    """Fetch PLUGIN, or all, from their marketplaces again, and show what has changed plugins run."""
    desk = _desk()
    codes = [
        _decide(desk.prepare_update(each), yes=yes)
        for each in ([plugin] if plugin else desk.list_updatable())
    ]
    return max(codes, default=0)


@command.command()
@click.argument("plugin")
def show(plugin: str) -> None:
    """Show what PLUGIN runs, reaches and brings along, and where it came from."""
    _say(_desk().show(plugin))


@command.command()
@click.argument("directory", default=".")
def validate(directory: str) -> int:
    """Check the plugin or the marketplace in DIRECTORY. Exit code 1: something is wrong with it."""
    right, lines = _desk().validate(directory)
    _say(lines)
    return 0 if right else REFUSED


@marketplace.command()
@click.argument("source")
def add(source: str) -> None:
    """Get to know the marketplace at SOURCE: owner/name on GitHub, the address of a git repository or of a
    .zip or .tar.gz file, or a directory; #NAME behind it is a branch, a tag or a commit."""
    _say(_desk().add_marketplace(source))


@marketplace.command()
@click.argument("name")
def remove(name: str) -> None:
    """Forget the marketplace NAME and uninstall what came from it."""
    _say(_desk().remove_marketplace(name))


@marketplace.command("list")
def list_marketplaces() -> None:
    """Show the marketplaces, where they come from and how much they offer."""
    print_table([tuple(map(neutral_line, row)) for row in _desk().marketplace_rows()])


@marketplace.command("update")
@click.argument("name", required=False)
def update_marketplaces(name: str | None) -> int:
    """Fetch the marketplace NAME, or all, again. What is installed stays as it is."""
    desk = _desk()
    _say(desk.update_marketplaces(name))
    return REFUSED if desk.marketplaces.problems else 0
