"""The undo store: entries of what was there before each call, and how they are undone.

One directory, private to its owner, for any number of processes. Every operation holds the lock of the store;
none holds it while a call runs. A kill at any point leaves what was acknowledged: contents are on disk before
the record that names them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    pair_records,
)
from robota.tools.undo.plan import Plan
from robota.tools.undo.restore import Decide, Reversal
from robota.tools.undo.snapshot import HashCache, Limits, Scanner, Scope, TooMany, Unprotected
from robota.tools.undo.state import Change, Manifest, PathState, compare
from robota.tools.undo.store_directory import StoreDirectory

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
        system: SystemCalls = SYSTEM,
    ) -> None:
        self.base_dir = os.path.realpath(base_dir)
        self.quota_bytes = quota_bytes
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
                    self._running[begun.id] = attempt, self._directory.mark_running(begun.id)
                    return Saved(begun.id, problems)
        return Saved(None, problems)

    def finish(self, entry_id: str) -> Entry:
        """Record how the call left what was saved. An entry that changed nothing stays, with no files."""
        with self._lock():
            if entry_id not in self._running:
                raise ValidationError(f"The call of undo entry {entry_id} is not running here.")
            plan, mark = self._running.pop(entry_id)
            self._directory.unmark_running(entry_id, mark)
            before = read_states(self._blobs, self._find(entry_id).begun)
            cache = self._directory.cache_of(plan.workspace)
            scanner = self._scanner(cache, (*before.left_out, *before.skipped), self._limits)
            after = scanner.scan(plan.scope).manifest
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
            with self._reversal(pair).opened() as reversal:
                return Preview(pair.entry, reversal.preview())

    def undo(self, entry_id: str, *, overwrite: Decide = lambda path: False) -> Undone:
        """Put everything back as it was before the call.

        A path that became something else since the call ended is kept, unless `overwrite` says otherwise.
        The undo is an entry of its own: undoing that one brings everything back as it is now.
        """
        with self._lock():
            pair = self._find(entry_id)
            if self._directory.is_running(entry_id):
                raise StorageError(f"“{pair.begun.label}” is still running: wait for it, or stop it first.")
            begun = msgspec.structs.replace(
                self._new_entry(f"undo: {pair.begun.label}"),
                session_id=pair.begun.session_id,
                undoes=entry_id,
            )
            with self._reversal(pair).opened() as reversal:
                steps = reversal.decide(overwrite)
                if not steps:
                    return Undone(None, kept=reversal.kept)
                plan = Plan(Scope(paths=tuple(os.fsdecode(step.path) for step in steps)))
                self._begin(begun, plan, (), reversal)
                reversal.carry_out(steps, self._blobs)
            after = self._scanner(HashCache()).scan(plan.scope).manifest.states
            self._end(begun.id, compare(read_states(self._blobs, self._find(begun.id).begun), after))
            return Undone(begun.id, reversal.restored, reversal.kept)

    # --- room ------------------------------------------------------------------------------------------

    def gc(self, *, dry_run: bool = True, quota_bytes: int | None = None) -> Removal:
        """Make room: the oldest entries go until the rest fits. The report says what goes, or would go."""
        with self._lock():
            quota = self.quota_bytes if quota_bytes is None else quota_bytes
            pairs = list(pair_records(self._journal.records).values())
            removal, keep, unused = collect(pairs, self._blobs, quota, self._directory.is_running)
            if dry_run:
                return removal
            records = [record for pair in keep for record in (pair.begun, pair.ended) if record is not None]
            used = sum(record.stored for record in records)
            self._journal.rewrite([Carried(removal.bytes_after - used), *records], self._directory.temporary)
            self._directory.remove_caches()
            for digest in unused:
                self._blobs.remove(digest)
            self._directory.remove_leftovers()
            return msgspec.structs.replace(removal, done=True)

    @property
    def used_bytes(self) -> int:
        with self._lock():
            return self._used()

    # --- inside ----------------------------------------------------------------------------------------

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with self._directory.locked():
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
        room = self.quota_bytes - self._used() if undo is None else _NO_LIMIT
        skip = tuple(map(os.fsencode, plan.excluded))
        try:
            with self._batch(room) as batch:
                limits = self._limits if undo is None else None
                scanner = self._scanner(cache, skip, limits)
                scanner.batch = batch
                is_new = plan.whole is not None and not cache.complete
                if is_new and scanner.measure(plan.scope) > room * _BEST_COMPRESSION:
                    raise QuotaExceeded
                manifest, unprotected = scanner.scan(plan.scope)
                if undo is not None:
                    states = undo.with_real_modes(manifest.states)
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

    def _reversal(self, pair: OpenEntry) -> Reversal:
        if pair.ended is not None:
            return Reversal(read_changes(self._blobs, pair.ended), self._system)
        before = read_states(self._blobs, pair.begun)
        scanner = self._scanner(HashCache(), (*before.left_out, *before.skipped))
        scope = Scope(tuple(map(os.fsdecode, before.trees)), tuple(map(os.fsdecode, before.states)))
        return Reversal(compare(before, scanner.scan(scope).manifest.states), self._system, certain=False)

    def _scanner(
        self, cache: HashCache, skip: tuple[bytes, ...] = (), limits: Limits | None = None
    ) -> Scanner:
        """It passes over the store itself."""
        return Scanner(cache, limits=limits, skip=(os.fsencode(self.base_dir), *skip))

    def _batch(self, room: float) -> Batch:
        return Batch(self._blobs, self._system, self._directory.temporary, room)

    def _find(self, entry_id: str) -> OpenEntry:
        pair = pair_records(self._journal.records).get(entry_id)
        if pair is None:
            raise ValidationError(f"There is no undo entry {entry_id!r}; it may have been removed.")
        return pair

    def _used(self) -> int:
        return sum(record.stored for record in self._journal.records)

    def _save_cache(self, plan: Plan, seen: Manifest) -> None:
        """Only after a look at the whole workspace: writing the cache for a single file would cost more."""
        if plan.whole is not None:
            trees = tuple(os.fsencode(tree) for tree in plan.scope.trees)
            self._directory.cache_of(plan.workspace).drop_missing(trees, seen.states)
            self._directory.save_cache(plan.workspace)

    def _explain(self, error: Exception, plan: Plan) -> Unprotected:
        what = "What the call may change" if plan.whole is None else "The workspace"
        if isinstance(error, TooMany):
            return Unprotected("too_many_files", f"{what} {_TOO_MANY.format(self._limits.files)}")
        return Unprotected("quota", f"{what} {_TOO_LARGE.format(self._used(), self.quota_bytes)}")


def read_states(blobs: BlobStore, begun: Begun) -> Manifest:
    """What was there before a call."""
    return msgspec.msgpack.decode(blobs.read(bytes.fromhex(begun.manifest)), type=Manifest)


def read_changes(blobs: BlobStore, ended: Ended) -> list[Change]:
    """What a call made different."""
    return msgspec.msgpack.decode(blobs.read(bytes.fromhex(ended.changes)), type=list[Change])


def find_needed(blobs: BlobStore, pair: OpenEntry) -> set[bytes]:
    """The contents without which an entry could not be undone."""
    own = pair.begun.manifest if pair.ended is None else pair.ended.changes
    states: Iterable[PathState | None]
    try:
        if pair.ended is None:
            states = read_states(blobs, pair.begun).states.values()
        else:
            states = [change.before for change in read_changes(blobs, pair.ended)]
    except StorageError:
        return set()  # such an entry cannot be undone any more, whatever is kept for it
    digests = (state.digest for state in states if state is not None and state.digest is not None)
    return {bytes.fromhex(own), *digests}


def collect(
    pairs: Sequence[OpenEntry], blobs: BlobStore, quota_bytes: int, is_running: Callable[[str], bool]
) -> tuple[Removal, list[OpenEntry], list[bytes]]:
    """The report, the entries that stay and the contents that go.

    Oldest entries first, until what the others need fits. One whose call still runs always stays.
    """
    sizes, needs = blobs.sizes(), [find_needed(blobs, pair) for pair in pairs]
    uses = Counter(digest for need in needs for digest in need)
    known = frozenset(uses)
    total = sum(sizes.get(digest, 0) for digest in known)
    keep: list[OpenEntry] = []
    gone: list[OpenEntry] = []
    for pair, need in zip(pairs, needs, strict=True):
        if total <= quota_bytes or is_running(pair.begun.id):
            keep.append(pair)
            continue
        gone.append(pair)
        for digest in need:
            uses[digest] -= 1
            total -= 0 if uses[digest] else sizes.get(digest, 0)
    unused = [digest for digest in sizes if not uses[digest]]
    removal = Removal(
        done=False,
        entries=tuple(pair.entry for pair in gone),
        blobs=len(unused),
        bytes_before=sum(sizes.values()),
        bytes_after=total,
        leftovers=sum(digest not in known for digest in sizes),
    )
    return removal, keep, unused
