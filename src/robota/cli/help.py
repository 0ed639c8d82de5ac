"""What `robota --help` prints."""

from __future__ import annotations

import os

from robota.cli.flags import GROUPS, Flag
from robota.cli.subcommands import SUBCOMMANDS

WIDTH = 100
_COLUMN = 34
"""Where explanations begin."""
_USAGE = """\
Usage: robota [OPTIONS] [PROMPT]
       robota COMMAND ...

A coding assistant in the terminal. Without a key, a base URL or a local model it runs on a scripted
offline model that shows how a turn works.
"""


def render_help(width: int | None = None) -> str:
    """The whole text, at most so wide."""
    width = min(WIDTH, width or _find_width())
    lines = [_USAGE]
    for title, flags in GROUPS:
        lines.append(f"{title}:")
        for flag in flags:
            lines += _explain(_describe(flag), flag.help, width)
        lines.append("")
    lines.append("Commands (each has a --help of its own):")
    for name, (_, about) in SUBCOMMANDS.items():
        lines += _explain(name, about, width)
    return "\n".join(lines)


def _describe(flag: Flag) -> str:
    value = f"[{flag.metavar}]" if flag.optional else flag.metavar
    return ", ".join(flag.names) + (f" {value}" if value else "")


def _explain(name: str, about: str, width: int) -> list[str]:
    """A name, and what it is for beside it, or below if the name is long."""
    lines, line = [], f"  {name}"
    if len(line) > _COLUMN - 2:
        lines, line = [line], ""
    line = line.ljust(_COLUMN)
    for word in about.split(" "):
        if len(line) + len(word) > width and not line.isspace():
            lines.append(line.rstrip())
            line = " " * _COLUMN
        line += f"{word} "
    return [*lines, line.rstrip()]


def _find_width() -> int:
    try:
        return max(os.get_terminal_size(1).columns, 2 * _COLUMN)
    except OSError:
        return WIDTH
