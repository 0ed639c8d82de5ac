"""A search program in plain Python that takes the part of ripgrep's command line that `engine` writes.

It prints what ripgrep would print, in the order of paths, and ends like ripgrep: 0 if something was found, 1
if not, 2 if the pattern is refused or something could not be read. It is run in a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from robota.tools.search.gitignore import Ignored, ignore_nothing, read_surroundings
from robota.tools.search.glob_pattern import NameSet
from robota.tools.search.rust_regex import RegexError
from robota.tools.search.text_search import Report, TextSearch, TooLargeError

FOUND, NOTHING, FAILED = 0, 1, 2
_BUFFER_BYTES = 64 * 1024


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


def main(arguments: list[str]) -> int:
    options = _Options(arguments)
    path = os.fsencode(options.paths[0]).removeprefix(b"./")
    try:
        search = None if "--files" in options.switches else _make_search(options)
    except RegexError as error:
        sys.stderr.write(f"regex parse error:\nerror: {error}\n")
        return FAILED
    walk = Walk(options)
    files = iter([path]) if path and not path.endswith(b"/") else walk.files(path)
    with open(1, "wb", _BUFFER_BYTES, closefd=False) as output:
        printed, failed = _search_all(files, search, output.write, any_bytes="--text" in options.switches)
    if failed or walk.failed:
        return FAILED
    return FOUND if printed else NOTHING


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
    files: Iterator[bytes],
    search: TextSearch | None,
    write: Callable[[bytes], object],
    *,
    any_bytes: bool,
) -> tuple[bool, bool]:
    """Whether something was written, and whether something could not be read.

    With `any_bytes` there is one file, not named in the output.
    """
    printed = failed = False
    separator = b""
    for path in files:
        if search is None:
            write(b"./%s\0" % path)
            printed = True
            continue
        try:
            found = search.run(path, any_bytes=any_bytes)
        except (OSError, TooLargeError):
            failed = True
            continue
        if found is not None:
            write(found if any_bytes and found else b"%s./%s\0%s" % (separator, path, found))
            printed = True
            separator = b"\n" if found and search.report == "lines" else b""
    return printed, failed


class Walk:
    """The files below a directory in the order of their paths; links are neither followed nor listed.

    `failed` says whether something could not be read."""

    __slots__ = ("_git", "_max_depth", "_names", "_skipped", "failed")

    def __init__(self, options: _Options) -> None:
        """What git ignores is left out, and names to pass over; if some are wanted, all others."""
        wanted = [value.partition(":")[2] for value in options.values.get("--type-add", ())]
        skipped = options.values.get("--glob", ())
        self._git = "--no-ignore" not in options.switches
        self._names = NameSet(wanted) if wanted else None
        self._skipped = frozenset(os.fsencode(value.removeprefix("!")) for value in skipped)
        self._max_depth = options.number("--max-depth") or None
        self.failed = False

    def files(self, start: bytes) -> Iterator[bytes]:
        """Paths that begin with `start`, which ends with a slash or is empty for the working directory."""
        ignored = ignore_nothing()
        if self._git:
            here = os.path.join(os.getcwdb(), start).rstrip(b"/") or b"/"
            ignored = read_surroundings(os.path.realpath(here), len(start))
        stack = [self._enter(start, ignored)]
        while stack:
            for prefix, below in stack[-1]:
                if below is None:
                    yield prefix
                elif self._max_depth is None or len(stack) < self._max_depth:
                    stack.append(self._enter(prefix + b"/", below))
                    break
            else:
                stack.pop()

    def _enter(self, prefix: bytes, above: Ignored) -> Iterator[tuple[bytes, Ignored | None]]:
        """Paths of the wanted entries; directories come with what is ignored around them."""
        try:
            with os.scandir(prefix or b".") as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            self.failed = True
            return
        if self._git:
            above = above.enter(prefix or b".", prefix, {entry.name for entry in entries})
        names, skipped, covers = self._names, self._skipped, above.covers
        for entry in entries:
            name = entry.name
            if name in skipped:
                continue
            path = prefix + name
            if entry.is_dir(follow_symlinks=False):
                if not covers(name, path, True):
                    yield path, above
            elif (
                (names is None or name in names)
                and entry.is_file(follow_symlinks=False)
                and not covers(name, path, False)
            ):
                yield path, None
