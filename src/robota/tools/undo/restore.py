"""Putting paths back.

First what is in the way goes, then directories, links and files come, times last. Nothing is removed that is
not on the list: a directory goes only when it is empty. A link that took the place of a directory is never
followed. A file is replaced in one step; many of them are brought to the disk together before they are.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from robota.core.errors import StorageError
from robota.tools.files.directory import SystemCalls, open_descriptor, write_all
from robota.tools.undo.blobs import BlobStore
from robota.tools.undo.packs import CREATE
from robota.tools.undo.state import PathState, has_same_content

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)


class Way(Struct):
    system: SystemCalls
    held: list[tuple[bytes, int]] = []
    """The directory that was used last and those above it: the next path is mostly near."""

    def to(self, path: bytes) -> tuple[int, bytes]:
        """The directory of a path, open until the next call, and the last name."""
        head, _, name = path.rpartition(b"/")
        if not self.held or self.held[-1][0] != head:
            self._lead_to(head or b"/")
        return self.held[-1][1], name

    def _lead_to(self, path: bytes) -> None:
        held = self.held
        while held and held[-1][0] not in (b"/", path) and not path.startswith(held[-1][0] + b"/"):
            self.system.close(held.pop()[1])
        if not held:
            held.append((b"/", self.system.open(b"/", _FOLDER)))
        above, descriptor = held[-1]
        for part in path[len(above) :].split(b"/"):
            if part:
                above = os.path.join(above, part)
                descriptor = self.system.open(part, _FOLDER, dir_fd=descriptor)
                held.append((above, descriptor))

    def let_go(self) -> None:
        """Other directories may have the names of those that are held."""
        while self.held:
            self.system.close(self.held.pop()[1])


_IN_PLACE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OWNER_MAY_ALL = 0o700
_TOGETHER = 8192
"""So many files wait beside their names at most."""
_HOLE = bytes(4096)


class Step(Struct, frozen=True):
    """A path on its way from what it is now to what it was."""

    path: bytes
    now: PathState | None
    then: PathState | None
    mtime_ns: int
    """The time it gets: of a directory that others used since then, the one it has."""


class Restoration(Struct, eq=False):
    """Carries out steps; what cannot be done is reported, and the rest is done nevertheless."""

    blobs: BlobStore
    system: SystemCalls
    leaders: Mapping[bytes, bytes]
    """Names of files that had several, each with the one by which its file is found."""
    way: Way
    away: Way
    problems: dict[bytes, str] = {}
    _staged: dict[bytes, bytes] = {}
    """Files that are written and do not have their names yet; the names they have beside those."""
    _opened: dict[bytes, int] = {}
    _times: dict[bytes, int] = {}

    def carry_out(self, steps: Sequence[Step]) -> None:
        upwards = sorted(steps, key=lambda step: step.path, reverse=True)
        downwards = upwards[::-1]
        self._note_parents(downwards)
        self._each(upwards, self._clear, lambda step: step.now is not None and not _may_stay(step))
        self._each(downwards, self._make_directory, lambda step: _becomes(step, "directory"))
        kinds = ("file", "link", "pipe", "special")
        try:
            self._each(downwards, self._make, lambda s: _becomes(s, *kinds) and s.path not in self.leaders)
            self._settle()
            self._each(downwards, self._link, lambda step: step.path in self.leaders)
            self._settle()
        finally:
            self._discard()
        self._each(upwards, self._finish_directory, lambda step: _becomes(step, "directory"))
        self._close_parents({step.path for step in steps})

    def _each(
        self, steps: Sequence[Step], act: Callable[[Step], None], wanted: Callable[[Step], bool]
    ) -> None:
        try:
            for step in steps:
                if wanted(step) and step.path not in self.problems:
                    try:
                        act(step)
                    except (OSError, StorageError) as error:
                        self.problems[step.path] = getattr(error, "strerror", None) or str(error)
                        self._let_go()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self.way.let_go()
        self.away.let_go()

    def _clear(self, step: Step) -> None:
        folder, name = self.way.to(step.path)
        if step.now is not None and step.now.kind == "directory":
            self.system.rmdir(name, dir_fd=folder)
        else:
            self.system.unlink(name, dir_fd=folder)

    def _make_directory(self, step: Step) -> None:
        folder, name = self.way.to(step.path)
        if step.now is None or step.now.kind != "directory":
            self.system.mkdir(name, _OWNER_MAY_ALL, dir_fd=folder)
        elif step.now.mode & _OWNER_MAY_ALL != _OWNER_MAY_ALL:
            self.system.chmod(name, step.now.mode | _OWNER_MAY_ALL, dir_fd=folder)

    def _make(self, step: Step) -> None:
        assert step.then is not None
        folder, name = self.way.to(step.path)
        if has_same_content(step.now, step.then) and not _lost_holes(step):
            self._set_facts(folder, name, step)
        elif step.then.kind == "link":
            self.system.symlink(step.then.target or b"", name, dir_fd=folder)
            self._set_facts(folder, name, step)
        elif step.then.kind == "pipe":
            self.system.mkfifo(name, dir_fd=folder)
            self._set_facts(folder, name, step)
        elif step.then.kind == "special":
            raise StorageError("sockets and devices are not saved")
        elif self._is_same_file(folder, name, step.then):
            with open_descriptor(self.system, name, _IN_PLACE, dir_fd=folder) as descriptor:
                self.system.ftruncate(descriptor, 0)  # also what takes the place of its holes
                self._fill(descriptor, step.then)
                self.system.fsync(descriptor)
            self._set_facts(folder, name, step)
        else:
            self._replace(folder, step.path, step.then)

    def _is_same_file(self, folder: int, name: bytes, then: PathState) -> bool:
        """Whether the file still has other names, whose content is restored with this one's."""
        if not then.inode:
            return False
        with suppress(FileNotFoundError):
            facts = self.system.stat(name, dir_fd=folder, follow_symlinks=False)
            return stat.S_ISREG(facts.st_mode) and facts.st_ino == then.inode and facts.st_nlink > 1
        return False

    def _replace(self, folder: int, path: bytes, then: PathState) -> None:
        temporary = _temporary_name()
        self._staged[path] = temporary
        with open_descriptor(self.system, temporary, CREATE, 0o600, dir_fd=folder) as descriptor:
            self._fill(descriptor, then)
            facts = self.system.fstat(descriptor)
            if (facts.st_uid, facts.st_gid) != (then.uid, then.gid):
                self._own(temporary, folder, then)
            self.system.fchmod(descriptor, then.mode)
            self.system.utime(descriptor, ns=(then.mtime_ns, then.mtime_ns))
        if len(self._staged) >= _TOGETHER:
            self._settle()

    def _settle(self) -> None:
        """Give the files that were written their names."""
        whole = [path for path in self._staged if path not in self.problems]
        self.blobs.bring_to_disk([os.path.join(os.path.dirname(path), self._staged[path]) for path in whole])
        for path in whole:
            try:
                folder, name = self.way.to(path)
                self.system.replace(self._staged[path], name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                self.problems[path] = error.strerror or str(error)
                self._let_go()
            else:
                del self._staged[path]
        self._let_go()

    def _discard(self) -> None:
        for path, temporary in self._staged.items():
            with suppress(OSError):
                self.system.unlink(temporary, dir_fd=self.way.to(path)[0])
        self._staged.clear()
        self._let_go()

    def _link(self, step: Step) -> None:
        """Make a name of a file that has others; where that cannot be, it gets a content of its own."""
        leader = self.leaders[step.path]
        try:
            if leader not in self.problems:
                self._link_to(leader, step.path)
                return
        except OSError:  # another disk, or one without such links
            self._let_go()
        self._make(step)

    def _link_to(self, leader: bytes, path: bytes) -> None:
        source, found = self.away.to(leader)
        folder, name = self.way.to(path)
        wanted = self.system.stat(found, dir_fd=source, follow_symlinks=False)
        with suppress(FileNotFoundError):
            if os.path.samestat(wanted, self.system.stat(name, dir_fd=folder, follow_symlinks=False)):
                return
        temporary = _temporary_name()
        self.system.link(found, temporary, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        try:
            self.system.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            self.system.unlink(temporary, dir_fd=folder)
            raise

    def _fill(self, descriptor: int, then: PathState) -> None:
        if then.digest is None:
            raise StorageError("its content was not saved")
        size = 0
        for chunk in self.blobs.chunks(then.digest):
            if then.sparse:
                self._write_around_holes(descriptor, chunk)
            else:
                write_all(self.system, descriptor, chunk)
            size += len(chunk)
        if then.sparse:  # it may end with a hole
            self.system.ftruncate(descriptor, size)

    def _write_around_holes(self, descriptor: int, chunk: bytes) -> None:
        for start in range(0, len(chunk), len(_HOLE)):
            piece = chunk[start : start + len(_HOLE)]
            if piece == _HOLE:
                self.system.lseek(descriptor, len(piece), os.SEEK_CUR)
            else:
                write_all(self.system, descriptor, piece)

    def _set_facts(self, folder: int, name: bytes, step: Step) -> None:
        then = step.then
        assert then is not None
        facts = self.system.stat(name, dir_fd=folder, follow_symlinks=False)
        if (facts.st_uid, facts.st_gid) != (then.uid, then.gid):
            self._own(name, folder, then)
        if then.kind != "link":
            self.system.chmod(name, then.mode, dir_fd=folder)
        times = step.mtime_ns, step.mtime_ns
        self.system.utime(name, ns=times, dir_fd=folder, follow_symlinks=False)

    def _own(self, name: bytes, folder: int, then: PathState) -> None:
        with suppress(PermissionError):  # only root may give a file away
            self.system.chown(name, then.uid, then.gid, dir_fd=folder, follow_symlinks=False)

    def _finish_directory(self, step: Step) -> None:
        self._opened.pop(step.path, None)
        folder, name = self.way.to(step.path)
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
                    self.system.chmod(parent, mode | _OWNER_MAY_ALL)
                    self._opened[parent] = mode

    def _close_parents(self, steps: set[bytes]) -> None:
        for parent, time in sorted(self._times.items(), reverse=True):
            with suppress(OSError):
                if parent not in steps:
                    self.system.utime(parent, ns=(time, time), follow_symlinks=False)
        for parent, mode in sorted(self._opened.items(), reverse=True):
            with suppress(OSError):
                self.system.chmod(parent, mode)


def _temporary_name() -> bytes:
    return b".robota-%s.tmp" % os.urandom(8).hex().encode()


def _lost_holes(step: Step) -> bool:
    return step.then is not None and step.now is not None and step.then.sparse and not step.now.sparse


def _becomes(step: Step, *kinds: str) -> bool:
    return step.then is not None and step.then.kind in kinds


def _may_stay(step: Step) -> bool:
    """Whether what is there now need not be removed before the old state is made."""
    if step.now is None or step.then is None:
        return False
    if step.then.kind == "file":
        return step.now.kind in ("file", "link")  # the rename takes its place
    return has_same_content(step.now, step.then)
