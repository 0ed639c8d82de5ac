"""Gets a source onto the disk: a repository without its history, an archive, a directory as it lies there.

Nothing of what comes is run: git gets no hooks, filters, submodules, prompts or other protocols, and one time
limit for all.
"""

from __future__ import annotations

import contextlib
import hashlib
import os

import anyio
from anyio import to_thread
from msgspec import Struct

from robota.core.plain_text import clip
from robota.core.process import clean_environment, run_process
from robota.core.sync import run_sync
from robota.sdk.bundle.archive import find_top, unpack
from robota.sdk.bundle.bundles import list_tree
from robota.sdk.bundle.download import FETCH_SECONDS, Tell, download, say_nothing
from robota.sdk.bundle.names import BundleError
from robota.sdk.bundle.source import MANIFEST, Source

_GIT = (
    "git", "--no-pager", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false",
    "-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false", "-c", "protocol.ext.allow=never",
    "-c", "filter.lfs.smudge=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false",
    "-c", "advice.detachedHead=false", "-c", "init.defaultBranch=main", "-c", "gc.auto=0",
    "-c", "fetch.unpackLimit=1", "-c", "transfer.fsckObjects=true",
)  # fmt: skip
_SAID = 600
MAX_REPOSITORY = 1024 * 1024 * 1024
"""Bytes on the disk: what git keeps and the files."""
LOOK_SECONDS = 0.5
"""Between two looks at how much has come."""
TOLD_BYTES = 20_000_000
"""After so many more, whoever waits hears of it."""


class Fetched(Struct, frozen=True):
    """Something that is on the disk now."""

    root: str
    """The directory that was meant."""
    within: str
    """The directory that all of it lies in."""
    commit: str = ""


def fetch(source: Source, into: str, *, tell: Tell = say_nothing, near: str = "") -> Fetched:
    """Get a source into the directory `into`, which is made; blocks. `near` is the host of whoever named it:
    that one may have an address which is not public, since a person chose it."""
    if source.kind == "directory":
        return _look_at(source)
    tell(f"Fetching {source.describe()} …")
    os.makedirs(into)
    if source.kind == "manifest":
        return _keep_manifest(run_sync(download(source, tell, near)), into)
    if source.kind == "archive":
        return _unpack(run_sync(download(source, tell, near)), source, into)
    commit = _fetch_repository(source, into, tell)
    root = os.path.join(into, *source.path.split("/")) if source.path else into
    real = os.path.realpath(into)
    if os.path.realpath(root) != real and not os.path.realpath(root).startswith(real + os.sep):
        raise BundleError(f"{source.path!r} leads out of {source.location}: refused.")
    if not os.path.isdir(root):
        raise BundleError(f"{source.location} has no directory {source.path!r}.")
    return Fetched(root, into, commit)


def _fetch_repository(source: Source, into: str, tell: Tell) -> str:
    try:
        return run_sync(_clone(source, into, tell))
    except BaseExceptionGroup as group:  # of the task that watches and the one that works
        refused, rest = group.split(BundleError)
        if rest is not None or refused is None:
            raise
        raise _first(refused) from None


def _first(group: BaseExceptionGroup[BundleError]) -> BundleError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _unpack(data: bytes, source: Source, into: str) -> Fetched:
    digest = hashlib.sha256(data).hexdigest()
    if source.sha256 and digest != source.sha256.lower():
        raise BundleError(f"{source.describe()} has the hash {digest}, which is not its own: refused.")
    file, content = os.path.join(into, "archive"), os.path.join(into, "content")
    with open(file, "wb") as out:
        out.write(data)
    os.makedirs(content)
    unpack(file, content)
    os.unlink(file)
    return Fetched(find_top(content), content, digest)


def _keep_manifest(data: bytes, into: str) -> Fetched:
    """A marketplace that is its manifest alone: its plugins come from elsewhere."""
    path = os.path.join(into, MANIFEST)
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as out:
        out.write(data)
    return Fetched(into, into, hashlib.sha256(data).hexdigest())


def _look_at(source: Source) -> Fetched:
    if not os.path.isdir(source.location):
        raise BundleError(
            f"There is no directory {source.location}: create it, name another, or remove its source."
        )
    return Fetched(source.location, source.location)


# --- git ----------------------------------------------------------------------------------------------


async def _clone(source: Source, into: str, tell: Tell) -> str:
    """Check a repository out; which commit it is. It may take neither too long nor too much of the disk."""
    commit = ""
    with anyio.move_on_after(FETCH_SECONDS) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(_watch_size, source, into, tell)
            commit = await _check_out(source, into)
            group.cancel_scope.cancel()
    if scope.cancelled_caught:
        raise BundleError(f"{source.describe()} did not come within {FETCH_SECONDS:g} s: try again later.")
    if source.sha and not commit.startswith(source.sha.lower()):
        raise BundleError(f"{source.describe()} is not the commit it has to be, but {commit}: refused.")
    return commit


async def _check_out(source: Source, into: str) -> str:
    wanted = source.sha or source.ref or "HEAD"
    await _git(into, "init", "--quiet", "--template=")
    fetching = ("fetch", "--quiet", "--depth", "1", "--no-tags", "--no-write-fetch-head")
    await _git(into, *fetching, source.address, f"+{wanted}:refs/robota/fetched", source=source)
    await _git(into, "checkout", "--quiet", "--detach", "refs/robota/fetched", source=source)
    commit = await _git(into, "rev-parse", "HEAD")
    _check_size(source, await to_thread.run_sync(measure, into))
    return commit


async def _watch_size(source: Source, into: str, tell: Tell) -> None:
    """git itself knows no limit."""
    told = 0
    while True:
        await anyio.sleep(LOOK_SECONDS)
        size = await to_thread.run_sync(measure, into)
        _check_size(source, size)
        if size - told >= TOLD_BYTES:
            told = size
            tell(f"Fetching {source.describe()}: {size / 1e6:.0f} MB so far")


def _check_size(source: Source, size: int) -> None:
    if size > MAX_REPOSITORY:
        raise BundleError(f"{source.describe()} is larger than {MAX_REPOSITORY >> 20} MB: refused.")


def measure(root: str) -> int:
    """Bytes of all files below a directory, some of which may vanish meanwhile."""
    size = 0
    for path in list_tree(root, with_git=True):
        with contextlib.suppress(OSError):
            size += os.lstat(path).st_size
    return size


async def _git(cwd: str, *arguments: str, source: Source | None = None) -> str:
    result = await run_process([*_GIT, *arguments], cwd=cwd, env=_environment(source), timeout=FETCH_SECONDS)
    if result.error is not None:
        raise BundleError(
            f"git cannot be started ({result.error}): install it, or use an archive or a directory."
        )
    if result.exit_code != 0:
        said = clip(" ".join((result.stderr or result.stdout).split()), _SAID)
        where = "" if source is None else f" for {source.describe()}"
        raise BundleError(f"git {arguments[0]} failed{where}: {said or 'it gave no reason'}")
    return result.stdout.strip()


def _environment(source: Source | None) -> dict[str, str]:
    plain = {name: value for name, value in clean_environment().items() if not name.startswith("GIT_")}
    scheme = (
        "" if source is None else source.address.partition("://")[0] if "://" in source.address else "ssh"
    )
    return plain | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
        "GIT_ALLOW_PROTOCOL": scheme,
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_LAZY_FETCH": "1",
    }
