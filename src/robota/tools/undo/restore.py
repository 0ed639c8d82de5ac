"""Putting paths back: first what is in the way goes, then directories, links and files come, times last.

Nothing is removed that is not on the list: a directory goes only when it is empty. A link that took the place
of a directory is never followed. A file is replaced in one step.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct

from robota.core.errors import StorageError
from robota.tools.undo.blobs import BlobStore
from robota.tools.undo.calls import UndoCalls, write_all
from robota.tools.undo.state import PathState, has_same_content

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_PLACE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OWNER_MAY_ALL = 0o700


class Step(Struct, frozen=True):
    """A path on its way from what it is now to what it was."""

    path: bytes
    now: PathState | None
    then: PathState | None
    mtime_ns: int
    """The time it gets: of a directory that others used since then, the one it has."""


class Restoration:
    """Carries out steps; what cannot be done is reported, and the rest is done nevertheless."""

    def __init__(self, blobs: BlobStore, calls: UndoCalls) -> None:
        self._blobs = blobs
        self._calls = calls
        self._opened: dict[bytes, int] = {}
        self._times: dict[bytes, int] = {}
        self.problems: dict[bytes, str] = {}

    def carry_out(self, steps: Sequence[Step]) -> None:
        upwards = sorted(steps, key=lambda step: step.path, reverse=True)
        downwards = upwards[::-1]
        self._note_parents(downwards)
        self._each(upwards, self._clear, lambda step: step.now is not None and not _may_stay(step))
        self._each(downwards, self._make_directory, lambda step: _becomes(step, "directory"))
        self._each(downwards, self._make, lambda step: _becomes(step, "file", "link", "pipe", "special"))
        self._each(upwards, self._finish_directory, lambda step: _becomes(step, "directory"))
        self._close_parents({step.path for step in steps})

    def _each(
        self, steps: Sequence[Step], act: Callable[[Step], None], wanted: Callable[[Step], bool]
    ) -> None:
        for step in steps:
            if wanted(step) and step.path not in self.problems:
                try:
                    act(step)
                except (OSError, StorageError) as error:
                    self.problems[step.path] = getattr(error, "strerror", None) or str(error)

    def _clear(self, step: Step) -> None:
        with self._folder(step.path) as (folder, name):
            if step.now is not None and step.now.kind == "directory":
                self._calls.rmdir(name, dir_fd=folder)
            else:
                self._calls.unlink(name, dir_fd=folder)

    def _make_directory(self, step: Step) -> None:
        with self._folder(step.path) as (folder, name):
            if step.now is None or step.now.kind != "directory":
                self._calls.mkdir(name, _OWNER_MAY_ALL, dir_fd=folder)
            elif step.now.mode & _OWNER_MAY_ALL != _OWNER_MAY_ALL:
                self._calls.chmod(name, step.now.mode | _OWNER_MAY_ALL, dir_fd=folder)

    def _make(self, step: Step) -> None:
        assert step.then is not None
        with self._folder(step.path) as (folder, name):
            if has_same_content(step.now, step.then):
                self._set_facts(folder, name, step)
            elif step.then.kind == "link":
                self._calls.symlink(step.then.target or b"", name, dir_fd=folder)
                self._set_facts(folder, name, step)
            elif step.then.kind == "pipe":
                self._calls.mkfifo(name, dir_fd=folder)
                self._set_facts(folder, name, step)
            elif step.then.kind == "special":
                raise StorageError("sockets and devices are not saved")
            elif self._is_same_file(folder, name, step.then):
                self._write_in_place(folder, name, step.then)
                self._set_facts(folder, name, step)
            else:
                self._replace(folder, name, step.then)

    def _is_same_file(self, folder: int, name: bytes, then: PathState) -> bool:
        """Whether the file still has other names, whose content is restored with this one's."""
        if not then.inode:
            return False
        with suppress(FileNotFoundError):
            facts = self._calls.stat(name, dir_fd=folder, follow_symlinks=False)
            return stat.S_ISREG(facts.st_mode) and facts.st_ino == then.inode and facts.st_nlink > 1
        return False

    def _write_in_place(self, folder: int, name: bytes, then: PathState) -> None:
        descriptor = self._calls.open(name, _IN_PLACE, dir_fd=folder)
        try:
            self._fill(descriptor, then)
        finally:
            self._calls.close(descriptor)

    def _replace(self, folder: int, name: bytes, then: PathState) -> None:
        temporary = os.fsencode(f".robota-{os.urandom(8).hex()}.tmp")
        descriptor = self._calls.open(temporary, _CREATE, 0o600, dir_fd=folder)
        try:
            try:
                self._fill(descriptor, then)
                self._own(temporary, folder, then)
                self._calls.fchmod(descriptor, then.mode)
            finally:
                self._calls.close(descriptor)
            self._calls.utime(temporary, ns=(then.mtime_ns, then.mtime_ns), dir_fd=folder)
            self._calls.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                self._calls.unlink(temporary, dir_fd=folder)
            raise

    def _fill(self, descriptor: int, then: PathState) -> None:
        if then.digest is None:
            raise StorageError("its content was not saved")
        size = 0
        for chunk in self._blobs.chunks(then.digest):
            write_all(self._calls, descriptor, chunk)
            size += len(chunk)
        self._calls.ftruncate(descriptor, size)
        self._calls.fsync(descriptor)

    def _set_facts(self, folder: int, name: bytes, step: Step) -> None:
        then = step.then
        assert then is not None
        self._own(name, folder, then)
        if then.kind != "link":
            self._calls.chmod(name, then.mode, dir_fd=folder)
        times = step.mtime_ns, step.mtime_ns
        self._calls.utime(name, ns=times, dir_fd=folder, follow_symlinks=False)

    def _own(self, name: bytes, folder: int, then: PathState) -> None:
        facts = self._calls.stat(name, dir_fd=folder, follow_symlinks=False)
        if (facts.st_uid, facts.st_gid) != (then.uid, then.gid):
            with suppress(PermissionError):  # only root may give a file away
                self._calls.chown(name, then.uid, then.gid, dir_fd=folder, follow_symlinks=False)

    def _finish_directory(self, step: Step) -> None:
        self._opened.pop(step.path, None)
        with self._folder(step.path) as (folder, name):
            self._set_facts(folder, name, step)

    def _note_parents(self, steps: Sequence[Step]) -> None:
        """Remember the times of directories we are going to write in, and make those writable we may."""
        for parent in dict.fromkeys(os.path.dirname(step.path) for step in steps):
            with suppress(OSError):
                facts = os.lstat(parent)
                if not stat.S_ISDIR(facts.st_mode):
                    continue
                self._times[parent] = facts.st_mtime_ns
                if not os.access(parent, os.W_OK | os.X_OK):
                    mode = stat.S_IMODE(facts.st_mode)
                    self._calls.chmod(parent, mode | _OWNER_MAY_ALL)
                    self._opened[parent] = mode

    def _close_parents(self, steps: set[bytes]) -> None:
        for parent, time in sorted(self._times.items(), reverse=True):
            with suppress(OSError):
                if parent not in steps:
                    self._calls.utime(parent, ns=(time, time), follow_symlinks=False)
        for parent, mode in sorted(self._opened.items(), reverse=True):
            with suppress(OSError):
                self._calls.chmod(parent, mode)

    @contextmanager
    def _folder(self, path: bytes) -> Iterator[tuple[int, bytes]]:
        """The directory of a path, opened name by name without following a link, and the last name."""
        head, name = os.path.split(path)
        descriptor = self._calls.open(b"/", _FOLDER)
        try:
            for part in head.split(b"/"):
                if part:
                    inner = self._calls.open(part, _FOLDER, dir_fd=descriptor)
                    self._calls.close(descriptor)
                    descriptor = inner
            yield descriptor, name
        finally:
            self._calls.close(descriptor)


def _becomes(step: Step, *kinds: str) -> bool:
    return step.then is not None and step.then.kind in kinds


def _may_stay(step: Step) -> bool:
    """Whether what is there now need not be removed before the old state is made."""
    if step.now is None or step.then is None:
        return False
    if step.then.kind == "file":
        return step.now.kind in ("file", "link")  # the rename takes its place
    return has_same_content(step.now, step.then)
