"""The changes of a call, seen from the present: which are taken back, and about which somebody is asked."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Self, TypeAlias

import msgspec
from msgspec import Struct

from robota.tools.files.directory import SystemCalls
from robota.tools.undo.blobs import BlobStore
from robota.tools.undo.journal import Action, KeptPath, PathPreview
from robota.tools.undo.restore import Restoration, Step, Way
from robota.tools.undo.snapshot import HashCache, Scanner
from robota.tools.undo.state import Change, PathState, has_same_content, is_equivalent, is_identical, is_same

_OBJECTS = re.compile(rb"/objects(?=/|\Z)")
Decide: TypeAlias = Callable[[PathPreview], bool]
"""Asked about each conflict: whether to overwrite what is there now."""
_CHANGED = "it was changed after the call"
_CUT_OFF = "the call was cut off, so nobody knows who changed it"


class Reversal(Struct, eq=False):
    """The changes of a call, seen from the present."""

    changes: Sequence[Change]
    system: SystemCalls
    uncertain: Container[bytes] = ()
    """Paths of which nobody saw how the call left them."""
    made: dict[bytes, PathState] = {}
    """What was put back."""
    restored: tuple[str, ...] = ()
    kept: tuple[KeptPath, ...] = ()
    _created: frozenset[bytes] = frozenset()
    _now: dict[bytes, PathState] = {}
    _opened: dict[bytes, int] = {}

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Look at the present; what a call made unreadable for its owner is readable inside the block."""
        self._created = frozenset(change.path for change in self.changes if change.before is None)
        self._open()
        try:
            scanner = Scanner(HashCache())
            scanner.look_at(change.path for change in self.changes)
            self._now = self.with_real_modes(scanner.states)
            yield self
        finally:
            for path, mode in reversed(self._opened.items()):
                with suppress(OSError):
                    self.system.chmod(path, mode)

    def with_real_modes(self, states: dict[bytes, PathState]) -> dict[bytes, PathState]:
        """The states with the modes that the paths have outside the block."""
        return {
            path: msgspec.structs.replace(state, mode=self._opened.get(path, state.mode))
            for path, state in states.items()
        }

    def preview(self) -> tuple[PathPreview, ...]:
        return tuple(self._describe(change) for change in self.changes if self._is_due(change, visible=True))

    def decide(self, overwrite: Decide) -> list[Step]:
        steps: list[Step] = []
        kept: list[KeptPath] = []
        for change in self.changes:
            if not self._is_due(change):
                continue
            if self._is_conflict(change) and not overwrite(self._describe(change)):
                why = _CUT_OFF if change.path in self.uncertain else _CHANGED
                kept.append(KeptPath(os.fsdecode(change.path), why))
            else:
                steps.append(self._step(change))
        self.kept = tuple(kept)
        return steps if not self.uncertain or any(_is_visible(step) for step in steps) else []

    def carry_out(self, steps: Sequence[Step], blobs: BlobStore) -> None:
        restoration = Restoration(
            blobs, self.system, self._find_leaders(steps), Way(self.system), Way(self.system)
        )
        restoration.carry_out(steps)
        failed = restoration.problems
        self.kept += tuple(KeptPath(os.fsdecode(path), reason) for path, reason in sorted(failed.items()))
        done = [step for step in steps if step.path not in failed]
        self.restored = tuple(os.fsdecode(step.path) for step in done if _is_visible(step))
        self.made = {step.path: step.then for step in done if step.then is not None}
        for step in done:
            self._opened.pop(step.path, None)

    def _find_leaders(self, steps: Sequence[Step]) -> dict[bytes, bytes]:
        """For each name of a file that had several, the one that it becomes a link to again.

        One that still is the file leads, else the first that is put back.
        """
        due = {step.path for step in steps}
        groups: dict[tuple[int, bytes | None], list[bytes]] = {}
        for change in self.changes:
            before, now = change.before, self._now.get(change.path)
            if before is not None and before.inode and (change.path in due or has_same_content(now, before)):
                groups.setdefault((before.inode, before.digest), []).append(change.path)
        leaders: dict[bytes, bytes] = {}
        for (inode, _), names in groups.items():
            leader = next((name for name in names if _inode_of(name) == inode), names[0])
            leaders |= {name: leader for name in names if name != leader and name in due}
        return leaders

    def _open(self) -> None:
        if os.geteuid() == 0:
            return
        for change in self.changes:
            if change.after is None or change.after.kind not in ("file", "directory"):
                continue
            needed = 0o700 if change.after.kind == "directory" else 0o400
            with suppress(OSError):
                mode = stat.S_IMODE(os.lstat(change.path).st_mode)
                if mode == change.after.mode and mode & needed != needed:
                    self.system.chmod(change.path, mode | needed)
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
            folder + b"/HEAD" not in self._created
            and os.path.lexists(folder + b"/HEAD")
            and os.path.isdir(folder + b"/refs")
            for folder in folders
        )

    def _is_conflict(self, change: Change) -> bool:
        now = self._now.get(change.path)
        known = change.path not in self.uncertain
        return not is_same(now, change.before) and not (known and is_equivalent(now, change.after))

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


def _inode_of(path: bytes) -> int:
    with suppress(OSError):
        return os.lstat(path).st_ino
    return 0


def _is_visible(step: Step) -> bool:
    return Change(step.path, step.then, step.now).visible


def _action(before: PathState | None, now: PathState | None) -> Action:
    if before is None:
        return "delete"
    return "change mode or time" if has_same_content(before, now) else "restore"
