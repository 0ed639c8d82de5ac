from __future__ import annotations

from importlib import import_module
from pathlib import Path

import robota.sdk
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


def test_the_documentation_has_the_same_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
    told = page.partition("## The commands")[2].partition("|---|---|---|\n")[2].partition("\n\n")[0]

    assert told.split("\n") == [
        f"| `/{row.name}`{' *' if row.for_models else ''} | {_code(row.hint)} | {row.description} |"
        for row in ROWS
    ]


def _code(hint: str) -> str:
    return f"`{hint}`".replace("|", "\\|") if hint else ""


def test_what_runs_commands_is_not_public() -> None:
    assert not hasattr(robota.sdk, "SystemCommandExecutor")
    assert not [name for name in robota.sdk.__all__ if "run_command" in name or name == "ROWS"]
