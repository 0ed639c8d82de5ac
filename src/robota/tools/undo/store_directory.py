"""The directory of an undo store: made private, locked while it is used, with the caches of what was read."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

from msgspec import Struct

from robota.core.errors import StorageError
from robota.core.private_directory import make_private_directories
from robota.tools.files.directory import SystemCalls, open_descriptor, write_all
from robota.tools.undo.packs import CREATE
from robota.tools.undo.snapshot import HashCache, decode_cache

_PARTS = ("", "/blobs", "/caches", "/running", "/tmp")
_LOCK_FILE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class StoreDirectory(Struct, eq=False):
    path: str
    system: SystemCalls
    _caches: dict[str, HashCache] = {}

    @property
    def temporary(self) -> str:
        return f"{self.path}/tmp"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the store, among threads and processes."""
        try:
            self._prepare()
            descriptor = os.open(f"{self.path}/lock", _LOCK_FILE, 0o600)
        except OSError as error:
            raise StorageError(f"The undo store cannot be used: {error.strerror} ({self.path})") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def mark_running(self, entry_id: str) -> int:
        """A descriptor that stands for a running call: it closes with the process, whatever ends that."""
        descriptor = os.open(self._running_path(entry_id), _LOCK_FILE, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor

    def unmark_running(self, entry_id: str, descriptor: int) -> None:
        with suppress(OSError):
            os.unlink(self._running_path(entry_id))
        os.close(descriptor)

    def is_running(self, entry_id: str) -> bool:
        return _is_locked(self._running_path(entry_id))

    def cache_of(self, workspace: str) -> HashCache:
        if workspace not in self._caches:
            self._caches[workspace] = HashCache()
            with suppress(OSError), open(self._cache_path(workspace), "rb") as file:
                self._caches[workspace] = decode_cache(file.read())
        return self._caches[workspace]

    def save_cache(self, workspace: str) -> None:
        """Without care for durability: a cache that is lost or damaged costs time only."""
        cache = self._caches[workspace]
        if not cache.changed:
            return
        temporary = f"{self.temporary}/{os.urandom(8).hex()}"
        with open_descriptor(self.system, temporary, CREATE, 0o600) as descriptor:
            write_all(self.system, descriptor, cache.encode())
        self.system.replace(temporary, self._cache_path(workspace))
        cache.changed = False

    def forget_caches(self) -> None:
        """What this process remembers, when another one may have removed contents."""
        self._caches.clear()

    def remove_caches(self) -> None:
        self.forget_caches()
        for file in os.scandir(f"{self.path}/caches"):
            self.system.unlink(file.path)

    def remove_leftovers(self) -> None:
        for file in os.scandir(self.temporary):
            self.system.unlink(file.path)
        for file in os.scandir(f"{self.path}/running"):
            if not _is_locked(file.path):
                self.system.unlink(file.path)

    def _prepare(self) -> None:
        for part in _PARTS:
            path = self.path + part
            try:
                facts = os.lstat(path)
            except FileNotFoundError:
                make_private_directories(path)
                facts = os.lstat(path)
            if stat.S_IMODE(facts.st_mode) != 0o700:
                os.chmod(path, 0o700)

    def _cache_path(self, workspace: str) -> str:
        return f"{self.path}/caches/{_file_name(workspace)}"

    def _running_path(self, entry_id: str) -> str:
        return f"{self.path}/running/{_file_name(entry_id)}"


def _file_name(text: str) -> str:
    return sha256(os.fsencode(text)).hexdigest()[:32]


def _is_locked(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
