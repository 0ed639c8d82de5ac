"""docs/cli.md says everything there is to say."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import click

from robota.cli.flags import all_flags
from robota.cli.subcommands import SUBCOMMANDS
from robota.sdk import ending

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def test_every_option_is_in_the_documentation_and_no_other() -> None:
    table = PAGE.partition("## Options\n")[2].partition("\nOptions of other programs")[0]
    written = set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-zA-Z-]*", table))

    assert written == {name for flag in all_flags() for name in flag.names}


def test_every_command_is_in_the_documentation() -> None:
    table = PAGE.partition("## Commands\n")[2].partition("```")[0]
    for name, (module, _) in SUBCOMMANDS.items():
        rows = [line for line in table.splitlines() if f"`robota {name}" in line]
        assert rows, name
        below = import_module(module).command
        for each in below.commands if isinstance(below, click.Group) else ():
            assert any(re.search(rf"`(robota {name} )?{each}\b", row) for row in rows), (name, each)


def test_every_exit_code_is_in_the_documentation() -> None:
    written = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    codes = [value for name, value in vars(ending).items() if name.isupper() and type(value) is int]

    assert len(codes) == 6
    assert written.issuperset(codes)
