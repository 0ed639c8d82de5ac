"""Putting paths back: which of the changes of a call are taken back, and how.

First what is in the way goes, then directories, links and files come, times last. Nothing is removed that is
not on the list: a directory goes only when it is empty. A link that took the place of a directory is never
followed. A file is replaced in one step.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Self, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.errors import StorageError
from robota.tools.files.directory import SystemCalls, open_descriptor, write_all
from robota.tools.undo.blobs import CREATE, BlobStore
from robota.tools.undo.journal import Action, KeptPath, PathPreview
from robota.tools.undo.snapshot import HashCache, Scanner
from robota.tools.undo.state import Change, PathState, has_same_content, is_equivalent, is_identical, is_same

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)
_IN_PLACE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OWNER_MAY_ALL = 0o700
_OBJECTS = re.compile(rb"/objects(?=/|\Z)")
Decide: TypeAlias = Callable[[PathPreview], bool]
"""Asked about each conflict: whether to overwrite what is there now."""
_WHY = {
    True: "it was changed after the call",
    False: "the call was cut off, so nobody knows who changed it",
}


class Step(Struct, frozen=True):
    """A path on its way from what it is now to what it was."""

    path: bytes
    now: PathState | None
    then: PathState | None
    mtime_ns: int
    """The time it gets: of a directory that others used since then, the one it has."""


class Restoration(Struct):
    """Carries out steps; what cannot be done is reported, and the rest is done nevertheless."""

    blobs: BlobStore
    system: SystemCalls
    opened: dict[bytes, int] = {}
    times: dict[bytes, int] = {}
    problems: dict[bytes, str] = {}

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
                self.system.rmdir(name, dir_fd=folder)
            else:
                self.system.unlink(name, dir_fd=folder)

    def _make_directory(self, step: Step) -> None:
        with self._folder(step.path) as (folder, name):
            if step.now is None or step.now.kind != "directory":
                self.system.mkdir(name, _OWNER_MAY_ALL, dir_fd=folder)
            elif step.now.mode & _OWNER_MAY_ALL != _OWNER_MAY_ALL:
                self.system.chmod(name, step.now.mode | _OWNER_MAY_ALL, dir_fd=folder)

    def _make(self, step: Step) -> None:
        assert step.then is not None
        with self._folder(step.path) as (folder, name):
            if has_same_content(step.now, step.then):
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
                    self._fill(descriptor, step.then)
                self._set_facts(folder, name, step)
            else:
                self._replace(folder, name, step.then)

    def _is_same_file(self, folder: int, name: bytes, then: PathState) -> bool:
        """Whether the file still has other names, whose content is restored with this one's."""
        if not then.inode:
            return False
        with suppress(FileNotFoundError):
            facts = self.system.stat(name, dir_fd=folder, follow_symlinks=False)
            return stat.S_ISREG(facts.st_mode) and facts.st_ino == then.inode and facts.st_nlink > 1
        return False

    def _replace(self, folder: int, name: bytes, then: PathState) -> None:
        temporary = os.fsencode(f".robota-{os.urandom(8).hex()}.tmp")
        try:
            with open_descriptor(self.system, temporary, CREATE, 0o600, dir_fd=folder) as descriptor:
                self._fill(descriptor, then)
                self._own(temporary, folder, then)
                self.system.fchmod(descriptor, then.mode)
            self.system.utime(temporary, ns=(then.mtime_ns, then.mtime_ns), dir_fd=folder)
            self.system.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                self.system.unlink(temporary, dir_fd=folder)
            raise

    def _fill(self, descriptor: int, then: PathState) -> None:
        if then.digest is None:
            raise StorageError("its content was not saved")
        size = 0
        for chunk in self.blobs.chunks(then.digest):
            write_all(self.system, descriptor, chunk)
            size += len(chunk)
        self.system.ftruncate(descriptor, size)
        self.system.fsync(descriptor)

    def _set_facts(self, folder: int, name: bytes, step: Step) -> None:
        then = step.then
        assert then is not None
        self._own(name, folder, then)
        if then.kind != "link":
            self.system.chmod(name, then.mode, dir_fd=folder)
        times = step.mtime_ns, step.mtime_ns
        self.system.utime(name, ns=times, dir_fd=folder, follow_symlinks=False)

    def _own(self, name: bytes, folder: int, then: PathState) -> None:
        facts = self.system.stat(name, dir_fd=folder, follow_symlinks=False)
        if (facts.st_uid, facts.st_gid) != (then.uid, then.gid):
            with suppress(PermissionError):  # only root may give a file away
                self.system.chown(name, then.uid, then.gid, dir_fd=folder, follow_symlinks=False)

    def _finish_directory(self, step: Step) -> None:
        self.opened.pop(step.path, None)
        with self._folder(step.path) as (folder, name):
            self._set_facts(folder, name, step)

    def _note_parents(self, steps: Sequence[Step]) -> None:
        """Remember the times of directories we are going to write in, and make those writable we may."""
        for parent in dict.fromkeys(os.path.dirname(step.path) for step in steps):
            with suppress(OSError):
                facts = os.lstat(parent)
                if not stat.S_ISDIR(facts.st_mode):
                    continue
                self.times[parent] = facts.st_mtime_ns
                if not os.access(parent, os.W_OK | os.X_OK):
                    mode = stat.S_IMODE(facts.st_mode)
                    self.system.chmod(parent, mode | _OWNER_MAY_ALL)
                    self.opened[parent] = mode

    def _close_parents(self, steps: set[bytes]) -> None:
        for parent, time in sorted(self.times.items(), reverse=True):
            with suppress(OSError):
                if parent not in steps:
                    self.system.utime(parent, ns=(time, time), follow_symlinks=False)
        for parent, mode in sorted(self.opened.items(), reverse=True):
            with suppress(OSError):
                self.system.chmod(parent, mode)

    @contextmanager
    def _folder(self, path: bytes) -> Iterator[tuple[int, bytes]]:
        """The directory of a path, opened name by name without following a link, and the last name."""
        head, name = os.path.split(path)
        descriptor = self.system.open(b"/", _FOLDER)
        try:
            for part in head.split(b"/"):
                if part:
                    inner = self.system.open(part, _FOLDER, dir_fd=descriptor)
                    self.system.close(descriptor)
                    descriptor = inner
            yield descriptor, name
        finally:
            self.system.close(descriptor)


def _becomes(step: Step, *kinds: str) -> bool:
    return step.then is not None and step.then.kind in kinds


def _may_stay(step: Step) -> bool:
    """Whether what is there now need not be removed before the old state is made."""
    if step.now is None or step.then is None:
        return False
    if step.then.kind == "file":
        return step.now.kind in ("file", "link")  # the rename takes its place
    return has_same_content(step.now, step.then)


class Reversal:
    """The changes of a call, seen from the present. `certain`: it was recorded how the call left things."""

    __slots__ = ("_certain", "_changes", "_made", "_now", "_opened", "_system", "kept", "restored")

    def __init__(self, changes: Sequence[Change], system: SystemCalls, *, certain: bool = True) -> None:
        self._changes = changes
        self._system = system
        self._certain = certain
        self._made = frozenset(change.path for change in changes if change.before is None)
        self._now: dict[bytes, PathState] = {}
        self._opened: dict[bytes, int] = {}
        self.restored: tuple[str, ...] = ()
        self.kept: tuple[KeptPath, ...] = ()

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Look at the present; what a call made unreadable for its owner is readable inside the block."""
        self._open()
        try:
            scanner = Scanner(HashCache())
            for change in self._changes:
                scanner.look(change.path)
            self._now = self.with_real_modes(scanner.states)
            yield self
        finally:
            for path, mode in reversed(self._opened.items()):
                with suppress(OSError):
                    self._system.chmod(path, mode)

    def with_real_modes(self, states: dict[bytes, PathState]) -> dict[bytes, PathState]:
        """The states with the modes that the paths have outside the block."""
        return {
            path: msgspec.structs.replace(state, mode=self._opened.get(path, state.mode))
            for path, state in states.items()
        }

    def preview(self) -> tuple[PathPreview, ...]:
        return tuple(self._describe(change) for change in self._changes if self._is_due(change, visible=True))

    def decide(self, overwrite: Decide) -> list[Step]:
        steps: list[Step] = []
        kept: list[KeptPath] = []
        for change in self._changes:
            if not self._is_due(change):
                continue
            if self._is_conflict(change) and not overwrite(self._describe(change)):
                kept.append(KeptPath(os.fsdecode(change.path), _WHY[self._certain]))
            else:
                steps.append(self._step(change))
        self.kept = tuple(kept)
        return steps if self._certain or any(_is_visible(step) for step in steps) else []

    def carry_out(self, steps: Sequence[Step], blobs: BlobStore) -> None:
        restoration = Restoration(blobs, self._system)
        restoration.carry_out(steps)
        failed = restoration.problems
        self.kept += tuple(KeptPath(os.fsdecode(path), reason) for path, reason in sorted(failed.items()))
        done = [step for step in steps if step.path not in failed]
        self.restored = tuple(os.fsdecode(step.path) for step in done if _is_visible(step))
        for step in done:
            self._opened.pop(step.path, None)

    def _open(self) -> None:
        if os.geteuid() == 0:
            return
        for change in self._changes:
            if change.after is None or change.after.kind not in ("file", "directory"):
                continue
            needed = 0o700 if change.after.kind == "directory" else 0o400
            with suppress(OSError):
                mode = stat.S_IMODE(os.lstat(change.path).st_mode)
                if mode == change.after.mode and mode & needed != needed:
                    self._system.chmod(change.path, mode | needed)
                    self._opened[change.path] = mode

    def _is_due(self, change: Change, *, visible: bool = False) -> bool:
        now = self._now.get(change.path)
        if is_identical(change.before, now) or (change.before is None and self._is_object(change.path)):
            return False
        return not visible or Change(change.path, change.before, now).visible

    def _is_object(self, path: bytes) -> bool:
        """Whether it lies among the objects of a git repository that stays.

        They have no owner: a commit made since then may need one that the call happened to write first.
        """
        folders = [path[: found.start()] for found in _OBJECTS.finditer(path)]
        return any(
            folder + b"/HEAD" not in self._made
            and os.path.lexists(folder + b"/HEAD")
            and os.path.isdir(folder + b"/refs")
            for folder in folders
        )

    def _is_conflict(self, change: Change) -> bool:
        now = self._now.get(change.path)
        return not is_same(now, change.before) and not (self._certain and is_equivalent(now, change.after))

    def _step(self, change: Change) -> Step:
        now, after = self._now.get(change.path), change.after
        mtime_ns = 0 if change.before is None else change.before.mtime_ns
        if now is not None and now.kind == "directory" and (after is None or now.mtime_ns != after.mtime_ns):
            mtime_ns = now.mtime_ns
        return Step(change.path, now, change.before, mtime_ns)

    def _describe(self, change: Change) -> PathPreview:
        now = self._now.get(change.path)
        return PathPreview(
            path=os.fsdecode(change.path),
            action=_action(change.before, now),
            before=change.before,
            now=now,
            conflict=self._is_conflict(change),
        )


def _is_visible(step: Step) -> bool:
    return Change(step.path, step.then, step.now).visible


def _action(before: PathState | None, now: PathState | None) -> Action:
    if before is None:
        return "delete"
    return "change mode or time" if has_same_content(before, now) else "restore"
