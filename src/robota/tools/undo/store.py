"""The undo store: entries of what was there before each call, and the way back.

One directory, private to its owner, for any number of processes. Every operation holds the lock of the store;
none holds it while a call runs. A kill at any point leaves what was acknowledged: contents are on disk before
the record that names them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from robota.core.errors import StorageError, ValidationError
from robota.core.ports import REAL_WORLD, Ports
from robota.tools.undo.blobs import Batch, BlobStore, QuotaExceeded
from robota.tools.undo.calls import CALLS, UndoCalls
from robota.tools.undo.entry import Entry, OpenEntry, Preview, Removal, Saved, Undone, pair_records
from robota.tools.undo.gc import collect
from robota.tools.undo.hash_cache import HashCache
from robota.tools.undo.journal import Begun, Carried, Ended, Journal
from robota.tools.undo.plan import Plan
from robota.tools.undo.saved_states import SavedStates
from robota.tools.undo.scope import Scope
from robota.tools.undo.snapshot import Camera, Limits, TooMany, Unprotected
from robota.tools.undo.state import Change, Manifest, compare
from robota.tools.undo.store_folder import StoreFolder
from robota.tools.undo.way_back import Decide, WayBack, keep_all

DEFAULT_QUOTA_BYTES = 4 * 1024**3
MAX_LABEL_CHARACTERS = 500
_TOO_MANY = "has more than {:,} files, too many to be saved for undo."
_TOO_LARGE = "does not fit into the undo store ({:,} of {:,} bytes are used)."
_NO_LIMIT = float("inf")
_BEST_COMPRESSION = 4
"""What is larger than the room that is left times this is not even tried."""


class UndoStore:
    """`limits` bound what one call may cost; `quota_bytes` bounds all of them together."""

    def __init__(
        self,
        base_dir: str | os.PathLike[str],
        *,
        quota_bytes: int = DEFAULT_QUOTA_BYTES,
        limits: Limits | None = None,
        ports: Ports = REAL_WORLD,
        calls: UndoCalls = CALLS,
    ) -> None:
        self.base_dir = os.path.realpath(base_dir)
        self.quota_bytes = quota_bytes
        self._limits = limits or Limits()
        self._ports = ports
        self._calls = calls
        self._folder = StoreFolder(self.base_dir, calls)
        self._journal = Journal(f"{self.base_dir}/journal.jsonl", calls)
        self._blobs = BlobStore(f"{self.base_dir}/blobs", calls)
        self._states = SavedStates(self._blobs)
        self._running: dict[str, tuple[Plan, int]] = {}

    # --- before and after a call -----------------------------------------------------------------------

    def save(
        self, plan: Plan, label: str, *, tool: str = "", session_id: str = "", call_id: str = ""
    ) -> Saved:
        """Save what the plan covers; what does not fit is named.

        When the whole workspace does not fit, the files that the call names are saved nevertheless.
        """
        problems: tuple[Unprotected, ...] = ()
        with self._lock():
            begun = msgspec.structs.replace(
                self._new_entry(label), tool=tool, session_id=session_id, call_id=call_id
            )
            for attempt in plan.attempts:
                try:
                    problems = self._begin(begun, attempt, problems)
                except (QuotaExceeded, TooMany) as error:
                    problems = (*problems, self._explain(error, attempt))
                else:
                    self._running[begun.id] = attempt, self._folder.mark_running(begun.id)
                    return Saved(begun.id, problems)
        return Saved(None, problems)

    def finish(self, entry_id: str) -> Entry:
        """Record how the call left what was saved. An entry that changed nothing stays, with no files."""
        with self._lock():
            if entry_id not in self._running:
                raise ValidationError(f"The call of undo entry {entry_id} is not running here.")
            plan, mark = self._running.pop(entry_id)
            self._folder.unmark_running(entry_id, mark)
            before = self._states.before(self._find(entry_id).begun)
            camera = self._camera(
                self._folder.cache_of(plan.workspace),
                limits=self._limits,
                skip=(*before.left_out, *before.skipped),
            )
            after = camera.take(plan.scope).manifest
            self._end(entry_id, compare(before, after.states))
            self._save_cache(plan, after)
            return self._find(entry_id).entry

    # --- looking and going back ------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """Oldest first."""
        with self._lock():
            return [pair.entry for pair in pair_records(self._journal.records).values()]

    def preview(self, entry_id: str) -> Preview:
        """What `undo` would change, and what it would ask about."""
        with self._lock():
            pair = self._find(entry_id)
            with self._way_back(pair).looking() as way:
                return Preview(pair.entry, way.preview())

    def undo(self, entry_id: str, *, overwrite: Decide = keep_all) -> Undone:
        """Put everything back as it was before the call.

        A path that became something else since the call ended is kept, unless `overwrite` says otherwise.
        The undo is an entry of its own: undoing that one brings everything back as it is now.
        """
        with self._lock():
            pair = self._find(entry_id)
            if self._folder.is_running(entry_id):
                raise StorageError(f"“{pair.begun.label}” is still running: wait for it, or stop it first.")
            begun = msgspec.structs.replace(
                self._new_entry(f"undo: {pair.begun.label}"),
                session_id=pair.begun.session_id,
                undoes=entry_id,
            )
            with self._way_back(pair).looking() as way:
                steps = way.decide(overwrite)
                if not steps:
                    return Undone(None, kept=way.kept)
                plan = Plan(Scope(places=tuple(os.fsdecode(step.path) for step in steps)))
                self._begin(begun, plan, (), way=way)
                way.go(steps, self._blobs)
            after = self._camera(HashCache()).take(plan.scope).manifest.states
            self._end(begun.id, compare(self._states.before(self._find(begun.id).begun), after))
            return Undone(begun.id, way.restored, way.kept)

    # --- room ------------------------------------------------------------------------------------------

    def gc(self, *, dry_run: bool = True, quota_bytes: int | None = None) -> Removal:
        """Make room: the oldest entries go until the rest fits. The report says what goes, or would go."""
        with self._lock():
            quota = self.quota_bytes if quota_bytes is None else quota_bytes
            pairs = list(pair_records(self._journal.records).values())
            removal, keep, blobs = collect(
                pairs, self._blobs.sizes(), quota, self._states.needed_by, self._folder.is_running
            )
            if dry_run:
                return removal
            records = [record for pair in keep for record in (pair.begun, pair.ended) if record is not None]
            used = sum(record.stored for record in records)
            self._journal.rewrite([Carried(removal.bytes_after - used), *records], self._folder.temporary)
            self._folder.remove_caches()
            for digest in blobs:
                self._blobs.remove(digest)
            self._folder.remove_leftovers()
            return msgspec.structs.replace(removal, done=True)

    @property
    def used_bytes(self) -> int:
        with self._lock():
            return self._used()

    # --- inside ----------------------------------------------------------------------------------------

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with self._folder.locked():
            if self._journal.refresh():
                self._folder.forget_caches()
            yield

    def _new_entry(self, label: str) -> Begun:
        clean = label[:MAX_LABEL_CHARACTERS].encode("utf-8", "replace").decode()
        return Begun(id=self._ports.new_id(), at=self._ports.now(), label=clean, manifest="", stored=0)

    def _begin(
        self, begun: Begun, plan: Plan, problems: tuple[Unprotected, ...], way: WayBack | None = None
    ) -> tuple[Unprotected, ...]:
        """Save the contents, then the record. An undo is saved whatever it takes."""
        cache = self._folder.cache_of(plan.workspace)
        room = self.quota_bytes - self._used() if way is None else _NO_LIMIT
        skip = tuple(map(os.fsencode, plan.spared))
        try:
            with self._batch(room) as batch:
                limits = self._limits if way is None else None
                camera = self._camera(cache, batch=batch, limits=limits, skip=skip)
                if plan.wide and not cache.complete and camera.measure(plan.scope) > room * _BEST_COMPRESSION:
                    raise QuotaExceeded
                manifest, unprotected = camera.take(plan.scope)
                if way is not None:
                    states = way.with_real_modes(manifest.states)
                    manifest = msgspec.structs.replace(manifest, states=states)
                digest = batch.add(msgspec.msgpack.encode(manifest))
        except BaseException:
            cache.clear()  # it may say of contents that they are stored
            raise
        problems = (*problems, *unprotected)
        self._journal.append(
            msgspec.structs.replace(
                begun,
                manifest=digest.hex(),
                stored=batch.stored,
                unprotected=tuple(each.reason.encode("utf-8", "replace").decode() for each in problems),
            )
        )
        self._save_cache(plan, manifest)
        return problems

    def _end(self, entry_id: str, changes: list[Change]) -> None:
        visible = [change for change in changes if change.visible]
        with self._batch(_NO_LIMIT) as batch:
            digest = batch.add(msgspec.msgpack.encode(changes))
        self._journal.append(
            Ended(
                id=entry_id,
                at=self._ports.now(),
                changes=digest.hex(),
                files=len(visible),
                size=sum(change.before.size for change in visible if change.before is not None),
                stored=batch.stored,
            )
        )

    def _way_back(self, pair: OpenEntry) -> WayBack:
        if pair.ended is not None:
            changes = self._states.changes(pair.ended)
            return WayBack(changes, self._calls)
        before = self._states.before(pair.begun)
        camera = self._camera(HashCache(), skip=(*before.left_out, *before.skipped))
        scope = Scope(tuple(map(os.fsdecode, before.trees)), tuple(map(os.fsdecode, before.states)))
        changes = compare(before, camera.take(scope).manifest.states)
        return WayBack(changes, self._calls, certain=False)

    def _camera(
        self,
        cache: HashCache,
        *,
        batch: Batch | None = None,
        limits: Limits | None = None,
        skip: tuple[bytes, ...] = (),
    ) -> Camera:
        skip = (os.fsencode(self.base_dir), *skip)
        return Camera(cache, batch=batch, limits=limits, skip=skip)

    def _batch(self, room: float) -> Batch:
        return self._blobs.batch(self._folder.temporary, room)

    def _find(self, entry_id: str) -> OpenEntry:
        pair = pair_records(self._journal.records).get(entry_id)
        if pair is None:
            raise ValidationError(f"There is no undo entry {entry_id!r}; it may have been removed.")
        return pair

    def _used(self) -> int:
        return sum(record.stored for record in self._journal.records)

    def _save_cache(self, plan: Plan, seen: Manifest) -> None:
        """Only after a look at the whole workspace: writing the cache for a single file would cost more."""
        if plan.wide is not None:
            trees = tuple(os.fsencode(tree) for tree in plan.scope.trees)
            self._folder.cache_of(plan.workspace).drop_missing(trees, seen.states)
            self._folder.save_cache(plan.workspace)

    def _explain(self, error: Exception, plan: Plan) -> Unprotected:
        what = "What the call may change" if plan.wide is None else "The workspace"
        if isinstance(error, TooMany):
            return Unprotected("too_many_files", f"{what} {_TOO_MANY.format(self._limits.files)}")
        return Unprotected("quota", f"{what} {_TOO_LARGE.format(self._used(), self.quota_bytes)}")
