"""What the model is told of the sandbox after a command: what was refused, and what would be allowed."""

from __future__ import annotations

import os
import re

from robota.core.permissions.paths import is_inside
from robota.core.process import ProcessResult
from robota.tools.sandbox.policy import SandboxPolicy
from robota.tools.sandbox.sandbox import Backend

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
