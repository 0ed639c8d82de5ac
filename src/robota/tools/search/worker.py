"""A search program in plain Python that takes the part of ripgrep's command line that `engine` writes.

It prints what ripgrep would print, in the order of paths, and ends like ripgrep: 0 if something was found, 1
if not, 2 if the pattern is refused or something could not be read. It is run in a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator

from robota.tools.search.gitignore import Ignored, ignore_nothing, read_surroundings
from robota.tools.search.glob_pattern import NameSet
from robota.tools.search.rust_regex import RegexError
from robota.tools.search.text_search import Report, TextSearch, TooLargeError

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
    files = iter([path]) if path and not path.endswith(b"/") else walk.files(path)
    failed = _search_all(files, search, output, any_bytes="--text" in options.switches)
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
            separator = b"\n" if found and search.report == "lines" else b""
    return failed


class Walk:
    """The files below a directory in the order of their paths; links are neither followed nor listed.

    `failed` says whether something could not be read."""

    __slots__ = ("_git", "_max_depth", "_names", "_skipped", "failed")

    def __init__(
        self,
        *,
        git: bool = True,
        names: NameSet | None = None,
        skipped: Collection[bytes] = (),
        max_depth: int | None = None,
    ) -> None:
        """`git`: leave out what git ignores. `names`: of the files wanted. `skipped`: names to pass over."""
        self._git = git
        self._names = names
        self._skipped = frozenset(skipped)
        self._max_depth = max_depth
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
