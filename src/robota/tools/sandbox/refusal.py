"""Names that a command must not make, looked at when it has ended.

A file that is missing cannot be covered by a mount without being seen (`ls -a`, `git clean`), so for a
command that somebody waits for nothing is put in its place. What the command made there is renamed when it
ends: it is lost to nobody, and read by no program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from robota._lazy_pattern import lazy_pattern

_TAME_LINE = lazy_pattern(
    r"""\s*(?:[\#;].*)?
    |\s*\[(?:core|user|init|pull|(?:remote|branch)\ "[^"\\]*")\]
    |\s*(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks
        |name|email|url|fetch|remote|merge|rebase|defaultbranch)\ =\ [^\\]*""",
    re.VERBOSE | re.IGNORECASE,
)
"""What `git init` and `git clone` write, and who commits: nothing that names a program or another file."""
_CONFIGURATION_LIMIT = 64 * 1024
_LOUD = ("commondir", "config.worktree", "modules", "worktrees")


def take_back(paths: Iterable[str]) -> list[tuple[str, str]]:
    """Rename what came to be at these paths; from where to where. Raises OSError if it has to stay."""
    moved = []
    for path in paths:
        if not os.path.lexists(path) or is_tame_repository(path):
            continue
        place, number = f"{path}.refused", 1
        while os.path.lexists(place):
            number += 1
            place = f"{path}.refused-{number}"
        os.rename(path, place)
        moved.append((path, place))
    return moved


def is_tame_repository(path: str) -> bool:
    """Whether it is a git directory fresh from `git init` or `git clone`: no hooks, no programs in its
    configuration."""
    if os.path.basename(path) != ".git" or os.path.islink(path) or not os.path.isdir(path):
        return False
    if any(os.path.lexists(os.path.join(path, name)) for name in _LOUD):
        return False
    hooks, configuration = os.path.join(path, "hooks"), os.path.join(path, "config")
    if os.path.islink(hooks) or os.path.islink(configuration):
        return False
    try:
        if any(not name.endswith(".sample") for name in (os.listdir(hooks) if os.path.isdir(hooks) else ())):
            return False
        with open(configuration, encoding="utf-8") as file:
            text = file.read(_CONFIGURATION_LIMIT + 1)
    except (OSError, UnicodeDecodeError):
        return False
    return len(text) <= _CONFIGURATION_LIMIT and all(_TAME_LINE.fullmatch(line) for line in text.split("\n"))
