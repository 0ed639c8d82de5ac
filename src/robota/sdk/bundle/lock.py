"""`plugins.lock.json`: the hash of every plugin as it was when somebody agreed to what it runs.

A plugin whose files have changed since is not loaded until somebody has looked at it again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from robota.core.jsontext import encode
from robota.core.messages import Json
from robota.sdk.bundle.bundles import LOCK
from robota.sdk.bundle.ledger import Ledger
from robota.sdk.bundle.names import BundleError

MAX_FILES = 20_000
MAX_BYTES = 200 * 1024 * 1024
_LEFT_OUT = frozenset((".git",))
_CHUNK = 1 << 20


class Approval(Struct, frozen=True, kw_only=True, rename="camel"):
    """What somebody agreed to."""

    hash: str
    version: str = ""
    source: str = ""
    """Where the plugin came from, as it was shown."""
    commit: str = ""
    approved_at: str = ""


class BundleLock:
    """The lock file of one directory of plugins."""

    def __init__(self, plugins_dir: str | os.PathLike[str]) -> None:
        path = os.path.join(os.fspath(plugins_dir), LOCK)
        self._ledger = Ledger(path, Approval, "enable each plugin again")
        self.path, self.read, self.forget = path, self._ledger.read, self._ledger.drop

    def approve(self, id: str, approval: Approval) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._ledger.put(id, replace(approval, approved_at=now))


def hash_bundle(root: str, entry: Mapping[str, Json]) -> str:
    """Of everything that a plugin consists of: names, contents, which files can be run, and what its
    marketplace adds. Links count by where they lead, and lead nowhere outside when files are read."""
    total = hashlib.sha256(encode(dict(entry)) if entry else b"")
    count = size = 0
    for place, directories, files in os.walk(root):
        directories[:] = sorted(name for name in directories if name not in _LEFT_OUT)
        links = [name for name in directories if os.path.islink(os.path.join(place, name))]
        for name in sorted((*files, *links)):
            path = os.path.join(place, name)
            facts = os.lstat(path)
            count, size = count + 1, size + facts.st_size
            if count > MAX_FILES or size > MAX_BYTES:
                raise BundleError(
                    f"{root} is too large for a plugin: at most {MAX_FILES:,} files and {MAX_BYTES >> 20} MB."
                )
            shown = os.path.relpath(path, root).encode("utf-8", "surrogateescape")
            total.update(b"%d:%s" % (len(shown), shown))
            total.update(_hash_file(path, facts))
    return f"sha256:{total.hexdigest()}"


def _hash_file(path: str, facts: os.stat_result) -> bytes:
    if stat.S_ISLNK(facts.st_mode):
        return b"l" + hashlib.sha256(os.readlink(path).encode("utf-8", "surrogateescape")).digest()
    if not stat.S_ISREG(facts.st_mode):
        raise BundleError(f"{path} is neither a file nor a directory, which no plugin needs: remove it.")
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(_CHUNK):
            digest.update(data)
    return (b"x" if facts.st_mode & 0o100 else b"f") + digest.digest()
