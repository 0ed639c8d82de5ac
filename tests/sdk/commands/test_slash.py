from __future__ import annotations

import pytest

from robota.sdk.commands.arguments import split_quoted
from robota.sdk.commands.builtin_source import BuiltinCommandSource
from robota.sdk.commands.registry import CommandRegistry
from robota.sdk.commands.slash import read_slash

REGISTRY = CommandRegistry(BuiltinCommandSource())


@pytest.mark.parametrize(
    ("line", "name", "args"),
    [
        ("/cost", "cost", ""),
        ("/rename my  session ", "rename", "my  session"),
        ("/compact keep\nthe plan", "compact", "keep\nthe plan"),
        ("/mode\tplan", "mode", "plan"),
    ],
)
def test_a_line_that_begins_with_a_known_name_calls_it(line: str, name: str, args: str) -> None:
    read = read_slash(line, REGISTRY)

    assert read is not None
    assert (read.command.name, read.args) == (name, args)


@pytest.mark.parametrize(
    "line", ["/usr/bin/ls is missing", "/unknown", "/", "/ cost", "cost", " /cost", "", "//cost", "/Cost"]
)
def test_other_lines_are_ordinary_text(line: str) -> None:
    assert read_slash(line, REGISTRY) is None


def test_quotes_of_both_kinds_keep_words_together() -> None:
    assert split_quoted('a \'b c\' "d \'e" f="g h" # i') == ["a", "b c", "d 'e", "f=g h", "#", "i"]
    assert split_quoted(r""" "say \"hi\"" 'it\'s' """) == ['say "hi"', "it's"]
    with pytest.raises(ValueError, match="quotation"):
        split_quoted("'open")
