"""What a session changed, from the undo store: each file as it was before the first call that touched it."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import Struct

from robota.core.errors import StorageError
from robota.core.regular_file import open_regular
from robota.tools.files.diff import Region, show_diff
from robota.tools.files.directory import SYSTEM
from robota.tools.undo.blobs import BlobStore
from robota.tools.undo.journal import Journal, read_changes
from robota.tools.undo.snapshot import HashCache, Scanner
from robota.tools.undo.state import PathState, is_same

MAX_SHOWN_BYTES = 1 << 20
_GIT = f"{os.sep}.git{os.sep}".encode()


class ChangedFile(Struct, frozen=True):
    """A path that is not as the session found it."""

    path: str
    before: PathState | None
    now: PathState | None


def changed_files(base_dir: str, session_id: str) -> list[ChangedFile]:
    """What differs from how the session found it, sorted by path; git's own files are left out."""
    blobs = BlobStore(f"{base_dir}/blobs", SYSTEM)
    first: dict[bytes, PathState | None] = {}
    journal = Journal(f"{base_dir}/journal.jsonl", SYSTEM)
    journal.refresh()
    for pair in journal.pairs.values():
        if pair.begun.session_id == session_id and pair.ended is not None:
            for change in read_changes(blobs, pair.ended):
                first.setdefault(change.path, change.before)
    scanner = Scanner(HashCache())
    scanner.look_at(first)
    return [
        ChangedFile(os.fsdecode(path), before, scanner.states.get(path))
        for path, before in sorted(first.items())
        if _GIT not in path and not is_same(before, scanner.states.get(path))
    ]


def show_changes(base_dir: str, files: list[ChangedFile], root: str) -> str:
    """The changes as unified diffs, with paths from `root` on."""
    blobs = BlobStore(f"{base_dir}/blobs", SYSTEM)
    return "\n".join(_show(blobs, each, os.path.relpath(each.path, root)).rstrip() for each in files)


def _show(blobs: BlobStore, file: ChangedFile, shown: str) -> str:
    kinds = {state.kind for state in (file.before, file.now) if state is not None}
    if kinds != {"file"}:
        return f"{_verb(file)}: {shown} ({' and '.join(sorted(kinds))})"
    before, now = _read(file.before, blobs.read), _read(file.now, lambda _: _read_file(file.path))
    if before is None or now is None:
        return f"{_verb(file)}: {shown} (not shown: not text, or larger than {MAX_SHOWN_BYTES >> 20} MB)"
    if before == now:
        return f"{_verb(file)}: {shown} (its mode only, or empty)"
    return show_diff(shown, [Region(before, now)])


def _read(state: PathState | None, read: Callable[[bytes], bytes]) -> str | None:
    """The text; empty where there was nothing, `None` where it cannot be shown."""
    if state is None:
        return ""
    if state.digest is None or state.size > MAX_SHOWN_BYTES:
        return None
    try:
        data = read(state.digest)
        return None if b"\0" in data else data.decode()
    except (OSError, StorageError, UnicodeDecodeError):  # its room was needed, or it is gone
        return None


def _read_file(path: str) -> bytes:
    with open_regular(path) as file:
        return file.read(MAX_SHOWN_BYTES)


def _verb(file: ChangedFile) -> str:
    return "added" if file.before is None else "deleted" if file.now is None else "changed"
