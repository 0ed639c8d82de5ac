"""`CommandRegistry`: every command that can be typed, whoever brings it: built-in ones, skills, plugins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from robota.sdk.commands.effects import CommandResult, failure

CommandFunction: TypeAlias = Callable[..., CommandResult | Awaitable[CommandResult]]
"""Called with the interactive session and the words behind the command's name."""


class Command(Struct, frozen=True, kw_only=True):
    """Something that is called by its name behind a slash."""

    name: str
    """Of a plugin's command `plugin:name`."""
    description: str
    aliases: tuple[str, ...] = ()
    """Other names that it may be called by; menus do not show them."""
    source: str = "builtin"
    """Who brings it: `builtin`, `skill` or `plugin`."""
    execute: CommandFunction | None = None
    """`None` for a word below a command, which only completes what is typed."""
    subcommands: tuple[Command, ...] = ()
    argument_hint: str = ""
    disable_model_invocation: bool = True
    """Whether only people may call it."""
    user_invocable: bool = True
    """Whether people may call it, so that menus show it."""
    gives_way: bool = False
    """Whether a command of the same name from a later source takes its place, as a user's own `/review`."""


class CommandName(NamedTuple):
    """What a list shows of a command."""

    name: str
    description: str


class CommandSource(Protocol):
    """Brings commands. It may be asked often, and keeps what is expensive."""

    @property
    def name(self) -> str: ...
    def commands(self) -> Iterable[Command]: ...


class CommandRegistry:
    """The commands of all sources; where two have the same name, the first source counts."""

    __slots__ = ("_sources",)

    def __init__(self, *sources: CommandSource) -> None:
        self._sources: list[CommandSource] = list(sources)

    def add_source(self, source: CommandSource) -> None:
        self._sources.append(source)

    def replace_source(self, source: CommandSource) -> None:
        """Put a source in the place of the one with its name; behind the others if there is none."""
        names = [each.name for each in self._sources]
        if source.name in names:
            self._sources[names.index(source.name)] = source
        else:
            self._sources.append(source)

    def commands(self, prefix: str = "") -> list[Command]:
        """What a user may call whose name begins like this, in any case."""
        start = prefix.casefold()
        return [each for each in self._named().values() if each.name.casefold().startswith(start)]

    def find(self, name: str) -> Command | None:
        """The command of that name; of a plugin's, its short name is enough while no other has it. Where
        several plugins have it, a command that says so."""
        named = self._named()
        return (
            named.get(name)
            or named.get(_resolve(named, name) or "")
            or next((each for each in named.values() if name in each.aliases), None)
            or _name_rivals(name, _find_rivals(named, name))
        )

    def resolve(self, short: str) -> str | None:
        """The full name of a plugin's command, if exactly one has this short one."""
        return _resolve(self._named(), short)

    def subcommands(self, name: str) -> tuple[Command, ...]:
        command = self.find(name)
        return () if command is None else command.subcommands

    def for_models(self) -> list[Command]:
        """The built-in commands that a model may call by itself; skills have a tool of their own."""
        merged = self._merged().values()
        return [each for each in merged if each.source == "builtin" and not each.disable_model_invocation]

    def _named(self) -> dict[str, Command]:
        return {name: each for name, each in self._merged().items() if each.user_invocable}

    def _merged(self) -> dict[str, Command]:
        found: dict[str, Command] = {}
        for source in self._sources:
            for command in source.commands():
                if command.name not in found or found[command.name].gives_way:
                    found[command.name] = command
        return found


def _resolve(names: Iterable[str], short: str) -> str | None:
    matching = _find_rivals(names, short)
    return matching[0] if len(matching) == 1 else None


def _find_rivals(names: Iterable[str], short: str) -> list[str]:
    """Those that are called by this short name."""
    return [name for name in names if name.endswith(f":{short}")] if short else []


def _name_rivals(short: str, names: list[str]) -> Command | None:
    if not names:
        return None
    listed = ", ".join(f"/{name}" for name in names)
    answer = failure(f"/{short} could be any of {listed}: type the whole name.")
    return Command(name=short, description=answer.message, execute=lambda host, args: answer)
