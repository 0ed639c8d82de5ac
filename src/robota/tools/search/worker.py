"""A search program in plain Python that takes the part of ripgrep's command line that `command` writes.

It prints what ripgrep would print, in the order of paths, and ends like ripgrep: 0 if something was found, 1
if not, 2 if the pattern is refused or something could not be read. It is run in a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from robota.tools.search.bracket_class import RegexError
from robota.tools.search.glob_pattern import NameSet
from robota.tools.search.text_search import Report, TextSearch
from robota.tools.search.text_source import TooLargeError
from robota.tools.search.walk import Walk

FOUND, NOTHING, FAILED = 0, 1, 2
_FLUSH_BYTES = 64 * 1024


class _Options:
    """The command line: switches by name, values by the name of their option."""

    __slots__ = ("paths", "switches", "values")

    def __init__(self, arguments: list[str]) -> None:
        self.switches: set[str] = set()
        self.values: dict[str, list[str]] = {}
        self.paths: list[str] = []
        for argument in arguments:
            name, equals, value = argument.partition("=")
            if equals and name.startswith("--"):
                self.values.setdefault(name, []).append(value)
            elif name.startswith("--"):
                self.switches.add(name)
            else:
                self.paths.append(argument)

    def number(self, name: str) -> int:
        return int(self.values.get(name, ["0"])[-1])


class _Output:
    """Standard output, written in large pieces."""

    __slots__ = ("_pieces", "_size", "wrote")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self.wrote = False

    def add(self, piece: bytes) -> None:
        self.wrote = True
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        data = memoryview(b"".join(self._pieces))
        self._pieces.clear()
        self._size = 0
        while data:
            data = data[os.write(1, data) :]


def main(arguments: list[str]) -> int:
    options = _Options(arguments)
    path = os.fsencode(options.paths[0]).removeprefix(b"./")
    try:
        search = None if "--files" in options.switches else _make_search(options)
    except RegexError as error:
        sys.stderr.write(f"regex parse error:\nerror: {error}\n")
        return FAILED
    output = _Output()
    walk = _make_walk(options)
    any_bytes = "--text" in options.switches
    if path and not path.endswith(b"/"):
        files: Iterator[bytes] = iter([path])
    else:
        files = walk.files(path)
    failed = _search_all(files, search, output, any_bytes=any_bytes)
    output.flush()
    if failed or walk.failed:
        return FAILED
    return FOUND if output.wrote else NOTHING


def _make_walk(options: _Options) -> Walk:
    globs = [value.partition(":")[2] for value in options.values.get("--type-add", ())]
    return Walk(
        git="--no-ignore" not in options.switches,
        names=NameSet(globs) if globs else None,
        skipped=[os.fsencode(value.removeprefix("!")) for value in options.values.get("--glob", ())],
        max_depth=options.number("--max-depth") or None,
    )


def _make_search(options: _Options) -> TextSearch:
    switches = options.switches
    report: Report = "lines"
    if "--files-with-matches" in switches or "--count" in switches:
        report = "counts" if "--count" in switches else "paths"
    return TextSearch(
        options.values["--regexp"][0],
        report,
        ignore_case="--ignore-case" in switches,
        multiline="--multiline" in switches,
        before=options.number("--before-context"),
        after=options.number("--after-context"),
        columns=options.number("--max-columns"),
    )


def _search_all(
    files: Iterator[bytes], search: TextSearch | None, output: _Output, *, any_bytes: bool
) -> bool:
    """Whether something could not be read. With `any_bytes` there is one file, not named in the output."""
    failed = False
    separator = b""
    for path in files:
        if search is None:
            output.add(b"./%s\0" % path)
            continue
        try:
            found = search.run(path, any_bytes=any_bytes)
        except (OSError, TooLargeError):
            failed = True
            continue
        if found is not None:
            output.add(found if any_bytes and found else b"%s./%s\0%s" % (separator, path, found))
            separator = b"\n" if found and search.prints_lines else b""
    return failed
