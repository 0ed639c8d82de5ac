"""Gets a source onto the disk: a repository without its history, an archive, a directory as it lies there.

Nothing of what comes is run: git gets no hooks, filters, submodules, prompts or other protocols, and one time
limit for all.
"""

from __future__ import annotations

import hashlib
import os

import anyio
from msgspec import Struct

from robota.core.plain_text import clip
from robota.core.process import clean_environment, run_process
from robota.core.sync import run_sync
from robota.sdk.bundle.archive import find_top, unpack
from robota.sdk.bundle.download import FETCH_SECONDS, Tell, download, say_nothing
from robota.sdk.bundle.names import BundleError
from robota.sdk.bundle.source import Source

_GIT = (
    "git", "--no-pager", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false",
    "-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false", "-c", "protocol.ext.allow=never",
    "-c", "filter.lfs.smudge=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false",
    "-c", "advice.detachedHead=false", "-c", "init.defaultBranch=main", "-c", "gc.auto=0",
    "-c", "fetch.unpackLimit=1", "-c", "transfer.fsckObjects=true",
)  # fmt: skip
_SAID = 600


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
    if source.kind == "archive":
        return _unpack(run_sync(download(source, tell, near)), source, into)
    commit = run_sync(_clone(source, into))
    root = os.path.join(into, *source.path.split("/")) if source.path else into
    real = os.path.realpath(into)
    if os.path.realpath(root) != real and not os.path.realpath(root).startswith(real + os.sep):
        raise BundleError(f"{source.path!r} leads out of {source.location}: refused.")
    if not os.path.isdir(root):
        raise BundleError(f"{source.location} has no directory {source.path!r}.")
    return Fetched(root, into, commit)


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


def _look_at(source: Source) -> Fetched:
    if not os.path.isdir(source.location):
        raise BundleError(
            f"{source.location} is not there any more: restore the directory, or remove its source."
        )
    return Fetched(source.location, source.location)


# --- git ----------------------------------------------------------------------------------------------


async def _clone(source: Source, into: str) -> str:
    """Check a repository out; which commit it is."""
    wanted, commit = source.sha or source.ref or "HEAD", ""
    with anyio.move_on_after(FETCH_SECONDS) as scope:
        await _git(into, "init", "--quiet", "--template=")
        fetching = ("fetch", "--quiet", "--depth", "1", "--no-tags", "--no-write-fetch-head")
        await _git(into, *fetching, source.address, f"+{wanted}:refs/robota/fetched", source=source)
        await _git(into, "checkout", "--quiet", "--detach", "refs/robota/fetched", source=source)
        commit = await _git(into, "rev-parse", "HEAD")
    if scope.cancelled_caught:
        raise BundleError(f"{source.describe()} did not come within {FETCH_SECONDS:g} s: try again later.")
    if source.sha and not commit.startswith(source.sha.lower()):
        raise BundleError(f"{source.describe()} is not the commit it has to be, but {commit}: refused.")
    return commit


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
