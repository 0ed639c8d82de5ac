"""The undo store: entries of what was there before each call, and how they are undone.

One directory, private to its owner, for any number of processes. Every operation holds the lock of the store;
none holds it while a call runs. A kill at any point leaves what was acknowledged: contents are on disk before
the record that names them. What was there before is listed completely while a call runs; when it has ended,
only what it changed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from robota.core.errors import StorageError, ValidationError
from robota.core.ports import REAL_WORLD, Ports
from robota.tools.files.directory import SYSTEM, SystemCalls
from robota.tools.undo.blobs import Batch, BlobStore, QuotaExceeded
from robota.tools.undo.journal import (
    Begun,
    Carried,
    Ended,
    Entry,
    Journal,
    OpenEntry,
    Preview,
    Removal,
    Saved,
    Undone,
    collect,
    find_content,
    keep_list,
    read_changes,
    read_states,
)
from robota.tools.undo.plan import Plan
from robota.tools.undo.reversal import Decide, Reversal
from robota.tools.undo.snapshot import HashCache, Limits, Scanner, Scope, TooMany, Unprotected
from robota.tools.undo.state import Change, Manifest, chain, compare
from robota.tools.undo.store_directory import StoreDirectory

DEFAULT_QUOTA_BYTES = 4 * 1024**3
DEFAULT_MAX_AGE_DAYS = 30.0
_DAY_SECONDS = 86_400.0
_OUTSIDE = "The command works in {}, outside the workspace: there only what it names is saved for undo."
MAX_LABEL_CHARACTERS = 500
_TOO_MANY = "has more than {:,} files, too many to be saved for undo."
_NO_LIMIT = float("inf")
_BEST_COMPRESSION = 4
"""What is larger than the room that is left times this is not even tried."""


class UndoStore:
    """`limits` bound what one call may cost; `quota_bytes` bounds all of them together.

    Entries older than `max_age_days` go with the next save, and the oldest ones when there is no room for it.
    """

    def __init__(
        self,
        base_dir: str | os.PathLike[str],
        *,
        quota_bytes: int = DEFAULT_QUOTA_BYTES,
        max_age_days: float = DEFAULT_MAX_AGE_DAYS,
        limits: Limits | None = None,
        ports: Ports = REAL_WORLD,
        system: SystemCalls = SYSTEM,
    ) -> None:
        self.base_dir = os.path.realpath(base_dir)
        self.quota_bytes = quota_bytes
        self.max_age_days = max_age_days
        self._limits = limits or Limits()
        self._ports = ports
        self._system = system
        self._directory = StoreDirectory(self.base_dir, system)
        self._journal = Journal(f"{self.base_dir}/journal.jsonl", system)
        self._blobs = BlobStore(f"{self.base_dir}/blobs", system)
        self._running: dict[str, tuple[Plan, int]] = {}

    # --- before and after a call -----------------------------------------------------------------------

    def save(
        self, plan: Plan, label: str, *, tool: str = "", session_id: str = "", call_id: str = ""
    ) -> Saved:
        """Save what the plan covers; what does not fit is named.

        When the whole workspace does not fit, the files that the call names are saved nevertheless.
        """
        problems = tuple(Unprotected("outside", _OUTSIDE.format(place)) for place in plan.outside)
        with self._lock():
            notices = self._remove_old()
            begun = msgspec.structs.replace(
                self._new_entry(label), tool=tool, session_id=session_id, call_id=call_id
            )
            for attempt in plan.attempts:
                try:
                    problems = self._begin_with_room(begun, attempt, problems, notices)
                except (QuotaExceeded, TooMany) as error:
                    room = f"{self._journal.used:,} of {self.quota_bytes:,} bytes are used"
                    problems = (*problems, explain(error, attempt, self._limits, room))
                else:
                    self._running[begun.id] = attempt, self._directory.mark_running(begun.id)
                    return Saved(begun.id, problems, tuple(notices))
        return Saved(None, problems, tuple(notices))

    def finish(self, entry_id: str) -> Entry:
        """Record how the call left what was saved. An entry that changed nothing stays, with no files."""
        with self._lock():
            if entry_id not in self._running:
                raise ValidationError(f"The call of undo entry {entry_id} is not running here.")
            plan, mark = self._running.pop(entry_id)
            self._directory.unmark_running(entry_id, mark)
            before = read_states(self._blobs, self._journal.pairs[entry_id].begun)
            cache = self._directory.cache_of(plan.workspace)
            scanner = self._scanner(cache, (*before.left_out, *before.skipped), self._limits)
            linked = Scope(
                paths=tuple(os.fsdecode(path) for path, each in before.states.items() if each.inode)
            )
            after = scanner.scan(plan.scope.join(linked)).manifest
            self._end(entry_id, compare(before, after.states))
            save_cache(self._directory, plan, after)
            return self._journal.pairs[entry_id].entry

    # --- looking and going back ------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """Oldest first."""
        with self._lock():
            return [pair.entry for pair in self._journal.pairs.values()]

    def preview(self, *entry_ids: str) -> Preview:
        """What `undo` would change, and what it would ask about."""
        with self._lock():
            pairs = find_entries(self._journal, *entry_ids)
            with self._reversal(pairs).opened() as reversal:
                return Preview(tuple(pair.entry for pair in pairs), reversal.preview())

    def undo(self, *entry_ids: str, overwrite: Decide = lambda path: False) -> Undone:
        """Put everything back as it was before the call, or before the first of several, oldest first.

        A path that became something else since the call ended is kept, unless `overwrite` says otherwise.
        The undo is an entry of its own: undoing that one brings everything back as it is now.
        """
        with self._lock():
            pairs = find_entries(self._journal, *entry_ids)
            refuse_running(pairs, self._directory)
            more = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
            begun = msgspec.structs.replace(
                self._new_entry(f"undo: {pairs[0].begun.label}{more}"),
                session_id=pairs[0].begun.session_id,
                undoes=entry_ids,
            )
            with self._reversal(pairs).opened() as reversal:
                steps = reversal.decide(overwrite)
                if not steps:
                    return Undone(None, kept=reversal.kept)
                there = (os.fsdecode(step.path) for step in steps if step.now is not None)
                self._begin(begun, Plan(Scope(paths=tuple(there))), (), reversal)
                reversal.carry_out(steps, self._blobs)
            scanner = self._scanner(HashCache())
            scanner.made = reversal.made
            scanner.look_at(step.path for step in steps)
            before = read_states(self._blobs, self._journal.pairs[begun.id].begun)
            self._end(begun.id, compare(before, scanner.states))
            return Undone(begun.id, reversal.restored, reversal.kept)

    # --- room ------------------------------------------------------------------------------------------

    def gc(self, *, dry_run: bool = True, quota_bytes: int | None = None) -> Removal:
        """Make room: the oldest entries go until the rest fits. The report says what goes, or would go."""
        with self._lock():
            return self._free(self.quota_bytes if quota_bytes is None else quota_bytes, dry_run=dry_run)

    @property
    def used_bytes(self) -> int:
        with self._lock():
            return self._journal.used

    def _free(
        self, quota: float, *, dry_run: bool = False, since: float = 0.0, wanted: Collection[bytes] = ()
    ) -> Removal:
        pairs = list(self._journal.pairs.values())
        running = self._directory.is_running
        removal, keep, unused = collect(pairs, self._blobs, quota, running, since=since, wanted=wanted)
        if dry_run:
            return removal
        records = [record for pair in keep for record in (pair.begun, pair.ended) if record is not None]
        used = sum(record.stored for record in records)
        carried = Carried(removal.bytes_after - used, self._ports.new_id())
        self._journal.rewrite([carried, *records], self._directory.temporary)
        self._directory.remove_caches()
        self._blobs.remove(frozenset(unused), self._directory.temporary)
        self._directory.remove_leftovers()
        return msgspec.structs.replace(removal, done=True)

    def _remove_old(self) -> list[str]:
        since = self._ports.now() - self.max_age_days * _DAY_SECONDS
        begun = [each.begun for each in self._journal.pairs.values()] if self._journal.oldest < since else []
        if all(each.at >= since or self._directory.is_running(each.id) for each in begun):
            return []
        return self._free(_NO_LIMIT, since=since).describe(f"they were older than {self.max_age_days:g} days")

    def _begin_with_room(
        self, begun: Begun, plan: Plan, problems: tuple[Unprotected, ...], notices: list[str]
    ) -> tuple[Unprotected, ...]:
        """Save, if need be in the place of the oldest entries; not when that could not be enough."""
        known = self._directory.cache_of(plan.workspace).known
        try:
            return self._begin(begun, plan, problems)
        except QuotaExceeded:
            if self._scanner(HashCache()).measure(plan.scope) > self.quota_bytes:
                raise
        wanted = {file.digest for file in known.values() if file.stored}  # or it is all written once more
        notices += self._free(self.quota_bytes // 2, wanted=wanted).describe("the undo store was full")
        return self._begin(begun, plan, problems)

    # --- inside ----------------------------------------------------------------------------------------

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with self._directory.locked():
            self._blobs.packs.refresh()
            if self._journal.refresh():
                self._directory.forget_caches()
            yield

    def _new_entry(self, label: str) -> Begun:
        clean = label[:MAX_LABEL_CHARACTERS].encode("utf-8", "replace").decode()
        return Begun(id=self._ports.new_id(), at=self._ports.now(), label=clean, manifest="", stored=0)

    def _begin(
        self, begun: Begun, plan: Plan, problems: tuple[Unprotected, ...], undo: Reversal | None = None
    ) -> tuple[Unprotected, ...]:
        """Save the contents, then the record. An undo is saved whatever it takes."""
        cache = self._directory.cache_of(plan.workspace)
        room = self.quota_bytes - self._journal.used if undo is None else _NO_LIMIT
        skip = tuple(map(os.fsencode, plan.excluded))
        try:
            with self._batch(room) as batch:
                scanner = self._scanner(cache, skip, self._limits if undo is None else None)
                scanner.batch = batch
                is_new = plan.whole is not None and not cache.complete
                if is_new and scanner.measure(plan.scope) > room * _BEST_COMPRESSION:
                    raise QuotaExceeded
                manifest, unprotected = scanner.scan(plan.scope, "" if plan.whole else plan.workspace)
                if undo is not None:
                    states = undo.with_real_modes(manifest.states)
                    manifest = msgspec.structs.replace(manifest, states=states)
                kept = keep_list(batch, manifest)
        except BaseException:
            cache.clear()  # it may say of contents that they are stored
            raise
        problems = (*problems, *unprotected)
        self._journal.append(
            msgspec.structs.replace(
                begun,
                manifest=kept,
                stored=batch.stored,
                unprotected=tuple(each.reason.encode("utf-8", "replace").decode() for each in problems),
            )
        )
        save_cache(self._directory, plan, manifest)
        return problems

    def _end(self, entry_id: str, changes: list[Change]) -> None:
        visible = [change for change in changes if change.visible]
        manifest = find_own_manifest(self._journal, entry_id)
        with self._batch(_NO_LIMIT) as batch:
            kept = keep_list(batch, changes)
        self._journal.append(
            Ended(
                id=entry_id,
                at=self._ports.now(),
                changes=kept,
                files=len(visible),
                size=sum(change.before.size for change in visible if change.before is not None),
                stored=batch.stored - (0 if manifest is None else self._blobs.size_of(manifest)),
            )
        )
        if manifest is not None:
            self._blobs.remove_alone(manifest)

    def _reversal(self, pairs: Sequence[OpenEntry]) -> Reversal:
        calls = [self._changes_of(pair) for pair in pairs]
        cut = [changes for pair, changes in zip(pairs, calls, strict=True) if pair.ended is None]
        uncertain = frozenset(change.path for changes in cut for change in changes)
        return Reversal(chain(calls), self._system, uncertain=uncertain)

    def _changes_of(self, pair: OpenEntry) -> list[Change]:
        if pair.ended is not None:
            return read_changes(self._blobs, pair.ended)
        before = read_states(self._blobs, pair.begun)
        return look_again(before, self._scanner(HashCache(), (*before.left_out, *before.skipped)))

    def _scanner(
        self, cache: HashCache, skip: tuple[bytes, ...] = (), limits: Limits | None = None
    ) -> Scanner:
        """It passes over the store itself."""
        return Scanner(cache, limits=limits, skip=(os.fsencode(self.base_dir), *skip))

    def _batch(self, room: float) -> Batch:
        return Batch(self._blobs, self._system, self._directory.temporary, room)


def find_entries(journal: Journal, *entry_ids: str) -> list[OpenEntry]:
    if not entry_ids:
        raise ValidationError("Name an undo entry to take back.")
    for entry_id in entry_ids:
        if entry_id not in journal.pairs:
            raise ValidationError(f"There is no undo entry {entry_id!r}; it may have been removed.")
    return [journal.pairs[each] for each in entry_ids]


def refuse_running(pairs: Sequence[OpenEntry], directory: StoreDirectory) -> None:
    for pair in pairs:
        if directory.is_running(pair.begun.id):
            raise StorageError(f"“{pair.begun.label}” is still running: wait for it, or stop it first.")


def look_again(before: Manifest, scanner: Scanner) -> list[Change]:
    """What is different now from how it was before a call of which nobody saw the end."""
    scope = Scope(tuple(map(os.fsdecode, before.trees)), tuple(map(os.fsdecode, before.states)))
    return compare(before, scanner.scan(scope).manifest.states)


def save_cache(directory: StoreDirectory, plan: Plan, seen: Manifest) -> None:
    """Only after a look at the whole workspace: writing the cache for a single file would cost more."""
    if plan.whole is not None:
        trees = tuple(os.fsencode(tree) for tree in plan.scope.trees)
        directory.cache_of(plan.workspace).drop_missing(trees, seen.states)
        directory.save_cache(plan.workspace)


def explain(error: Exception, plan: Plan, limits: Limits, room: str) -> Unprotected:
    what = "What the call may change" if plan.whole is None else "The workspace"
    if isinstance(error, TooMany):
        return Unprotected("too_many_files", f"{what} {_TOO_MANY.format(limits.files)}")
    return Unprotected("quota", f"{what} does not fit into the undo store ({room}).")


def find_own_manifest(journal: Journal, entry_id: str) -> bytes | None:
    """The list of everything that was there before a call, unless another one needs it as well."""
    own = journal.pairs[entry_id].begun.manifest
    others = (pair.begun for pair in journal.unfinished.values() if pair.begun.id != entry_id)
    shared = any(begun.manifest == own for begun in others)
    return None if shared else next(iter(find_content(own)), None)
