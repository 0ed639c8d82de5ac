"""Files with several names, with holes, and many of them at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.tools.undo_repository import run_bash

from robota.tools.files.directory import SystemCalls
from robota.tools.undo.plan import plan_command
from robota.tools.undo.store import UndoStore


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


def undo(command: str, work: Path, system: SystemCalls | None = None) -> UndoStore:
    """Run a command and take it back."""
    store = UndoStore(work.parent / "undo", system=system or SystemCalls())
    plan = plan_command(command, str(work), [str(work)])
    assert plan is not None
    saved = store.save(plan, command)
    assert saved.unprotected == ()
    run_bash(command, work)
    store.finish(saved.entry_id)
    assert store.undo(saved.entry_id).kept == ()
    return store


def names_by_file(work: Path) -> list[list[str]]:
    """Which names stand for the same file."""
    groups: dict[int, list[str]] = {}
    for path in sorted(work.rglob("*")):
        if path.is_file():
            groups.setdefault(path.stat().st_ino, []).append(str(path.relative_to(work)))
    return sorted(groups.values())


@pytest.mark.parametrize(
    "command",
    [
        "rm a b d/c",
        "rm -rf ./*",
        "rm a",
        "rm b d/c",
        "mv a z; rm d/c",
        "sed -i s/old/new/ a",
        "echo new > a; rm b",
        "echo new > a",
        "rm d/c; echo new > b",
        "cp a t; mv t b; touch -d yesterday b",
        "cp --remove-destination other d/c",
        "rm a b d/c; echo other > a; ln a b",
        "chmod 600 a; rm b",
        "rm -r d; echo x > d",
    ],
)
def test_names_of_one_file_are_names_of_one_file_again(command, work):
    run_bash("mkdir d; echo old > a; ln a b; ln a d/c; echo other > other; echo old > alone", work)
    before = {path: (path.read_bytes(), path.stat().st_mode) for path in work.rglob("*") if path.is_file()}
    undo(command, work)
    assert names_by_file(work) == [["a", "b", "d/c"], ["alone"], ["other"]]
    after = {path: (path.read_bytes(), path.stat().st_mode) for path in work.rglob("*") if path.is_file()}
    assert after == before


def test_a_name_that_somebody_else_changed_since_is_not_linked_to(work):
    run_bash("echo old > a; ln a b", work)
    store = UndoStore(work.parent / "undo")
    plan = plan_command("rm a b", str(work), [str(work)])
    assert plan is not None
    saved = store.save(plan, "rm a b")
    run_bash("rm a b", work)
    store.finish(saved.entry_id)
    (work / "a").write_text("mine\n")
    undone = store.undo(saved.entry_id)
    assert [each.path for each in undone.kept] == [str(work / "a")]
    assert ((work / "a").read_text(), (work / "b").read_text()) == ("mine\n", "old\n")


def test_an_undo_of_an_undo_takes_the_links_apart_again(work):
    run_bash("echo old > a; ln a b", work)
    command = "rm b; echo other > b"
    store = undo(command, work)
    [*_, last] = store.entries()
    assert store.undo(last.id).kept == ()
    assert names_by_file(work) == [["a"], ["b"]]
    assert (work / "b").read_text() == "other\n"


@pytest.mark.parametrize("command", ["rm s", "echo x > s", "cp s t; cat t > s; rm t", "truncate -s 0 s"])
def test_a_file_with_holes_has_them_again(command, work):
    run_bash("truncate -s 20M s; echo begin | dd of=s conv=notrunc status=none", work)
    run_bash("echo middle | dd of=s conv=notrunc bs=1M seek=7 status=none", work)
    content, blocks = (work / "s").read_bytes(), (work / "s").stat().st_blocks
    assert blocks * 512 < len(content) // 100, "this file system has no holes"
    undo(command, work)
    assert (work / "s").read_bytes() == content
    assert (work / "s").stat().st_blocks <= 2 * blocks


def test_a_file_of_zeros_without_holes_gets_none(work):
    (work / "z").write_bytes(bytes(1_000_000))
    undo("rm z", work)
    assert (work / "z").stat().st_blocks * 512 >= 1_000_000


class CountingCalls(SystemCalls):
    def __init__(self) -> None:
        self.syncs = 0
        self.disks: list[int] = []

    def fsync(self, descriptor: int) -> None:  # type: ignore[override]
        self.syncs += 1
        os.fsync(descriptor)

    def sync_disk(self, descriptor: int) -> None:  # type: ignore[override]
        self.disks.append(os.fstat(descriptor).st_dev)
        SystemCalls.sync_disk(descriptor)


def test_many_files_are_brought_to_the_disk_together(work):
    for number in range(3000):
        (work / f"file-{number}").write_text(f"{number}")
    system = CountingCalls()
    undo("rm -rf ./*", work, system)
    assert len(list(work.iterdir())) == 3000
    assert system.syncs < 40
    assert system.disks == [work.stat().st_dev]


def test_a_disk_without_hard_links_gets_copies(work):
    class NoLinks(SystemCalls):
        def link(self, *args: object, **options: object) -> None:  # type: ignore[override]
            raise PermissionError(1, "Operation not permitted")

    run_bash("echo old > a; ln a b", work)
    undo("rm a b", work, NoLinks())
    assert names_by_file(work) == [["a"], ["b"]]
    assert (work / "b").read_text() == "old\n"
    assert sorted(path.name for path in work.iterdir()) == ["a", "b"]
