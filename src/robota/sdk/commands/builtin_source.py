"""`BuiltinCommandSource`: the commands of the table, with what may be typed behind them."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from robota.core.plain_text import own_words
from robota.sdk.commands.effects import CommandResult
from robota.sdk.commands.registry import Command, CommandFunction
from robota.sdk.commands.table import ROWS, Row, Words

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

SYSTEM = "robota.sdk.commands.system"


class BuiltinCommandSource:
    """Brings the commands that every session has."""

    name = "builtin"

    def __init__(self) -> None:
        self._commands: tuple[Command, ...] = ()

    def commands(self) -> Iterable[Command]:
        self._commands = self._commands or tuple(map(_make, ROWS))
        return self._commands


def _make(row: Row) -> Command:
    words = _model_words() if row.name == "model" else row.words
    return Command(
        name=row.name,
        description=own_words(row.description) if row.for_models else row.description,
        execute=partial(run_row, row),
        subcommands=tuple(Command(name=word, description=text) for word, text in words),
        argument_hint=row.hint,
        disable_model_invocation=not row.for_models,
        gives_way=row.gives_way,
    )


def _model_words() -> Words:
    """One id for each known model, and how much it can hold; dated spellings of the same one are left out."""
    from robota.core.models import shipped_models  # noqa: PLC0415 - reads a file

    ids: dict[str, tuple[str, str]] = {}
    for id, facts in shipped_models().models.items():
        ids.setdefault(facts.name, (id, f"{facts.name} ({describe_window(facts.context_window)})"))
    return tuple(ids.values())


def describe_window(tokens: int) -> str:
    """`1M`, `200K`: a count of tokens in three signs or so."""
    for unit, letter in ((1_000_000, "M"), (1_000, "K")):
        if tokens >= unit:
            return f"{tokens / unit:.3g}{letter}"
    return str(tokens)


def run_row(row: Row, host: InteractiveSession, args: str) -> CommandResult | Awaitable[CommandResult]:
    from importlib import import_module  # noqa: PLC0415 - for those who call a command

    module, _, function = row.function.partition(".")
    run: CommandFunction = getattr(import_module(f"{SYSTEM}.{module}"), function)
    return run(host, args)
