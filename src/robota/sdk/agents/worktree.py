"""A working tree of its own for a subagent: made from HEAD, removed if nothing came of it, else kept.

`WorktreeCreate` hooks make it instead where some are configured, for projects that are not kept in git.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec import Struct

from robota.core.errors import ConfigurationError, RobotaError
from robota.core.messages import JsonObject
from robota.sdk.git import run_git
from robota.sessions.hooks import HookPort

ATTEMPTS = 5
"""How many names are tried when one is taken."""
GIT_SECONDS = 120.0
_STATUS = ("status", "--porcelain", "--ignore-submodules=dirty")
"""Git would look into submodules by another git, which obeys their configuration."""


class WorktreeError(RobotaError, code="WORKTREE_ERROR", category="user"):
    """There is no working tree to work in."""


class WorktreeOptions(Struct, frozen=True, kw_only=True):
    """What settings say about new trees."""

    base_ref: str = "HEAD"
    symlink_directories: tuple[str, ...] = ()
    """Shared with the tree it is made from."""
    sparse_paths: tuple[str, ...] = ()
    """The only directories that are checked out; none for all."""


class Worktree(Struct, frozen=True, kw_only=True):
    path: str
    """Its top."""
    cwd: str
    """The directory in it that corresponds to that of the session."""
    task: str
    branch: str = ""
    """Empty if a hook made it."""
    base_revision: str = ""
    parent_status: str = ""
    """`dirty` if the session's own tree has changes that are not committed, which this one lacks."""
    top: str = ""
    """The tree it was made from."""
    shared: tuple[str, ...] = ()
    """Links in it that we made."""


async def create_worktree(
    cwd: str,
    task: str,
    hooks: HookPort,
    new_id: Callable[[], str],
    options: WorktreeOptions = WorktreeOptions(),  # noqa: B008 - frozen
) -> Worktree:
    """A new working tree; a `WorktreeError` says why there is none."""
    slug = re.sub(r"[^a-z0-9]+", "-", task.lower()).strip("-")[:32].rstrip("-") or "task"
    if hooks.has("WorktreeCreate"):
        return await _ask_hook(f"{slug}-{_short(new_id)}", hooks)
    top, prefix, revision = await _look_at(cwd, options.base_ref)
    status = "dirty" if await _git(top, *_STATUS) else "clean"
    home = _make_home(top)
    sparse = ["--no-checkout"] if options.sparse_paths else []
    for attempt in range(1, ATTEMPTS + 1):
        name = f"{slug}-{_short(new_id)}"
        path, branch = os.path.join(home, name), f"robota/{name}"
        try:
            await _git(top, "worktree", "add", "--quiet", *sparse, "-b", branch, path, revision)
            break
        except WorktreeError:
            if attempt == ATTEMPTS or not await _is_taken(top, path, branch):
                raise
    if sparse:
        await _git(path, "sparse-checkout", "set", "--", *options.sparse_paths)
        await _git(path, "checkout", "--quiet")
    return Worktree(
        path=path,
        cwd=_below(path, prefix),
        task=slug,
        branch=branch,
        base_revision=revision,
        parent_status=status,
        top=top,
        shared=_share(top, path, options.symlink_directories),
    )


async def _is_taken(top: str, path: str, branch: str) -> bool:
    return _exists(path) or bool(await _git(top, "branch", "--list", branch))


async def settle_worktree(tree: Worktree, hooks: HookPort) -> JsonObject:
    """Remove a tree in which nothing was done, keep any other; what became of it, for the result."""
    facts: JsonObject = {
        "worktreePath": tree.path,
        "branchName": tree.branch or None,
        "baseRevision": tree.base_revision or None,
        "parentStatus": tree.parent_status or None,
    }
    try:
        clean = await _is_clean(tree)
        if clean:
            await _remove(tree, hooks)
    except WorktreeError as error:
        look = f"Look at it: {error}"
        return facts | {"worktreeStatus": "unknown", "worktreeNextAction": look}
    if clean:
        return facts | {"worktreeStatus": "removed", "worktreeNextAction": "Nothing: it held no changes."}
    where = f"branch {tree.branch}" if tree.branch else "it"
    action = f"Review the changes in {tree.path}, merge {where}, then remove the working tree."
    return facts | {"worktreeStatus": "dirty", "worktreeNextAction": action}


async def _ask_hook(name: str, hooks: HookPort) -> Worktree:
    outcome = await hooks.fire("WorktreeCreate", {"name": name, "tool_input": {"taskId": name}})
    path = outcome.specific.get("worktreePath")
    if outcome.blocked:
        raise WorktreeError(f"The WorktreeCreate hook made no working tree: {outcome.reason}")
    if not isinstance(path, str) or not _is_directory(path):
        raise WorktreeError(
            "The WorktreeCreate hook gave no working tree: its last line must be the absolute path of a "
            f"directory, and it was {str(path or '')!r}."
        )
    try:
        revision = await _git(path, "rev-parse", "--verify", "HEAD")
    except WorktreeError:  # not every project is kept in git
        revision = ""
    return Worktree(path=path, cwd=path, task=name, base_revision=revision)


async def _look_at(cwd: str, base: str) -> tuple[str, str, str]:
    """The top of the repository, where the directory lies in it, and the commit to begin with."""
    try:
        top = await _git(cwd, "rev-parse", "--show-toplevel")
        prefix = await _git(cwd, "rev-parse", "--show-prefix")
    except WorktreeError as error:
        raise WorktreeError(
            f"A working tree of its own needs a git repository, and {cwd} is not in one ({error}). Do "
            "without one, or configure a WorktreeCreate hook."
        ) from error
    if not _exists(os.path.join(top, ".git")):
        raise WorktreeError(f"The repository of {cwd} has its files in {top}: run it without isolation.")
    try:
        return top, prefix, await _git(cwd, "rev-parse", "--verify", "--end-of-options", f"{base}^{{commit}}")
    except WorktreeError as error:
        what = "no commit that a working tree could be made of: commit first"
        if base != "HEAD":
            what = f"no commit {base!r}, as worktree.baseRef says: change the setting"
        raise WorktreeError(f"The repository {top} has {what}.") from error


async def _is_clean(tree: Worktree) -> bool:
    if not tree.base_revision:
        return False  # nobody can tell
    changed = (await _git(tree.path, *_STATUS)).splitlines()
    if set(changed) - {f"?? {name}" for name in tree.shared}:
        return False
    if _exists(os.path.join(tree.path, await _git(tree.path, "rev-parse", "--git-path", "modules"))):
        return False  # what was done in submodules is not looked at
    return await _git(tree.path, "rev-parse", "--verify", "HEAD") == tree.base_revision


async def _remove(tree: Worktree, hooks: HookPort) -> None:
    if tree.branch:
        await _git(tree.top, "worktree", "remove", "--force", tree.path)
        await _git(tree.top, "branch", "--quiet", "-D", tree.branch)
    about: JsonObject = {"taskId": tree.task, "worktreePath": tree.path, "branchName": tree.branch or None}
    await hooks.fire("WorktreeRemove", {"worktree_path": tree.path, "tool_input": about | {"removed": True}})


def _make_home(top: str) -> str:
    """Where the trees are, kept out of what git shows of the one they are in."""
    home = os.path.join(top, ".robota", "worktrees")
    if not _leads_into(home, top):
        raise WorktreeError(f"{home} leads out of the repository: remove the link.")
    try:
        os.makedirs(home, exist_ok=True)
        with suppress(FileExistsError), open(os.path.join(home, ".gitignore"), "x", encoding="utf-8") as file:
            file.write("*\n")  # a link of that name leads elsewhere and is left alone
    except OSError as error:
        raise WorktreeError(f"{home} cannot be written ({error.strerror}).") from error
    return home


def _share(top: str, path: str, names: Iterable[str]) -> tuple[str, ...]:
    """Links to directories that are not worth a copy, such as installed packages."""
    made: list[str] = []
    for name in names:
        there, here = os.path.join(top, name), os.path.join(path, name)
        inside = _leads_into(there, top) and _leads_into(here, path)
        if inside and os.path.isdir(there) and not os.path.lexists(here):
            os.makedirs(os.path.dirname(here), exist_ok=True)
            os.symlink(there, here)
            made.append(name)
    return tuple(made)


def _below(path: str, prefix: str) -> str:
    """The directory of the session in the new tree; the top if it holds nothing that is committed."""
    inside = os.path.join(path, prefix).rstrip(os.sep)
    return inside if os.path.isdir(inside) else path


def _leads_into(path: str, directory: str) -> bool:
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(directory), ""))


def _exists(path: str) -> bool:
    return os.path.lexists(path)


def _is_directory(path: str) -> bool:
    return os.path.isabs(path) and os.path.isdir(path)


def _short(new_id: Callable[[], str]) -> str:
    return re.sub(r"[^a-z0-9]", "", new_id().lower())[-8:]


async def _git(cwd: str, *arguments: str) -> str:
    try:
        result = await run_git(cwd, *arguments, timeout=GIT_SECONDS)
    except ConfigurationError as error:
        raise WorktreeError(str(error)) from error
    if result.error is not None:
        raise WorktreeError(f"git could not be run: {result.error}")
    if result.exit_code != 0:
        said = " ".join(result.stderr.split()) or f"exit code {result.exit_code}"
        raise WorktreeError(f"git {arguments[0]} failed: {said}")
    return result.stdout.strip()
