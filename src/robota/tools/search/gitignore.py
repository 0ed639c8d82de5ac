"""What git ignores: `.gitignore` files on the way down, `.git/info/exclude`, the user's own list.

Rules count inside a repository only, up to the directory that has `.git`, as git and ripgrep do. Of the rules
in one file the last one that fits decides, of several files the deepest; then come the repository's own list
and the user's. Nothing below an ignored directory is ever asked about.
"""

from __future__ import annotations

import os
import re
from itertools import groupby
from typing import NamedTuple

from robota.tools.search.glob_pattern import GlobError, NameSet, compile_paths, expand_braces, translate

FILE_NAME = b".gitignore"
REPOSITORY_MARKS = (b".git", b".jj")
MAX_RULE_BYTES = 1024 * 1024


class RuleList:
    """The rules of one file: neighbours of one kind are tried together, the last ones first."""

    __slots__ = ("_runs",)

    def __init__(self, text: str) -> None:
        rules = [rule for line in text.split("\n") if (rule := _parse(line)) is not None]
        self._runs: list[tuple[bool, list[_Group]]] = []
        for ignores, neighbours in groupby(reversed(rules), lambda rule: rule.ignores):
            run = list(neighbours)
            everything = _Group([rule for rule in run if not rule.directories_only])
            self._runs.append(
                (ignores, [everything, _Group([rule for rule in run if rule.directories_only])])
            )

    def verdict(self, name: bytes, path: bytes, is_directory: bool) -> bool | None:
        """Whether it is ignored; `None` if no rule fits. `path` is relative to where the rules count."""
        for ignores, groups in self._runs:
            for group in groups if is_directory else groups[:1]:
                if group.matches(name, path):
                    return ignores
        return None


class _Rule(NamedTuple):
    patterns: list[str]
    ignores: bool
    by_name: bool
    directories_only: bool


class _Group:
    __slots__ = ("_expression", "_names")

    def __init__(self, rules: list[_Rule]) -> None:
        self._names = NameSet(pattern for rule in rules if rule.by_name for pattern in rule.patterns)
        self._expression = compile_paths(
            [translate(pattern) for rule in rules if not rule.by_name for pattern in rule.patterns]
        )

    def matches(self, name: bytes, path: bytes) -> bool:
        if name in self._names:
            return True
        return self._expression is not None and self._expression.fullmatch(path) is not None


def _parse(line: str) -> _Rule | None:
    """The rule of a line; `None` if there is none or it makes no sense, which git passes over too."""
    if line.startswith("#"):
        return None
    line = line.removesuffix("\r")
    text = line if line.endswith("\\ ") else line.rstrip()
    ignores = not text.startswith("!")
    text = text.removeprefix("!")
    anchored = text.startswith("/")
    text = text.removeprefix("/")
    directories_only = text.endswith("/")
    if directories_only:
        text = text[:-1].removesuffix("\\")
    if not text:
        return None
    by_name = not anchored and "/" not in text
    if text.endswith("/**"):
        text += "/*"
    try:
        patterns = expand_braces(text)
        compile_paths([translate(pattern) for pattern in patterns])
    except (GlobError, re.error):
        return None
    return _Rule(patterns, ignores=ignores, by_name=by_name, directories_only=directories_only)


class _Level(NamedTuple):
    """Rules and where they count: below `depth` bytes of a path, or for paths put behind `prefix`."""

    rules: RuleList
    excluded: RuleList
    depth: int
    prefix: bytes


class Ignored(NamedTuple):
    """What is ignored in a directory and below it, until a deeper one has rules of its own."""

    levels: list[_Level]
    """The deepest first, that of the repository last; none outside of one."""
    personal: RuleList

    def covers(self, name: bytes, path: bytes, is_directory: bool) -> bool:
        """Whether what `path` (relative to the root of the walk) names is ignored."""
        if not self.levels:
            return False
        for level in self.levels:
            below = level.prefix + path[level.depth :]
            verdict = level.rules.verdict(name, below, is_directory)
            if verdict is not None:
                return verdict
        repository = self.levels[-1]
        below = repository.prefix + path[repository.depth :]
        verdict = repository.excluded.verdict(name, below, is_directory)
        return bool(self.personal.verdict(name, path, is_directory) if verdict is None else verdict)

    def enter(self, directory: bytes, prefix: bytes, names: set[bytes]) -> Ignored:
        """The same for a directory just entered; `prefix` is how the paths of its entries begin."""
        is_repository = any(mark in names for mark in REPOSITORY_MARKS) and _is_repository(directory)
        if not is_repository and (FILE_NAME not in names or not self.levels):
            return self
        level = _load_level(directory, depth=len(prefix), prefix=b"", is_repository=is_repository)
        return Ignored([level] if is_repository else [level, *self.levels], self.personal)


def ignore_nothing() -> Ignored:
    return Ignored([], RuleList(""))


def read_surroundings(root: bytes, depth: int) -> Ignored:
    """What the directories above `root` (absolute) ignore in it, and the user's own list.

    Paths that will be asked about have `depth` bytes before they come to what is below `root`.
    """
    levels: list[_Level] = []
    prefix = b""
    directory = root
    if not _is_repository(root):
        while (parent := os.path.dirname(directory)) != directory:
            prefix = os.path.basename(directory) + b"/" + prefix
            directory = parent
            is_repository = _is_repository(directory)
            levels.append(_load_level(directory, depth=depth, prefix=prefix, is_repository=is_repository))
            if is_repository:
                break
        else:
            levels = []
    return Ignored(levels, RuleList(_read_personal()))


def is_ignored_directory(root: bytes, parts: list[bytes]) -> bool:
    """Whether a walk from `root` would be kept from the directory that these parts lead to."""
    ignored, prefix, directory = read_surroundings(root, 0), b"", root
    for part in parts:
        marks = {
            name for name in (FILE_NAME, *REPOSITORY_MARKS) if os.path.exists(os.path.join(directory, name))
        }
        ignored = ignored.enter(directory, prefix, marks)
        if ignored.covers(part, prefix + part, is_directory=True):
            return True
        prefix += part + b"/"
        directory = os.path.join(directory, part)
    return False


def _is_repository(directory: bytes) -> bool:
    return any(os.path.exists(os.path.join(directory, mark)) for mark in REPOSITORY_MARKS)


def _load_level(directory: bytes, *, depth: int, prefix: bytes, is_repository: bool) -> _Level:
    excluded = ""
    if is_repository:
        excluded = _read(os.path.join(git_directories(directory)[-1], b"info", b"exclude"))
    rules = RuleList(_read(os.path.join(directory, FILE_NAME)))
    return _Level(rules, RuleList(excluded), depth=depth, prefix=prefix)


def git_directories(work_tree: bytes) -> list[bytes]:
    """`.git`; in a linked work tree this file names a directory, which names another that is shared."""
    git = os.path.join(work_tree, b".git")
    if not os.path.isfile(git):
        return [git]
    own = os.path.realpath(os.path.join(work_tree, _read_path(git)))
    shared = _read_path(os.path.join(own, b"commondir"))
    return [own, os.path.realpath(os.path.join(own, shared))] if shared else [own]


def _read_path(file: bytes) -> bytes:
    return os.fsencode(_read(file).partition("\0")[0].removeprefix("gitdir:").strip())


_EXCLUDES_FILE = re.compile(r"(?im)^\s*excludesfile\s*=\s*\"?\s*(\S+?)\s*\"?\s*$")


def _read_personal() -> str:
    """The file that `core.excludesFile` names, or the default one."""
    home = os.path.expanduser("~")
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    for config in (os.path.join(home, ".gitconfig"), os.path.join(settings, "git", "config")):
        named = _EXCLUDES_FILE.search(_read(os.fsencode(config)))
        if named:
            return _read(os.fsencode(os.path.expanduser(named[1])))
    return _read(os.fsencode(os.path.join(settings, "git", "ignore")))


def _read(path: bytes) -> str:
    """The beginning of a small file; nothing if it cannot be read or is not a file."""
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, "rb") as file:
            return file.read(MAX_RULE_BYTES).decode("utf-8-sig", "surrogateescape")
    except (OSError, ValueError):
        return ""
