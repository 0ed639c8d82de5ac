"""From the changes of a call to the steps that take them back, with what others did since then kept apart."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Self, TypeAlias

import msgspec

from robota.tools.undo.blobs import BlobStore
from robota.tools.undo.calls import UndoCalls
from robota.tools.undo.entry import Action, KeptPath, PathPreview
from robota.tools.undo.hash_cache import HashCache
from robota.tools.undo.restore import Restoration, Step
from robota.tools.undo.snapshot import Camera
from robota.tools.undo.state import Change, PathState, has_same_content, is_identical, is_same

Decide: TypeAlias = Callable[[PathPreview], bool]
"""Asked about each conflict: whether to overwrite what is there now."""


def keep_all(path: PathPreview) -> bool:
    return False


class WayBack:
    """The changes of an entry, seen from the present. `certain`: it was recorded how the call left things."""

    __slots__ = ("_calls", "_certain", "_changes", "_now", "_opened", "kept", "restored")

    def __init__(self, changes: Sequence[Change], calls: UndoCalls, *, certain: bool = True) -> None:
        self._changes = changes
        self._calls = calls
        self._certain = certain
        self._now: dict[bytes, PathState] = {}
        self._opened: dict[bytes, int] = {}
        self.restored: tuple[str, ...] = ()
        self.kept: tuple[KeptPath, ...] = ()

    @contextmanager
    def looking(self) -> Iterator[Self]:
        """Look at the present; what a call made unreadable for its owner is readable inside the block."""
        self._open()
        try:
            camera = Camera(HashCache())
            for change in self._changes:
                camera.look(change.path)
            self._now = self.with_real_modes(camera.states)
            yield self
        finally:
            done = set(self.restored)
            for path, mode in reversed(self._opened.items()):
                if os.fsdecode(path) not in done:
                    with suppress(OSError):
                        self._calls.chmod(path, mode)

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
        return steps

    def go(self, steps: Sequence[Step], blobs: BlobStore) -> None:
        restoration = Restoration(blobs, self._calls)
        restoration.carry_out(steps)
        failed = restoration.problems
        self.kept += tuple(KeptPath(os.fsdecode(path), reason) for path, reason in sorted(failed.items()))
        self.restored = tuple(os.fsdecode(step.path) for step in steps if step.path not in failed)

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
                    self._calls.chmod(change.path, mode | needed)
                    self._opened[change.path] = mode

    def _is_due(self, change: Change, *, visible: bool = False) -> bool:
        now = self._now.get(change.path)
        if visible:
            return Change(change.path, change.before, now).visible and not is_identical(change.before, now)
        return not is_identical(change.before, now)

    def _is_conflict(self, change: Change) -> bool:
        now = self._now.get(change.path)
        return not is_same(now, change.before) and not (self._certain and is_same(now, change.after))

    def _step(self, change: Change) -> Step:
        now, after = self._now.get(change.path), change.after
        is_directory = now is not None and now.kind == "directory"
        moved_on = is_directory and (after is None or now is None or now.mtime_ns != after.mtime_ns)
        return Step(change.path, now, change.before, keep_time=moved_on)

    def _describe(self, change: Change) -> PathPreview:
        now, action = self._now.get(change.path), _action(change.before, self._now.get(change.path))
        return PathPreview(
            path=os.fsdecode(change.path),
            action=action,
            before=change.before,
            now=now,
            conflict=self._is_conflict(change),
        )


_WHY = {
    True: "it was changed after the call",
    False: "the call was cut off, so nobody knows who changed it",
}


def _action(before: PathState | None, now: PathState | None) -> Action:
    if before is None:
        return "delete"
    return "change mode or time" if has_same_content(before, now) else "restore"
