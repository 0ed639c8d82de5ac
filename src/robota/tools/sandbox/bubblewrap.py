"""A policy as the arguments of bubblewrap: the file system read-only, the workspace mounted over it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from robota.core.permissions.paths import is_inside
from robota.tools.sandbox.placeholder import Placeholders
from robota.tools.sandbox.policy import SandboxPolicy

_ISOLATION = ("--unshare-all", "--cap-drop", "ALL")
"""Without capabilities also root can neither unmount nor remount anything."""
_SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run")
_KEPT_OF_RUN = ("/run/current-system", "/run/wrappers")
"""Where some distributions keep their programs."""
_WRITABLE, _FIXED, _READ_ONLY, _HIDDEN = range(4)
"""Kinds of mounts, in the order in which they are made at the same path."""


def find_bubblewrap(policy: SandboxPolicy) -> str | None:
    """The program, wherever the PATH leads except to places that a command could have written."""
    import shutil  # noqa: PLC0415 - only when a sandbox is wanted

    directories = [
        directory
        for directory in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(directory)
        and not any(is_inside(os.path.realpath(directory), root) for root in policy.writable)
    ]
    return shutil.which("bwrap", path=os.pathsep.join(directories)) if directories else None


def wrap_in_bubblewrap(
    program: str, argv: Sequence[str], cwd: str, policy: SandboxPolicy, placeholders: Placeholders
) -> list[str]:
    """The command line that runs `argv` under the policy, as long as the placeholders are held."""
    wrapped = [program, *_ISOLATION, *_SYSTEM]
    kept = list(_KEPT_OF_RUN)
    if policy.network == "on":
        wrapped.append("--share-net")
        kept.append(os.path.realpath("/etc/resolv.conf"))
    for path in kept:
        if is_inside(path, "/run") and os.path.exists(path):
            wrapped += ["--ro-bind", path, path]
    wrapped += ["--bind", policy.tmp, "/tmp"]
    for path, kind in sorted(
        _mounts(policy, placeholders), key=lambda mount: (mount[0].count("/"), mount[1])
    ):
        if kind == _HIDDEN:
            wrapped += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
        else:
            wrapped += ["--ro-bind" if kind == _READ_ONLY else "--bind", path, path]
    return [*wrapped, "--chdir", cwd, "--", *argv]


def _mounts(policy: SandboxPolicy, placeholders: Placeholders) -> set[tuple[str, int]]:
    mounts = {(root, _WRITABLE) for root in policy.writable}
    for path, root in _find_fixed(policy).items():
        if not placeholders.cover(path):
            continue
        mounts.add((path, _READ_ONLY))
        # A directory on the way could be renamed and made anew, unless it is a mount itself.
        above = os.path.dirname(path)
        while is_inside(above, root) and above != root:
            mounts.add((above, _FIXED))
            above = os.path.dirname(above)
    mounts |= {(path, _HIDDEN) for path in policy.deny_read if os.path.exists(path)}
    return mounts


def _find_fixed(policy: SandboxPolicy) -> dict[str, str]:
    """What must not change, each with the directory that could be written; the rest is read-only anyway."""
    fixed: dict[str, str] = {}
    for path in policy.read_only_even_if_missing:
        root = max((root for root in policy.writable if is_inside(path, root)), key=len, default=None)
        found = None if root is None else _nearest_existing(path, root)
        if root is not None and found is not None:
            fixed[found] = root
    return fixed


def _nearest_existing(path: str, root: str) -> str | None:
    """The path, or the topmost directory above it that is missing; `None` where a link or a file is."""
    current = root
    for component in filter(None, path[len(root) :].split("/")):
        if not os.path.isdir(current) or os.path.islink(current):
            return None
        current = os.path.join(current, component)
        if not os.path.lexists(current):
            return current
    return None if os.path.islink(current) else current
