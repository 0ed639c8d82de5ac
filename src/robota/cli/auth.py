"""`robota auth`: the keys of services. No key is ever printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection

import click

from robota.cli.table import print_table
from robota.core.errors import ConfigurationError
from robota.providers.choice import KEYS
from robota.providers.definitions import find_definition
from robota.sdk.auth import KeyStore
from robota.sdk.places import find_places
from robota.sdk.settings import load_settings

_PLACES = {"keyring": "in the keyring of the system", "environment": "as a reference"}


@click.group(
    help="The keys of services: in the keyring of the system, else in a file of yours alone.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def command() -> None: ...


@command.command("list")
def list_keys() -> int:
    """Show which keys there are and where they come from. Exit code 1: there are none."""
    keys = _store()
    rows = [(name, _describe_place(keys, place)) for name, place in sorted(keys.names.items())]
    rows += [
        (owner, f"in the variable {variable}")
        for variable, owner in KEYS.items()
        if os.environ.get(variable, "").strip()
    ]
    print_table(rows)
    if not rows:
        print("There are no keys: robota auth set NAME keeps one.", file=sys.stderr)
    return 0 if rows else 1


@command.command("set")
@click.argument("name")
def set_key(name: str) -> None:
    """Keep the key of NAME, a type of `robota provider list` or a profile in the settings. It is read from
    standard input without being shown; $ENV:NAME refers to a variable."""
    keys = _store()
    asks = sys.stdin.isatty()
    key = click.prompt(f"Key of {name}", hide_input=True, err=True) if asks else sys.stdin.readline()
    if not key.strip():
        raise ConfigurationError(
            f"No key came: run robota auth set {name} in a terminal, which asks, or pass the key on standard "
            "input, in one line."
        )
    print(f"The key of {name} is kept {_describe_place(keys, keys.set(name, key))}.")
    if find_definition(name) is None and name not in _profiles():
        print(
            f"There is no provider {name!r} yet, so nobody uses it: robota provider list shows those that "
            f"are there, and robota auth rm {name} forgets it.",
            file=sys.stderr,
        )


@command.command("rm")
@click.argument("name")
def remove_key(name: str) -> int:
    """Forget the key of NAME. Exit code 1: there is none."""
    keys = _store()
    known = keys.delete(name)
    names = ", ".join(sorted(keys.names)) or "no others"
    print(f"The key of {name} is forgotten." if known else f"No key is kept for {name}; there are {names}.")
    return 0 if known else 1


def _describe_place(keys: KeyStore, place: str) -> str:
    return _PLACES.get(place, f"in {keys.path}")


def _profiles() -> Collection[str]:
    return load_settings(find_places(), sources=("user",), trusted=False).profiles.profiles


def _store() -> KeyStore:
    return KeyStore(find_places().robota_home)
