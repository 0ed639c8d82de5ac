"""Where package managers and compilers keep what they can fetch or build again.

A cache that is there may be written from the sandbox; one that is not is moved into the private temporary
directory, because the home directory may not be written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from robota.core.permissions.paths import is_inside

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
