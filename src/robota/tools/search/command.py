"""The command line of one search, as ripgrep and the worker understand it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from robota.tools.search.engine import Engine
from robota.tools.search.limits import MAX_LINE_CHARACTERS

SKIPPED_DIRECTORIES = (".git", "node_modules")
Report: TypeAlias = Literal["files", "paths", "counts", "lines"]
"""All files; those with a match; how many lines match in each; the lines."""


class Search(Struct, frozen=True, kw_only=True):
    report: Report
    start: str = ""
    """Where in the working directory: nothing, a directory with a slash behind it, or a file."""
    names: tuple[str, ...] = ()
    """Patterns of file names that are wanted, made of plain characters and stars; none: all."""
    max_depth: int | None = None
    include_ignored: bool = False
    pattern: str = ""
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0

    @property
    def is_single(self) -> bool:
        """One file, which is searched whatever is in it, and whose name is not printed."""
        return not (not self.start or self.start.endswith("/"))


def write_command(engine: Engine, search: Search, *, ordered_limit: int | None = None) -> list[str]:
    """`ordered_limit`: in the order of paths, and no more lines than this of a file."""
    arguments = [
        "--no-config",
        "--no-messages",
        "--no-ignore-messages",
        "--color=never",
        "--null",
        "--path-separator=/",
        "--hidden",
        "--no-ignore" if search.include_ignored else "--no-ignore-dot",
        *(f"--glob=!{name}" for name in SKIPPED_DIRECTORIES),
        *(f"--type-add=robota:{name}" for name in search.names),
        *(["--type=robota"] if search.names else []),
    ]
    if search.max_depth is not None:
        arguments.append(f"--max-depth={search.max_depth}")
    if search.report == "files":
        arguments.append("--files")
    else:
        arguments += _write_pattern(search)
    if ordered_limit is not None and not engine.is_ordered:
        arguments += ["--sort=path", f"--max-count={ordered_limit}"]
    return [*engine.command, *arguments, f"./{search.start}"]


def _write_pattern(search: Search) -> list[str]:
    arguments = [f"--regexp={search.pattern}"]
    if search.ignore_case:
        arguments.append("--ignore-case")
    if search.multiline:
        arguments += ["--multiline", "--multiline-dotall"]
    if search.is_single:
        arguments.append("--text")
        if search.report != "paths":
            arguments.append("--no-filename")
    if search.report == "paths":
        return [*arguments, "--files-with-matches"]
    if search.report == "counts":
        return [*arguments, "--count"]
    return [
        *arguments,
        "--line-number",
        "--heading",
        # Four bytes for a character: the first characters of a line always come, and one more if it is cut.
        f"--max-columns={4 * MAX_LINE_CHARACTERS}",
        "--max-columns-preview",
        f"--before-context={search.before}",
        f"--after-context={search.after}",
    ]
