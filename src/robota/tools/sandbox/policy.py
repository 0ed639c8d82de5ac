"""What a command in the sandbox may do, as data, the policy of a workspace, and the caches in it.

Caches are where package managers and compilers keep what they can fetch or build again. One that is there may
be written from the sandbox; one that is not is moved into the private temporary directory, because the home
directory may not be written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.core.permissions.paths import is_inside

Network: TypeAlias = Literal["off", "on"]
Protection: TypeAlias = Literal["all", "existing", "none"]
"""Which protected files are held in place while a command runs. Missing ones that are not must be missing
again when it has ended."""

CONFIGURATION_NAMES = (".robota", ".claude", ".claude-plugin", ".vscode", ".idea", ".zed")
"""Directories that programs take settings from, in a project; read-only as a whole."""
PROJECT_NAMES = (*CONFIGURATION_NAMES, ".mcp.json", ".gitmodules", ".envrc", ".git")
"""Protected in every workspace directory, existing or not."""
HOME_NAMES = (
    ".claude.json", ".gitconfig", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
    ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc",
    ".tcshrc", ".login", ".logout", ".inputrc", ".vimrc", ".gvimrc", ".nvimrc", ".exrc", ".emacs",
    ".emacs.d", ".ssh", ".config/git", ".config/fish", ".config/nvim",
)  # fmt: skip
"""Read from the home directory only: protected there, existing or not, and elsewhere if they exist."""
GIT_NAMES = ("config", "config.worktree", "hooks", "commondir", "info/attributes")
"""Protected in a git directory, existing or not."""
_MODULE_DEPTH = 4
_SHARED = ("/tmp", "/dev/shm")
"""Where programs put temporary files, semaphores and memory that they share."""


class SandboxPolicy(Struct, frozen=True, kw_only=True):
    """Absolute real paths. Everything may be read but `deny_read`, nothing be written but `writable`."""

    writable: tuple[str, ...]
    """The workspace, caches and `tmp`."""
    tmp: str
    """A private directory for temporary files."""
    caches: tuple[str, ...] = ()
    """Those of the `writable` that are caches."""
    read_only_even_if_missing: tuple[str, ...] = ()
    """What stays as it is below `writable`: existing things read-only, missing ones missing."""
    refused: tuple[str, ...] = ()
    """What is missing and must be so again when the command has ended."""
    deny_read: tuple[str, ...] = ()
    network: Network = "off"


def workspace_policy(
    cwd: str,
    tmp: str,
    *,
    additional_dirs: Sequence[str] = (),
    caches: Sequence[str] = (),
    home: str | None = None,
    read_only: Sequence[str] = (),
    deny_read: Sequence[str] = (),
    network: Network = "off",
    protection: Protection = "all",
) -> SandboxPolicy:
    """The policy for commands that work in `cwd`; directories that do not exist are left out.

    Raises ValueError when the workspace cannot be separated from the rest of the system.
    """
    home_directory = os.path.realpath(os.path.expanduser("~") if home is None else home)
    roots = _real(cwd, [cwd, *additional_dirs])
    if "/" in roots:
        raise ValueError("the workspace is the whole file system")
    workspace = [root for root in roots if os.path.isdir(root)]
    guarded = [path for root in workspace for path in find_protected(root, is_home=root == home_directory)]
    if any(is_inside(home_directory, root) and home_directory != root for root in workspace):
        guarded += find_protected(home_directory, is_home=True)
    folders = [folder for root in workspace for folder in find_git_folders(root)]
    guarded += [path for folder in folders for path in _protect_git(folder)]
    held, refused = guarded, list[str]()
    if protection != "all":
        refused = [path for path in guarded if not os.path.lexists(path)]
        if protection == "existing":  # what lies deeper is seen by nobody, or is a home that must not change
            refused = [path for path in refused if _is_project_name(path, workspace)]
        held = [path for path in guarded if path not in refused] if protection == "existing" else []
    writable = [*workspace, *folders, *caches, os.path.realpath(tmp)]
    if protection == "none":  # where something can be mounted, both are private
        writable += [path for path in _SHARED if os.path.isdir(path) and not is_inside(home_directory, path)]
    return SandboxPolicy(
        writable=tuple(dict.fromkeys(writable)),
        tmp=os.path.realpath(tmp),
        caches=tuple(caches),
        read_only_even_if_missing=tuple(dict.fromkeys([*held, *_real(cwd, read_only)])),
        refused=tuple(dict.fromkeys(refused)),
        deny_read=tuple(dict.fromkeys(_real(cwd, deny_read))),
        network=network,
    )


def _is_project_name(path: str, workspace: Sequence[str]) -> bool:
    directory, name = os.path.split(path)
    return name in PROJECT_NAMES and directory in workspace


def _real(cwd: str, paths: Sequence[str]) -> list[str]:
    return [os.path.realpath(os.path.join(cwd, os.path.expanduser(path))) for path in paths]


def find_protected(root: str, *, is_home: bool = False) -> list[str]:
    """The protected paths of a workspace directory, also those that do not exist."""
    found: list[str] = []
    for name in PROJECT_NAMES:
        path = os.path.join(root, name)
        if name == ".git" and os.path.isdir(path):
            found += _protect_git(os.path.realpath(path))
        else:
            found += _protect(path)
    for name in HOME_NAMES:
        path = os.path.join(root, name)
        if is_home or os.path.lexists(path):
            found += _protect(path)
    return found


def find_git_folders(root: str) -> list[str]:
    """Where git keeps what it knows of a workspace, if that is elsewhere: above it, or in a linked tree."""
    from robota.tools.undo.git import find_repository  # noqa: PLC0415 - with the first command

    repository = find_repository(root)
    folders = () if repository is None else repository.folders
    return [
        folder
        for folder in dict.fromkeys(map(os.path.realpath, folders))
        if ".git" in folder.split("/") and os.path.exists(os.path.join(folder, "HEAD"))
        if not is_inside(folder, root)
    ]


def _protect(path: str) -> list[str]:
    """A link cannot be held in place, only what it leads to."""
    return [os.path.realpath(path)] if os.path.islink(path) else [path]


def _protect_git(directory: str) -> list[str]:
    found = [os.path.join(directory, name) for name in GIT_NAMES]
    for module in _find_git_directories(os.path.join(directory, "modules"), _MODULE_DEPTH):
        found += [os.path.join(module, name) for name in GIT_NAMES]
    for worktree in _subdirectories(os.path.join(directory, "worktrees")):
        found += [os.path.join(worktree, name) for name in ("commondir", "config.worktree")]
    return found


def _find_git_directories(parent: str, depth: int) -> Iterator[str]:
    """The git directories of submodules, whose names may hold slashes and which may have their own."""
    if depth == 0:
        return
    for directory in _subdirectories(parent):
        if os.path.lexists(os.path.join(directory, "HEAD")):
            yield directory
            yield from _find_git_directories(os.path.join(directory, "modules"), depth - 1)
        else:
            yield from _find_git_directories(directory, depth - 1)


def _subdirectories(parent: str) -> list[str]:
    try:
        with os.scandir(parent) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


# --- caches --------------------------------------------------------------------------------------------

_HOMES = (
    ("XDG_CACHE_HOME", ".cache", ("",)),
    ("npm_config_cache", ".npm", ("",)),
    ("CARGO_HOME", ".cargo", ("registry", "git")),
    ("GOPATH", "go", ("pkg",)),
)
"""The variable that moves it, where it is in the home directory, which parts of it are a cache."""
_OTHERS = (
    ".gradle/caches", ".gradle/daemon", ".gradle/native", ".gradle/wrapper", ".m2/repository",
    ".nuget/packages", ".bun/install/cache", ".yarn/berry", ".local/share/pnpm",
)  # fmt: skip
_NAMED = (
    "PIP_CACHE_DIR", "UV_CACHE_DIR", "GOCACHE", "GOMODCACHE", "POETRY_CACHE_DIR", "PRE_COMMIT_HOME",
    "YARN_CACHE_FOLDER", "CCACHE_DIR", "SCCACHE_DIR", "DENO_DIR",
)  # fmt: skip
"""Variables that name a cache as a whole."""


class Caches(Struct, frozen=True):
    writable: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    """For those that were moved."""


def find_caches(home: str, environment: Mapping[str, str], tmp: str) -> Caches:
    """The caches of this user; parts that are missing in a directory that is there are made."""
    found, variables = [os.path.join(home, name) for name in _OTHERS], dict[str, str]()
    found += [environment[name] for name in _NAMED if environment.get(name)]
    for variable, name, parts in _HOMES:
        place = environment.get(variable) or os.path.join(home, name)
        if os.path.isdir(place):
            found += [_make(os.path.join(place, part)) for part in parts]
        elif variable not in environment:
            variables[variable] = _make(os.path.join(tmp, "caches", name.lstrip(".")))
    real = [os.path.realpath(path) for path in found if os.path.isabs(path) and os.path.isdir(path)]
    return Caches(tuple(path for path in dict.fromkeys(real) if not is_inside(home, path)), variables)


def _make(path: str) -> str:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError:  # then it cannot be written either, and is left out
        return path
    return path
