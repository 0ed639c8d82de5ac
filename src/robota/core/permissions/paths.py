"""Paths as rules see them: lexical and real form, the workspace, protected files, anchored patterns.

An allow rule must match both forms, a deny rule either. Containment is compared by component.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

from msgspec import Struct

from robota.core.permissions.globs import ANY_TEXT, Glob, Item, compile_glob, may_match

_CASE_INSENSITIVE = sys.platform in ("darwin", "win32")
_MAXIMUM_OPTIONAL_DIRECTORIES = 3
_NOTHING_SPELLED = frozenset("*./~")

# Files that decide what runs later: settings, hooks, shell start-up files, keys. Existing or not, in upper or
# lower case, they are protected from `acceptEdits` and from allow rules that reach them only by a wildcard.
_PROTECTED_SETTINGS = frozenset(
    {"hooks", "commands", "agents", "skills", "plugins", "auth.json", "trust.json"}
)
_PROTECTED_IN_GIT = frozenset({"config", "config.worktree", "hooks", "commondir", "attributes"})
_PROTECTED_FILES = frozenset({
    ".mcp.json", ".claude.json", ".gitmodules", ".gitconfig", ".git", ".bashrc", ".bash_profile",
    ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile",
    ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc",
    ".envrc", ".vimrc", ".gvimrc", ".nvimrc", ".exrc", ".emacs",
})  # fmt: skip
_PROTECTED_DIRECTORIES = frozenset({".ssh", ".vscode", ".idea", ".zed", ".claude-plugin", ".emacs.d"})
_PROTECTED_PAIRS = frozenset({
    (".config", "git"), (".config", "fish"), (".config", "nvim"),
    ("etc", "profile.d"), ("etc", "ssh"), ("etc", "zsh"),
})  # fmt: skip
_PROTECTED_IN_ETC = frozenset(
    {"profile", "bash.bashrc", "bashrc", "zshrc", "zshenv", "zprofile", "environment", "csh.cshrc"}
)


class Place(Struct, frozen=True, dict=True):
    """Where a call is judged: the working directory, the home directory and the workspace."""

    cwd: str
    home: str
    named: Sequence[str]

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The workspace, in lexical and real form; links are followed when somebody asks."""
        return tuple(dict.fromkeys([*self.named, *map(os.path.realpath, self.named)]))


def make_place(cwd: str | None, home: str | None, additional_dirs: Sequence[str]) -> Place:
    added = [additional_dirs] if isinstance(additional_dirs, str) else additional_dirs
    house = os.environ.get("HOME") or os.path.expanduser("~") if home is None else os.fspath(home)
    here = os.path.abspath(cwd or ".") if cwd is None or not cwd.startswith("/") else cwd
    return Place(*_spell(here, house, tuple(map(os.fspath, added)) if added else ()))


@lru_cache(maxsize=64)
def _spell(cwd: str, home: str, added: tuple[str, ...]) -> tuple[str, str, list[str]]:
    """The directories as they are compared; nothing here looks at the disk."""
    here, house = normalise(cwd), normalise(home)
    more = [normalise(os.path.join(here, expand_home(each, house))) for each in added]
    return here, house, [here, *more]


def normalise(path: str) -> str:
    """An absolute path without `.`, `..` and doubled separators."""
    shortened = posixpath.normpath(path)
    return "/" + shortened.lstrip("/") if shortened.startswith("//") else shortened


def expand_home(path: str, home: str) -> str:
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root if root.endswith("/") else root + "/")


def shorten(path: str, place: Place) -> str:
    """The path relative to the working directory where it lies below it."""
    inside = is_inside(path, place.cwd) and path != place.cwd
    return path[len(place.cwd.rstrip("/")) + 1 :] if inside else path


class PathForms(Struct, frozen=True):
    """One path in every form that may be the file that is opened."""

    lexical: tuple[str, ...]
    real: str | None
    """None when links lead in a circle."""

    @property
    def every(self) -> tuple[str, ...]:
        return self.lexical if self.real is None else (*self.lexical, self.real)


class Resolver(Struct, eq=False):
    """Resolves paths to both forms; each directory is followed through its links once."""

    home: str
    _directories: dict[str, str] = {}
    _resolved: dict[tuple[str, str], PathForms] = {}

    def resolve(self, path: str, cwd: str) -> PathForms:
        """A leading `~` is the home directory and a plain name. Text that is no path may raise."""
        forms = self._resolved.get((path, cwd))
        if forms is None:
            forms = self._resolved[path, cwd] = self.find_forms(path, cwd)
        return forms

    def find_forms(self, path: str, cwd: str) -> PathForms:
        """The same for a path that comes once."""
        written = posixpath.join(cwd, path)
        expanded = posixpath.join(cwd, expand_home(path, self.home))
        real = self.follow(expanded)
        lexical = (normalise(expanded),) if written == expanded else (normalise(expanded), normalise(written))
        if _is_circular(real):
            return PathForms((*lexical, real), None)  # a deny rule sees how far the links led
        return PathForms(lexical, real)

    def follow(self, path: str) -> str:
        """Where links lead."""
        directory, name = posixpath.split(path)
        if name in ("", ".", ".."):
            return normalise(os.path.realpath(path))
        real = self._directories.get(directory)
        if real is None:
            real = self._directories[directory] = normalise(os.path.realpath(directory))
        joined = posixpath.join(real, name)
        return normalise(os.path.realpath(joined)) if os.path.islink(joined) else joined


def _is_circular(real: str) -> bool:
    """Whether a resolved path still holds a link, at its end or on the way: links in a circle."""
    try:
        return stat.S_ISLNK(os.lstat(real).st_mode)
    except OSError as error:
        return error.errno == errno.ELOOP
    except ValueError:
        return False


def resolve(path: str, cwd: str, home: str) -> PathForms:
    return Resolver(home).resolve(path, cwd)


def in_workspace(forms: PathForms, place: Place) -> bool:
    return forms.real is not None and all(
        any(is_inside(form, root) for root in place.roots) for form in forms.every
    )


def is_protected(forms: PathForms) -> bool:
    return find_protection(forms.every) is not None


def find_protection(paths: Iterable[str]) -> str | None:
    """The component that makes one of the paths protected, in lower case; None when none is."""
    for path in paths:
        components = [component for component in path.casefold().split("/") if component]
        for index, component in enumerate(components):
            if _protects(components, index, component):
                return component
    return None


def _protects(components: list[str], index: int, component: str) -> bool:
    rest = components[index + 1 :]
    following = rest[0] if rest else ""
    if component in (".robota", ".claude"):
        return following in _PROTECTED_SETTINGS or following.startswith(("settings", "hooks."))
    if component == ".git" and rest:
        return not _PROTECTED_IN_GIT.isdisjoint(rest)
    if component in _PROTECTED_FILES or component.endswith(".code-workspace"):
        return not rest
    if component in _PROTECTED_DIRECTORIES or (component, following) in _PROTECTED_PAIRS:
        return bool(rest)
    return component == "etc" and index == 0 and len(rest) == 1 and following in _PROTECTED_IN_ETC


class _PathPattern(Struct, frozen=True):
    """A rule's pattern for files: a leading `/` is the file-system root, `~/` home, all else the cwd."""

    base: str
    """The directories before the first wildcard."""
    rest: str
    """What follows them, beginning with the component of the first wildcard; empty for a plain path."""
    written: str

    @property
    def components(self) -> frozenset[str]:
        """The components that the rule spells out, in lower case; none for a rule of wildcards alone."""
        if set(self.written) <= _NOTHING_SPELLED:
            return frozenset()
        whole = f"{self.base}/{self.rest}".casefold().split("/")
        return frozenset(component for component in whole if component and "*" not in component)


def _anchor(pattern: str, place: Place) -> _PathPattern:
    return _anchor_at(pattern, place.cwd, place.home)


@lru_cache(maxsize=1024)
def _anchor_at(pattern: str, cwd: str, home: str) -> _PathPattern:
    if pattern.startswith("/"):
        absolute = "/" + pattern.lstrip("/")
    else:
        expanded = expand_home(pattern, home)
        absolute = expanded if expanded.startswith("/") else cwd + "/" + expanded
    components = absolute.split("/")
    fixed = next((index for index, component in enumerate(components) if "*" in component), len(components))
    rest = "/".join(component for component in components[fixed:] if component not in ("", "."))
    return _PathPattern(normalise("/".join(components[:fixed]) or "/"), rest, pattern)


@lru_cache(maxsize=2048)
def _globs(base: str, rest: str) -> tuple[Glob, ...]:
    """The pattern under one base; `**/` may also stand for no directory at all."""
    texts = [base.rstrip("/") + "/" + rest if rest else base]
    for _ in range(_MAXIMUM_OPTIONAL_DIRECTORIES):
        texts += [text.replace("/**/", "/", 1) for text in texts if "/**/" in text]
    return tuple([compile_glob(_fold(text)) for text in dict.fromkeys(texts)])


def _fold(text: str) -> str:
    if not _CASE_INSENSITIVE:
        return text
    import unicodedata  # noqa: PLC0415 - only where the file system ignores case

    return unicodedata.normalize("NFC", text).casefold()


def covers(written: str | None, forms: PathForms, place: Place) -> bool:
    """Whether an allow rule's pattern, or one without, reaches the path in every form.

    A protected file must be spelled out.
    """
    protection = find_protection(forms.every)
    if written is None:
        return protection is None
    pattern = _anchor(written, place)
    if forms.real is None or (protection is not None and protection not in pattern.components):
        return False
    globs = [glob for base in _allowed_bases(pattern, place) for glob in _globs(base, pattern.rest)]
    return all(any(glob.matches(_fold(form)) for glob in globs) for form in forms.every)


def _allowed_bases(pattern: _PathPattern, place: Place) -> list[str]:
    """The rule's directory as written, as it really is, and as the workspace is written.

    Links above the workspace and links that stay in it are followed; a link in the workspace that leads out
    of it is not, or a repository could widen the rule.
    """
    base = pattern.base
    bases = [base]
    inside = [root for root in place.roots if is_inside(base, root)]
    bases += [os.path.realpath(root) + base[len(root.rstrip("/")) :] for root in inside]
    for root in place.roots:  # a rule with the real path of a workspace that is reached through a link
        behind = os.path.realpath(root)
        if is_inside(base, behind):
            bases.append(root.rstrip("/") + base[len(behind.rstrip("/")) :] or "/")
    real = (
        os.path.realpath(base)
        if pattern.rest
        else os.path.join(os.path.realpath(posixpath.dirname(base)), posixpath.basename(base))
    )
    if not inside or any(is_inside(real, root) for root in place.roots):
        bases.append(normalise(real))
    return list(dict.fromkeys(bases))


class DeniedPaths:
    """Everything a deny or ask rule reaches, ready to be compared with many paths."""

    __slots__ = ("_anchored", "_below", "_last", "_possible", "_whole")

    def __init__(self, text: str, place: Place, resolver: Resolver | None = None) -> None:
        follow = (resolver or Resolver(place.home)).follow
        pattern, written = _anchor(text, place), text.removeprefix("./")
        named: list[Glob] = []
        below: list[Glob] = []
        for base in dict.fromkeys((pattern.base, follow(pattern.base))):
            named += _globs(base, pattern.rest)
            if not pattern.rest.endswith("*"):
                below += _globs(base, pattern.rest + "/*" if pattern.rest else "*")
        if text.startswith("*"):
            named += [compile_glob(_fold(written)), *_globs("/", written)]
        self._anchored = named + below
        if not written.startswith(("*", "~")) and "/" not in written:  # a bare name counts at any depth
            for here in dict.fromkeys((place.cwd, follow(place.cwd))):
                named = [*named, *_globs(here, "**/" + written)]
                below = [*below, *_globs(here, "**/" + written + "/*")]
        self._below = named + below
        self._possible = self._below if os.path.isdir(pattern.base) else named
        self._whole = f"{pattern.base}/{pattern.rest}".rstrip("/")
        spelled = [each for each in self._whole.split("/") if "*" not in each]
        self._last = spelled[-1] or posixpath.basename(pattern.base)

    def hits(self, forms: PathForms, *, directory: bool = False) -> bool:
        """Whether the rule reaches the path; for a directory, whether it reaches all that is in it."""
        candidates = [_fold(form) for form in forms.every]
        if directory:
            candidates += [form.rstrip("/") + "/" for form in candidates]
        return any(glob.matches(candidate) for glob in self._below for candidate in candidates)

    def is_hidden_in(self, path: str | None) -> bool:
        """Whether only hidden files and what is in hidden directories below the path are meant."""
        inside = path is not None and self._whole.startswith(path.rstrip("/") + "/")
        below = self._whole[len(path or "") :] if inside else self._whole.rpartition("/")[2]
        return "/." in "/" + below

    def ends_otherwise(self, suffixes: frozenset[str]) -> bool:
        """Whether no file that is meant ends like one of these."""
        last, ends = self._whole.rpartition("/")[2], tuple(suffixes)
        if not suffixes or "." not in last:  # it may be a directory
            return False
        tail = last.rpartition("*")[2]
        return tail != "" and not tail.endswith(ends) and not any(end.endswith(tail) for end in ends)

    def is_named_in(self, text: str) -> bool:
        """Whether a path whose beginning is not known holds the last name that the rule spells out."""
        return (self._last.startswith(".") or "/" in text) and self._last in text.split("/")

    def may_hit(self, items: Sequence[Item]) -> bool:
        """Whether a partly known absolute path could be one that the rule reaches."""
        folded = [_fold(item) if isinstance(item, str) else item for item in items]
        return any(may_match(glob, folded, path=True) for glob in self._possible)

    def may_hit_below(self, items: Sequence[Item]) -> bool:
        """The same for something below the path."""
        folded = [_fold(item) if isinstance(item, str) else item for item in items]
        return any(may_match(glob, [*folded, "/", ANY_TEXT], path=True) for glob in self._anchored)

    def reaches_below(self, forms: PathForms) -> bool:
        """Whether the rule is about something below the path, so that walking the tree could meet it."""
        trees: list[list[Item]] = [[_fold(form).rstrip("/") + "/", ANY_TEXT] for form in forms.every]
        return any(may_match(glob, tree, path=True) for glob in self._anchored for tree in trees)
