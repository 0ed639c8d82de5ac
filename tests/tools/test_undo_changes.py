from __future__ import annotations

import os
from pathlib import Path

from robota.tools.undo.changes import changed_files, show_changes
from robota.tools.undo.plan import Plan
from robota.tools.undo.snapshot import Scope
from robota.tools.undo.store import UndoStore


def change(store: UndoStore, path: Path, text: str | bytes | None, session: str = "one") -> None:
    saved = store.save(Plan(Scope(paths=(str(path),))), f"Write({path.name})", session_id=session)
    assert saved.entry_id is not None
    if text is None:
        path.unlink()
    else:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    store.finish(saved.entry_id)


def shown(tmp_path: Path, session: str = "one") -> str:
    base = str(tmp_path / "undo")
    return show_changes(base, changed_files(base, session), str(tmp_path))


def test_files_are_compared_with_how_the_session_found_them(tmp_path: Path) -> None:
    store = UndoStore(tmp_path / "undo")
    edited, same, gone = tmp_path / "edited.txt", tmp_path / "same.txt", tmp_path / "gone.txt"
    for path in (edited, same, gone):
        path.write_text("one\ntwo\n")

    change(store, edited, "one\n2\n")
    change(store, edited, "one\n2\nthree\n")
    change(store, same, "else")
    change(store, same, "one\ntwo\n")
    change(store, gone, None)
    change(store, tmp_path / "new.bin", b"\0\1")
    change(store, tmp_path / "other.txt", "of somebody else", session="two")

    assert shown(tmp_path).split("\n") == [
        "--- edited.txt",
        "+++ edited.txt",
        "@@ -1,2 +1,3 @@",
        " one",
        "-two",
        "+2",
        "+three",
        "--- gone.txt",
        "+++ gone.txt",
        "@@ -1,2 +0,0 @@",
        "-one",
        "-two",
        "added: new.bin (not shown: not text, or larger than 1 MB)",
    ]


def test_a_change_of_the_mode_and_an_edit_of_the_users_own_are_seen(tmp_path: Path) -> None:
    store = UndoStore(tmp_path / "undo")
    script, notes = tmp_path / "script.sh", tmp_path / "notes.txt"
    script.write_text("echo\n")
    notes.write_text("a\n")
    change(store, notes, "b\n")
    saved = store.save(Plan(Scope(paths=(str(script),))), "chmod", session_id="one")
    assert saved.entry_id is not None
    os.chmod(script, 0o755)
    store.finish(saved.entry_id)
    notes.write_text("a\n")

    assert shown(tmp_path) == "changed: script.sh (its mode only, or empty)"


def test_a_session_without_changes_shows_nothing(tmp_path: Path) -> None:
    assert shown(tmp_path) == ""
