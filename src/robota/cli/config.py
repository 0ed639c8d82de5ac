"""`robota config`: the settings that count here, where they come from, and changes to them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from robota.cli.table import print_table
from robota.core.errors import ConfigurationError
from robota.core.given import suggest
from robota.core.jsontext import decode, encode
from robota.core.messages import Json
from robota.core.private_directory import make_private_directories
from robota.sdk.places import Places, find_places
from robota.sdk.project import ProjectOptions, load_project
from robota.sdk.settings.keys import KEYS
from robota.sdk.settings.write import change_setting, remove_setting
from robota.tui.user_editor import name_editor, run_editor

if TYPE_CHECKING:
    from robota.sdk.settings.settings import Settings

FILES = {"user": "settings.json", "project": "settings.json", "local": "settings.local.json"}


@click.group(
    help="Settings: what counts in this directory, and the files it comes from.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def command() -> None: ...


scope_option = click.option(
    "--scope",
    type=click.Choice(list(FILES)),
    default="user",
    show_default=True,
    help="Which file: yours, the project's, or yours in the project.",
)


@command.command()
@click.option("--origin", is_flag=True, help="With the files that each value comes from.")
def show(origin: bool) -> None:
    """Show every setting that somebody has made, as it counts here."""
    settings, places = _load(), find_places()
    rows = []
    for key in sorted(settings.values):
        sources = ", ".join(places.shown(path) for path in settings.origins.get(key, ()))
        rows.append((key, _write(settings.values[key]), *((sources,) if origin else ())))
    print_table(rows)


@command.command()
@click.argument("key")
def get(key: str) -> int:
    """Print the value of KEY as JSON, its default if nobody set it. Exit code 1: it has none."""
    _check_key(key)
    settings = _load()
    value = settings.values.get(key, KEYS[key].default)
    if value is None:
        return 1
    print(_write(value))
    return 0


@command.command("set", context_settings={"ignore_unknown_options": True})  # -1 is a value
@click.argument("key")
@click.argument("value")
@scope_option
def set_value(key: str, value: str, scope: str) -> None:
    """Give KEY a value: JSON, or a text. Comments and order of the file stay."""
    _check_key(key)
    places = find_places()
    path, project = _find_file(places, scope)
    wanted = _read_value(key, value)
    changed = change_setting(path, key, wanted, project=project)
    print(f"{key} = {_write(wanted)} in {places.shown(path)}{'' if changed else ', as it was'}.")
    if project is not None and not load_project(ProjectOptions(places=places)).trust.trusted:
        print(
            "This directory is not trusted, so of its settings only deny and ask rules count: start robota "
            "here on a terminal, which asks about it, or give --trust for one call.",
            file=sys.stderr,
        )


@command.command()
@click.argument("key")
@scope_option
def unset(key: str, scope: str) -> int:
    """Take KEY out of a file. Exit code 1: it is not in it."""
    places = find_places()
    path, project = _find_file(places, scope)
    changed = remove_setting(path, key, project=project)
    print(f"{key} is {'no longer' if changed else 'not'} in {places.shown(path)}.")
    return 0 if changed else 1


@command.command()
@scope_option
def edit(scope: str) -> int:
    """Open a file in $VISUAL or $EDITOR, and say what is wrong with it afterwards."""
    path, project = _find_file(find_places(), scope)
    editor = name_editor()
    if not editor:
        raise ConfigurationError(f"Neither $VISUAL nor $EDITOR is set: set one, or edit {path} yourself.")
    if project is None:  # it may hold keys, and an editor would make it for everybody to read
        make_private_directories(os.path.dirname(path))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if code := run_editor(editor, path):
        raise ConfigurationError(f"The editor {editor!r} ended with {code}: look at {path}.")
    _load()
    return 0


@command.command()
def path() -> None:
    """Print where settings are looked for, the highest first."""
    from robota.sdk.settings.layers import find_files  # noqa: PLC0415 - for those who ask

    print_table(
        [
            (layer, file if os.path.exists(file) else f"{file} (not there)")
            for layer, file, _ in find_files(find_places())
        ]
    )


def _load() -> Settings:
    project = load_project(ProjectOptions(places=find_places()))
    for problem in project.problems:
        print(problem, file=sys.stderr)
    return project.settings


def _find_file(places: Places, scope: str) -> tuple[str, str | None]:
    if scope == "user":
        return places.user(FILES[scope]), None
    return places.project(".robota", FILES[scope]), places.cwd


def _check_key(key: str) -> None:
    if key not in KEYS:
        raise ConfigurationError(f"There is no setting {key!r}; {suggest(key, KEYS)}")


def _read_value(key: str, text: str) -> Json:
    """What somebody means by a value: a text where one belongs, else JSON."""
    from robota.core.schema import check  # noqa: PLC0415 - for those who change something

    kind = KEYS[key].kind
    meanings: list[Json] = []
    with suppress(ValueError):
        meanings.append(decode(text))
    meanings.append(text)
    for value in meanings:
        if not check(value, dict(kind), key):
            return value
    raise ConfigurationError(f"That is no value for {key}: {check(meanings[0], dict(kind), key)[0]}.")


def _write(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()
