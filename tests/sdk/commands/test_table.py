from __future__ import annotations

from importlib import import_module

from robota.sdk.commands.builtin_source import SYSTEM
from robota.sdk.commands.table import ROWS


def test_every_row_names_a_function_and_no_name_comes_twice() -> None:
    for row in ROWS:
        module, _, function = row.function.partition(".")
        assert callable(getattr(import_module(f"{SYSTEM}.{module}"), function))
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_the_commands_of_the_seed_come_first() -> None:
    seed = [
        "help",
        "clear",
        "compact",
        "mode",
        "model",
        "language",
        "cost",
        "context",
        "permissions",
        "resume",
        "rename",
        "reset",
    ]
    assert [row.name for row in ROWS[:12]] == seed
