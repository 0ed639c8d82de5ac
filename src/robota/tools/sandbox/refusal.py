"""What a command was refused, looked at when it has ended: names it must not make, and what it said itself.

A file that is missing cannot be covered by a mount without being seen (`ls -a`, `git clean`), so for a
command that somebody waits for nothing is put in its place. What the command made there is renamed when it
ends: it is lost to nobody, and read by no program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from robota._lazy_pattern import lazy_pattern
from robota.core.permissions.paths import is_inside

if TYPE_CHECKING:
    from robota.core.process import ProcessResult
    from robota.tools.sandbox.policy import SandboxPolicy
    from robota.tools.sandbox.sandbox import Backend

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


# --- what the model is told ----------------------------------------------------------------------------

_LINES = 3
_WIDTH = 200
_WRITES = {
    "bubblewrap": "Read-only file system|EROFS|Device or resource busy|EBUSY|Operation not permitted|EPERM",
    "landlock": "Permission denied|EACCES|Operation not permitted|EPERM",
}
_NETWORK = (
    "Network is unreachable|ENETUNREACH|[Cc]ould not resolve|Temporary failure in name resolution|EAI_AGAIN"
    "|Name or service not known|Failed to resolve|ENOTFOUND|getaddrinfo"
)
"""How programs say that something was not to be had; a sandbox itself can only return an error number."""


def find_refusals(result: ProcessResult, backend: Backend, policy: SandboxPolicy) -> list[str]:
    """Lines of the output that speak of a refusal: of a command that succeeded only those on stderr."""
    pattern = _WRITES[backend] if policy.network == "on" else f"{_WRITES[backend]}|{_NETWORK}"
    text = result.stderr if result.exit_code == 0 else f"{result.stdout}\n{result.stderr}"
    found = dict.fromkeys(line.strip()[:_WIDTH] for line in text.split("\n") if re.search(pattern, line))
    return list(found)[-_LINES:]


def describe(backend: Backend, policy: SandboxPolicy) -> str:
    """The facts in one line."""
    places = [path for path in policy.writable if path not in policy.caches]
    facts = [backend, f"writable: {', '.join(places)}{', caches' if policy.caches else ''}"]
    if backend == "landlock" and (closed := _closed(policy)):
        facts.append(f"nothing can be made, renamed or removed directly in {', '.join(closed)}")
    return "; ".join([*facts, f"network: {policy.network}"])


def _closed(policy: SandboxPolicy) -> list[str]:
    """Directories with something to protect in them, which Landlock cannot except."""
    found: set[str] = set()
    for path in policy.read_only_even_if_missing:
        above = os.path.dirname(path)
        while any(is_inside(above, root) for root in policy.writable) and os.path.isdir(above):
            found.add(above)
            above = os.path.dirname(above)
    return sorted(found)
