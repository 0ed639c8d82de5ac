from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.tools.undo_repository import run_bash, take_picture

from robota.tools.files.directory import SystemCalls
from robota.tools.undo import journal
from robota.tools.undo.plan import Plan, plan_command
from robota.tools.undo.snapshot import Scope, cover
from robota.tools.undo.store import UndoStore

COUNTED = ("write", "mkdir", "rmdir", "replace", "unlink", "fchmod", "symlink", "chmod", "utime", "ftruncate")
"""Every call after which the disk is another one."""
COMMAND = "rm -r d; echo new > f; ln -sfn elsewhere l; mkdir m; echo x > m/x; chmod 600 g"


class QuickCalls(SystemCalls):
    fsync = staticmethod(lambda descriptor: None)
    sync_disk = staticmethod(lambda descriptor: None)


class MortalCalls(QuickCalls):
    """The process dies instead of the n-th call; a write gets half of its bytes out first."""

    def __init__(self, lives: float) -> None:
        self.lives = lives
        for name in COUNTED:
            setattr(self, name, self._mortal(name, getattr(SystemCalls, name)))

    def _mortal(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.lives -= 1
            if self.lives <= 0:
                if name == "write":
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                os._exit(9)
            return real(*args, **options)

        return call


def die_after(lives: int, act: Callable[[MortalCalls], object]) -> bool:
    """Whether the process died on the way."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act(MortalCalls(lives))
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 9


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    fill(path)
    return path


def fill(work: Path) -> None:
    run_bash(
        "rm -rf ./*; mkdir -p d/e; echo 1 > d/e/1; echo 2 > d/2; echo old > f; ln -s f l; echo g > g", work
    )
    run_bash("find . -exec touch -h -d '2020-02-02 02:02:02' {} +", work)


def test_a_kill_while_saving_leaves_a_store_that_loads_and_no_entry_that_is_not_whole(work, tmp_path):
    plan = Plan(Scope(), cover([str(work)]), workspace=str(work))
    picture = take_picture(work)
    lives, died = 0, True
    while died:
        lives += 1
        base = tmp_path / f"undo{lives}"

        def act(system: MortalCalls, base: Path = base) -> None:
            UndoStore(base, system=system).save(plan, "call")

        died = die_after(lives, act)
        store = UndoStore(base)
        for entry in store.entries():
            run_bash("rm -rf ./*", work)
            assert not store.undo(entry.id, overwrite=lambda path: True).kept
            assert take_picture(work) == picture
        store.gc(dry_run=False)
        assert list((base / "tmp").iterdir()) == []
    assert lives > 15


def save_and_run(base: Path, work: Path, system: SystemCalls) -> tuple[UndoStore, str]:
    store = UndoStore(base, system=system)
    plan = plan_command(COMMAND, str(work), [str(work)])
    assert plan is not None
    saved = store.save(plan, COMMAND)
    assert saved.entry_id is not None
    run_bash(COMMAND, work)
    return store, saved.entry_id


def contents(work: Path) -> dict[bytes, Any]:
    """Kinds, modes and contents; what a killed process left half written in a file of its own is not one."""
    return {path: state[::4] for path, state in take_picture(work).items() if b".robota-" not in path}


@pytest.mark.parametrize(("inline", "points"), [(0, 3), (journal.INLINE_BYTES, 1)])
def test_a_kill_while_finishing_leaves_an_entry_that_asks_about_everything(
    work, tmp_path, monkeypatch, inline, points
):
    monkeypatch.setattr(journal, "INLINE_BYTES", inline)
    picture, lives, died = contents(work), 0, True
    while died:
        lives += 1
        fill(work)

        def act(system: MortalCalls, lives: int = lives) -> None:
            store, entry_id = save_and_run(tmp_path / f"undo{lives}", work, system)
            system.lives = lives
            store.finish(entry_id)

        died = die_after(10_000, act)
        store = UndoStore(tmp_path / f"undo{lives}")
        [entry] = store.entries()
        spoiled = take_picture(work)
        if not entry.ended:
            assert {each.conflict for each in store.preview(entry.id).paths} == {True}
            undone = store.undo(entry.id)
            assert (undone.entry_id, undone.restored, take_picture(work)) == (None, (), spoiled)
            reasons = {each.reason for each in undone.kept}
            assert reasons == {"the call was cut off, so nobody knows who changed it"}
        assert not store.undo(entry.id, overwrite=lambda path: True).kept
        assert contents(work) == picture
    assert lives > points


def test_a_kill_while_undoing_can_be_repeated_until_it_is_done(work, tmp_path):
    picture, lives, died = contents(work), 0, True
    while died:
        lives += 1
        fill(work)
        base = tmp_path / f"undo{lives}"
        store, entry_id = save_and_run(base, work, QuickCalls())
        store.finish(entry_id)

        def act(system: MortalCalls, base: Path = base, entry_id: str = entry_id) -> None:
            UndoStore(base, system=system).undo(entry_id)

        died = die_after(lives, act)

        assert UndoStore(base, system=QuickCalls()).undo(entry_id, overwrite=lambda path: True).kept == ()
        assert contents(work) == picture
    assert lives > 30


def test_a_line_cut_in_the_middle_does_not_hide_the_next_one(work, tmp_path):
    base = tmp_path / "undo"
    plan = Plan(cover([str(work / "f")]))
    first = UndoStore(base).save(plan, "first")
    journal = base / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole[:40])
    second = UndoStore(base).save(plan, "second")
    journal.write_bytes(journal.read_bytes().replace(b'"first"', b'"FIRST"'))

    assert [entry.id for entry in UndoStore(base).entries()] == [second.entry_id]
    assert first.entry_id != second.entry_id


def test_a_damaged_cache_only_costs_time(work, tmp_path):
    base = tmp_path / "undo"
    plan = Plan(Scope(), cover([str(work)]), workspace=str(work))
    UndoStore(base).save(plan, "one")
    for cache in (base / "caches").iterdir():
        cache.write_bytes(cache.read_bytes()[:-3])
    store = UndoStore(base)
    saved = store.save(plan, "two")
    run_bash("rm f", work)
    assert saved.entry_id is not None
    store.finish(saved.entry_id)
    store.undo(saved.entry_id)
    assert (work / "f").read_text() == "old\n"
