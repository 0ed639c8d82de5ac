"""Where to search: a path and a pattern of names, as a directory to start in and a test for what is found.

A pattern never leads out of the path that was named, neither by `..` nor by links, because the path is what
permissions are asked for.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from robota.tools.search.engine import SKIPPED_DIRECTORIES, SearchError
from robota.tools.search.gitignore import is_ignored_directory
from robota.tools.search.glob_pattern import GlobError, expand_braces, has_wildcard, split_path, translate
from robota.tools.search.text_search import probe_binary

Denied: TypeAlias = Callable[[str], bool]
"""Whether the file with this absolute path must not be shown. Called in a worker thread."""

Visible: TypeAlias = Callable[[str], bool]

_PUSHED = re.compile(r"[\w.+@~,=%#-]", re.ASCII)
_NARROWEST = 3
"""Characters that a name pattern must have for it to be worth handing over."""


class Root(Struct, frozen=True, kw_only=True):
    """A directory to search in, or a file."""

    directory: str
    file: str = ""
    """The name of the one file to search; nothing: all of them."""
    is_binary: bool = False

    @property
    def path(self) -> str:
        return os.path.join(self.directory, self.file) if self.file else self.directory


class NamePattern(Struct, frozen=True, kw_only=True):
    """Which files are wanted, by their paths relative to a directory."""

    expression: re.Pattern[str] | None = None
    excludes: bool = False
    """What fits is not wanted."""
    start: str = ""
    """All of them are below this directory; with a slash behind it, or empty."""
    names: tuple[str, ...] = ()
    """Their names fit one of these, which are made of plain characters and stars; empty: any."""
    max_depth: int | None = None
    is_exact: bool = False
    """`start`, `names` and `max_depth` say everything."""

    def matches(self, path: str) -> bool:
        return self.expression is None or (self.expression.fullmatch(path) is not None) is not self.excludes


class Selection(Struct, frozen=True, kw_only=True):
    """Several patterns at once: one that is pushed down into the engine, and a test for what it finds."""

    pushed: NamePattern = NamePattern()
    tests: tuple[NamePattern, ...] = ()

    @classmethod
    def of(cls, *patterns: NamePattern) -> Selection:
        pushed = max(patterns, key=lambda one: (bool(one.start), bool(one.names)), default=NamePattern())
        tests = tuple(one for one in patterns if one is not pushed or not one.is_exact)
        return cls(pushed=pushed, tests=tests)

    def visible_in(self, root: Root, denied: Denied | None) -> Visible | None:
        """Whether a path relative to the root may be shown; `None`: every one."""
        if denied is None:
            return self._fits if self.tests else None
        above = {root.directory, os.path.realpath(root.directory)}
        return lambda path: (
            self._fits(path) and not any(_is_denied(denied, os.path.join(one, path)) for one in above)
        )

    def _fits(self, path: str) -> bool:
        return all(test.matches(path) for test in self.tests)


def is_denied_file(denied: Denied | None, path: str) -> bool:
    """Whether a file that was named may not be searched, by that name or by its real one."""
    return denied is not None and any(_is_denied(denied, name) for name in (path, os.path.realpath(path)))


def _is_denied(denied: Denied, path: str) -> bool:
    try:
        return denied(path)
    except Exception:  # noqa: BLE001 - a rule that cannot be asked does not allow anything
        return True


def find_root(path: str) -> Root:
    """Raises `SearchError`. Links in the path itself are followed: it was named."""
    try:
        if ".." in path.split("/"):  # behind a link it leads elsewhere than it seems
            path = os.path.realpath(path)
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            with os.scandir(path):
                return Root(directory=path)
        if not stat.S_ISREG(mode):
            raise SearchError(f"Path is neither a directory nor a regular file: {path}", "unreadable")
        directory, name = os.path.split(path)
        return Root(directory=directory, file=name, is_binary=probe_binary(os.fsencode(path)))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise SearchError(f"Path not found: {path}", "not_found") from None
    except PermissionError:
        raise SearchError(f"Permission denied: {path}", "unreadable") from None
    except OSError as error:
        raise SearchError(f"Path not found: {path} ({error.strerror})", "not_found") from None


def read_pattern(pattern: str, root: str, *, include_ignored: bool, by_name: bool = False) -> NamePattern:
    """The files that a glob pattern means, seen from `root`; raises `SearchError`.

    `by_name`: a pattern without a slash is about names at any depth, and `!` turns a pattern round.
    """
    excludes = by_name and pattern.startswith("!")
    text = pattern[1:] if excludes else pattern
    try:
        alternatives = [_make_relative(one, root) for one in expand_braces(text)]
        if by_name:
            alternatives = [["**", *parts] if len(parts) == 1 else parts for parts in alternatives]
        source = "|".join(translate("/".join(parts)) for parts in alternatives)
        expression = re.compile(source, re.DOTALL)
    except (GlobError, re.error) as error:
        raise SearchError(f"Invalid glob pattern: {pattern} ({error})", "invalid_glob") from None
    if excludes:
        return NamePattern(expression=expression, excludes=True)
    start = _common_start(alternatives)
    if start and not _may_start_at(root, start, include_ignored):
        start = []
    names = _names_to_push(alternatives)
    open_ended = any("**" in parts for parts in alternatives)
    return NamePattern(
        expression=expression,
        start="".join(f"{part}/" for part in start),
        names=names,
        max_depth=None if open_ended else max(map(len, alternatives)) - len(start),
        is_exact=_is_exact(alternatives, names, start),
    )


def _make_relative(pattern: str, root: str) -> list[str]:
    """The parts of a pattern, seen from `root`, without `.` and `..`."""
    if not pattern:
        raise GlobError("it is empty")
    if pattern == "~" or pattern.startswith("~/"):
        pattern = os.path.expanduser("~") + pattern[1:]
    parts = split_path(pattern)
    fixed = next((n for n, part in enumerate(parts) if has_wildcard(part)), len(parts) - 1)
    directory = os.path.normpath(os.path.join(root, "/".join(parts[:fixed]) or ("/" if fixed else "")))
    rest = [part for part in parts[fixed:] if part not in ("", ".")] or ["**"]
    if parts[-1] == "" and rest[-1] != "**":
        rest.append("**")
    if ".." in rest:
        raise GlobError("`..` stands behind a wildcard")
    for base in {root, os.path.realpath(root)}:
        if directory == base or directory.startswith(base.rstrip("/") + "/"):
            return [*(part for part in directory[len(base) :].split("/") if part), *rest]
    advice = f"give {directory!r} as `path` and {'/'.join(rest)!r} as the pattern"
    raise SearchError(f"The pattern {pattern!r} leads out of {root}: {advice}.", "outside")


def _common_start(alternatives: Sequence[list[str]]) -> list[str]:
    """The directories that all alternatives begin with."""
    common: list[str] = []
    for parts in zip(*(parts[:-1] for parts in alternatives), strict=False):
        if len(set(parts)) > 1 or has_wildcard(parts[0]):
            break
        common.append(parts[0])
    return common


def _may_start_at(root: str, start: list[str], include_ignored: bool) -> bool:
    """Whether a walk from the root would come here: no link, nothing skipped or ignored on the way."""
    real = os.path.realpath(root)
    if any(part in SKIPPED_DIRECTORIES for part in start):
        return False
    there = os.path.join(real, *start)
    if not os.path.isdir(there) or os.path.realpath(there) != there:
        return False
    return include_ignored or not is_ignored_directory(os.fsencode(real), [os.fsencode(one) for one in start])


def _names_to_push(alternatives: Sequence[list[str]]) -> tuple[str, ...]:
    """Patterns of names that both engines read alike; none unless each alternative has a useful one."""
    pushed = []
    for *_, last in alternatives:
        if last == "**":
            return ()
        simple = re.sub(r"\[.*\]|\\.|\?", "*", last, flags=re.DOTALL)
        name = re.sub(r"\*+", "*", "".join(one if _PUSHED.match(one) else "*" for one in simple))
        if len(name) < _NARROWEST:
            return ()
        pushed.append(name)
    return tuple(dict.fromkeys(pushed))


def _is_exact(alternatives: Sequence[list[str]], names: tuple[str, ...], start: list[str]) -> bool:
    """Whether start and names leave nothing to be tested: `src/**/*.py`, `**`."""
    rests = [parts[len(start) :] for parts in alternatives]
    if ["**"] in rests or ["**", "*"] in rests:
        return True
    return all(len(rest) == 2 and rest[0] == "**" and rest[1] in names for rest in rests)
