"""A policy as the arguments of bubblewrap: the file system read-only, the workspace mounted over it.

A name can only be covered by a mount if something is there: empty placeholders take the place of missing
protected files that have to be held. Most are empty directories, because git does not see those. Every holder
has a shared lock on each, also across programs; the last one removes them, and one left behind by a program
that was killed is recognised by its time stamp and removed later. Those inside a git directory, where nobody
looks, stay as long as the sandbox: making and removing them takes longer than many a command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Self

from msgspec import Struct

from robota.core.permissions.paths import is_inside
from robota.tools.sandbox.policy import SandboxPolicy

_ISOLATION = ("--unshare-all", "--cap-drop", "ALL")
"""Without capabilities also root can neither unmount nor remount anything."""
_SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run")
_KERNEL = tuple(f"/proc/{name}" for name in ("sys", "sysrq-trigger", "fs", "acpi", "scsi"))
"""Where root may change the kernel's settings by its name alone, without any capability; bubblewrap covers
others by itself."""
_KEPT_OF_RUN = ("/run/current-system", "/run/wrappers")
"""Where some distributions keep their programs."""
_WRITABLE, _FIXED, _READ_ONLY, _HIDDEN = range(4)
"""Kinds of mounts, in the order in which they are made at the same path."""
_MARK_NS = 1_383_031_407_000_000_000
"""The modification time of a placeholder that nobody has touched."""
_ATTEMPTS = 100
_GIT_FILES = {"config": "", "config.worktree": "", "commondir": ".\n", "attributes": ""}
"""In a git directory they must be files that git can read; this `commondir` says what is true anyway."""


def find_bubblewrap(policy: SandboxPolicy) -> str | None:
    """The program, wherever the PATH leads except to places that a command could have written."""
    import shutil  # noqa: PLC0415 - only when a sandbox is wanted

    directories = [
        directory
        for directory in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(directory) and not _is_below(os.path.realpath(directory), policy.writable)
    ]
    return shutil.which("bwrap", path=os.pathsep.join(directories)) if directories else None


def _is_below(path: str, roots: Sequence[str]) -> bool:
    return any(is_inside(path, root) for root in roots)


def wrap_in_bubblewrap(
    program: str, argv: Sequence[str], cwd: str, policy: SandboxPolicy, placeholders: Placeholders
) -> list[str]:
    """The command line that runs `argv` under the policy, as long as the placeholders are held."""
    wrapped = [program, *_ISOLATION, *_SYSTEM]
    kept = list(_KEPT_OF_RUN)
    if policy.network == "on":
        wrapped.append("--share-net")
        kept.append(os.path.realpath("/etc/resolv.conf"))
    for path in _KERNEL if os.geteuid() == 0 else ():
        wrapped += ["--ro-bind-try", path, path]
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


if sys.platform != "win32":  # where no sandbox needs them, the module can be imported all the same
    import fcntl


class Placeholders(Struct, eq=False):
    """Placeholders for paths that are missing; a context manager that lets go of them."""

    _lasting: Placeholders | None = None
    """Who holds those that are in nobody's way."""
    _held: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def cover(self, path: str) -> bool:
        """Put a placeholder where nothing is; whether something is there now that can be covered.

        There is not where we may not write either: then a command could not create it. Raises OSError when it
        cannot be held.
        """
        if self._lasting is not None and _is_out_of_sight(path):
            return self._lasting.cover(path)
        if path in self._held:
            if _is_same(path, self._held[path]):
                return True
            os.close(self._held.pop(path))
        for _ in range(_ATTEMPTS):
            created = _create(path)
            if created is None:
                return os.path.lexists(path)
            if not created and not _is_placeholder(path):
                return True
            descriptor = _lock(path)
            if descriptor is not None:
                self._held[path] = descriptor
                return True
        raise OSError(f"{path} cannot be kept from being created")

    def release(self) -> None:
        held, self._held = self._held, {}
        for path, descriptor in held.items():
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path, descriptor)
            except OSError:  # held by another command, or no longer ours
                continue
            finally:
                os.close(descriptor)


def _is_out_of_sight(path: str) -> bool:
    """In a git directory, and nothing by which git would call it another name."""
    parent, name = os.path.split(path)
    return ".git" in parent.split("/") and name != "commondir"


def _content(path: str) -> str | None:
    """What the placeholder file holds; `None` for a directory."""
    parent, name = os.path.split(path)
    return _GIT_FILES.get(name) if ".git" in parent.split("/") else None


def _create(path: str) -> bool | None:
    """Whether it was created; `None` when it cannot be."""
    content = _content(path)
    try:
        if content is None:
            os.mkdir(path, 0o755)
        else:
            with open(path, "x", encoding="utf-8") as file:
                file.write(content)
        os.utime(path, ns=(_MARK_NS, _MARK_NS))
    except FileExistsError:
        return False
    except OSError:
        return None
    return True


def _is_placeholder(path: str) -> bool:
    try:
        status = os.lstat(path)
        if status.st_mtime_ns != _MARK_NS:
            return False
        content = _content(path)
        return os.listdir(path) == [] if content is None else status.st_size == len(content)
    except OSError:
        return False


def _lock(path: str) -> int | None:
    """A shared lock on what is at the path now; `None` if it went away meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    if _is_same(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _remove(path: str, descriptor: int) -> None:
    if _is_same(path, descriptor) and _is_placeholder(path):
        if _content(path) is None:
            os.rmdir(path)
        else:
            os.unlink(path)


def _is_same(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False
