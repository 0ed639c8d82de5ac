"""Everything that may stand on a command line, as one list of places, for the completions of shells."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import click
from msgspec import Struct

from robota.cli.flags import Flag, all_flags
from robota.cli.subcommands import SUBCOMMANDS

_FILES = frozenset(("FILE", "JSON", "SCHEMA", "DIRECTORY", "PATHS", "PATH"))
"""What values are called that are, or may be, names of files."""
_NAMING_SERVICES = (("auth", "set"), ("auth", "rm"), ("provider", "use"), ("provider", "check"))
"""Commands whose arguments are types of providers, or names that may be one."""
_SOURCES = ("user", "project", "local")


class Value(Struct, frozen=True):
    """What an option or an argument takes."""

    name: str
    words: tuple[str, ...] = ()
    files: bool = False
    directories: bool = False
    optional: bool = False


class Option(Struct, frozen=True):
    names: tuple[str, ...]
    about: str
    value: Value | None = None
    repeatable: bool = False


class Place(Struct, frozen=True):
    """Behind which words, and what may come there."""

    words: tuple[str, ...]
    options: tuple[Option, ...]
    below: dict[str, str] = {}
    """Subcommands, and what each is for."""
    values: tuple[Value, ...] = ()

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def offered(self) -> tuple[str, ...]:
        """Words that are no options."""
        return (*self.below, *dict.fromkeys(word for value in self.values for word in value.words))


def find_places() -> list[Place]:
    """The command itself, then all commands below it."""
    below = {name: about for name, (_, about) in SUBCOMMANDS.items()}
    places = [Place((), _root_options(), below, (Value("prompt", files=True),))]
    for name, (module, _) in SUBCOMMANDS.items():
        places += _walk(import_module(module).command, (name,))
    return places


def _root_options() -> tuple[Option, ...]:
    return tuple(
        Option(flag.names, flag.help, _flag_value(flag) if flag.metavar else None, flag.is_list)
        for flag in all_flags()
    )


def _flag_value(flag: Flag) -> Value:
    words = flag.choices
    if flag.key == "provider":
        words = _providers()
    elif flag.key == "setting_sources":
        words = _SOURCES
    return Value(
        flag.metavar.lower(), words, flag.metavar in _FILES, flag.metavar == "DIR", optional=flag.optional
    )


def _walk(command: click.Command, words: tuple[str, ...]) -> Iterator[Place]:
    context = click.Context(command, info_name=words[-1])
    found = [] if not isinstance(command, click.Group) else command.list_commands(context)
    inner = {name: command.get_command(context, name) for name in found}  # type: ignore[attr-defined]
    options, values = list[Option](), list[Value]()
    for parameter in command.get_params(context):
        value = _read_value(parameter, words)
        if isinstance(parameter, click.Option):
            names = tuple(dict.fromkeys((*parameter.opts, *parameter.secondary_opts)))
            taken = None if parameter.is_flag or parameter.name == "help" else value
            options.append(Option(names, parameter.help or "", taken, parameter.multiple))
        elif parameter.name == "options":  # those of robota itself
            own = {name for option in options for name in option.names}
            options += [option for option in _root_options() if own.isdisjoint(option.names)]
        else:
            values.append(value)
    about = {name: each.get_short_help_str(60) for name, each in inner.items() if each is not None}
    yield Place(words, tuple(options), about, tuple(values))
    for name, each in inner.items():
        if each is not None:
            yield from _walk(each, (*words, name))


def _read_value(parameter: click.Parameter, place: tuple[str, ...]) -> Value:
    name, kind = parameter.name or "", parameter.type
    shown = str(parameter.metavar or name).upper()
    words = (
        tuple(map(str, kind.choices)) if isinstance(kind, click.Choice) else _known_words(parameter, place)
    )
    directory = shown == "DIR" or name == "cwd"
    return Value(name, words, shown in _FILES and not directory, directory)


def _known_words(parameter: click.Parameter, place: tuple[str, ...]) -> tuple[str, ...]:
    if parameter.name == "key":
        from robota.sdk.settings.keys import KEYS  # noqa: PLC0415 - with the completions

        return tuple(KEYS)
    if parameter.name == "mode":
        return next(flag.choices for flag in all_flags() if flag.key == "mode")
    names_one = isinstance(parameter, click.Argument) and place in _NAMING_SERVICES
    return _providers() if names_one or {"--provider", "--type"} & set(parameter.opts) else ()


def _providers() -> tuple[str, ...]:
    from robota.providers.definitions import OURS  # noqa: PLC0415 - with the completions

    return tuple(OURS)
