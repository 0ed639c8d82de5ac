"""Paths below `/proc`: entries that lead elsewhere, and those that show what a process holds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from robota.core.permissions.globs import ANY_TEXT, Item, compile_glob, may_match

_LEADING = re.compile(r"/proc/(?P<who>[^/]+)(?:/task/[^/]+)?/(?P<what>root|cwd|fd|map_files)(?P<rest>/.*)?\Z")
_OWN = frozenset({"self", "thread-self"})
_HELD = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?(?:environ|mem)\Z")
_HELD_GLOBS = (compile_glob("/proc/*/environ"), compile_glob("/proc/*/mem"))


def leave_processes(path: str, directory: str | None) -> tuple[str | None, bool]:
    """Where a path leads, None when only the process knows, and whether that is certain."""
    found = _LEADING.match(path)
    if found is None:
        return path, True
    rest, own = found["rest"] or "", found["who"] in _OWN
    if found["what"] == "root":
        return leave_processes(rest or "/", directory)[0], own
    if found["what"] == "cwd" and directory is not None:
        return directory.rstrip("/") + rest, own
    return (path, True) if own and found["what"] == "fd" else (None, False)


def holds_environment(path: str, *, recursive: bool) -> bool:
    """Whether reading the path shows the environment or the memory of a process."""
    if _HELD.match(path):
        return True
    return recursive and (
        path in ("/", "/proc") or re.match(r"/proc/[^/]+(?:/task(?:/[^/]+)?)?\Z", path) is not None
    )


def may_hold_environment(items: Sequence[Item], *, recursive: bool) -> bool:
    """The same of a path of which only parts are known."""
    below = (*items, "/", ANY_TEXT)
    return any(may_match(glob, items) or (recursive and may_match(glob, below)) for glob in _HELD_GLOBS)
