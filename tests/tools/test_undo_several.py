"""Several calls taken back at once, as a rewind does."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.support.forms import some_of
from tests.tools.test_undo import QuickCalls, call, kept, run
from tests.tools.undo_repository import run_bash, take_picture

from robota.core.errors import ValidationError
from robota.tools.undo.plan import plan_command
from robota.tools.undo.store import UndoStore


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def store(tmp_path: Path) -> UndoStore:
    return UndoStore(tmp_path / "undo", system=QuickCalls())


def test_calls_on_one_file_go_back_to_before_the_first(store: UndoStore, work: Path) -> None:
    (work / "f").write_text("zero")
    before = take_picture(work)
    entries = [run(store, work, f"echo {word} > f") for word in ("one", "two", "three")]

    preview = store.preview(*entries)
    assert [(Path(each.path).name, each.action, each.conflict) for each in preview.paths] == [
        ("f", "restore", False)
    ]
    undone = store.undo(*entries)

    assert take_picture(work) == before
    assert undone.kept == ()
    assert undone.entry_id is not None
    assert store.entries()[-1].undoes == tuple(entries)
    assert store.entries()[-1].label == "undo: a call and 2 more"
    store.undo(undone.entry_id)
    assert (work / "f").read_text() == "three\n"


def test_a_file_that_was_not_there_goes_and_one_that_went_comes(store: UndoStore, work: Path) -> None:
    (work / "old").write_text("old")
    before = take_picture(work)
    entries = [
        run(store, work, "echo a > new"),
        run(store, work, "echo b >> new; rm old"),
        run(store, work, "mkdir deep; mv new deep/new"),
    ]

    store.undo(*entries)

    assert take_picture(work) == before


def test_what_the_user_wrote_between_two_calls_is_what_the_file_becomes(store: UndoStore, work: Path) -> None:
    (work / "f").write_text("zero")
    first = run(store, work, "echo one > f")
    (work / "f").write_text("the user's own")
    second = run(store, work, "echo two > f")

    undone = store.undo(first, second)

    assert (work / "f").read_text() == "the user's own"
    assert undone.kept == ()


def test_what_the_user_wrote_after_the_last_call_is_kept(store: UndoStore, work: Path) -> None:
    (work / "f").write_text("zero")
    (work / "g").write_text("zero")
    first = run(store, work, "echo one > f; echo one > g")
    second = run(store, work, "echo two > f")
    (work / "f").write_text("the user's own")

    undone = store.undo(first, second)

    assert ((work / "f").read_text(), (work / "g").read_text()) == ("the user's own", "zero")
    assert kept(undone) == {"f": "it was changed after the call"}
    store.undo(first, second, overwrite=lambda path: True)
    assert (work / "f").read_text() == "zero"


def test_an_undo_among_them_counts_as_what_it_did(store: UndoStore, work: Path) -> None:
    (work / "f").write_text("zero")
    earlier = run(store, work, "echo one > f")
    later = run(store, work, "echo x > g")
    undo = store.undo(earlier).entry_id
    assert undo is not None

    store.undo(later, undo)

    assert (work / "f").read_text() == "one\n"
    assert not (work / "g").exists()


def test_a_call_that_was_cut_off_is_asked_about_also_among_others(tmp_path: Path, work: Path) -> None:
    (work / "f").write_text("zero")
    (work / "g").write_text("zero")
    store = UndoStore(tmp_path / "undo", system=QuickCalls())
    whole = run(store, work, "echo one > f; echo one > g")
    died = textwrap.dedent(f"""
        import pathlib
        from robota.tools.undo.plan import plan_files
        from robota.tools.undo.store import UndoStore
        file = pathlib.Path({str(work / "f")!r})
        plan = plan_files([str(file)], [str(file.parent)])
        print(UndoStore({str(tmp_path / "undo")!r}).save(plan, "").entry_id)
        file.write_text("two\\n")
    """)
    cut = subprocess.run([sys.executable, "-c", died], capture_output=True, text=True, check=True).stdout

    undone = store.undo(whole, cut.strip())

    assert ((work / "f").read_text(), (work / "g").read_text()) == ("two\n", "zero")
    assert kept(undone) == {"f": "the call was cut off, so nobody knows who changed it"}


def test_nothing_to_take_back_is_said(store: UndoStore) -> None:
    with pytest.raises(ValidationError, match="Name an undo entry"):
        store.undo()


COMMANDS = (
    "echo {n} > a", "echo {n} >> b", "rm -f a", "rm -rf d; mkdir d; echo {n} > d/x", "mv b c", "cp a d",
    "chmod 600 a", "ln -sf a l", "rm -rf d", "cp -r d e", "touch a",
)  # fmt: skip


@pytest.mark.parametrize("seed", some_of(range(25)))
def test_any_series_of_calls_goes_back_and_forth_as_one(tmp_path: Path, work: Path, seed: int) -> None:
    rng = random.Random(seed)
    store = UndoStore(tmp_path / "undo", system=QuickCalls())
    run_bash("echo 0 > a; echo 0 > b; mkdir d; echo 0 > d/x", work)
    before = take_picture(work)
    entries: list[str] = []
    for number in range(rng.randint(2, 8)):
        command = rng.choice(COMMANDS).format(n=number)
        plan = plan_command(command, str(work), [str(work)])
        entries.append(call(store, work, lambda command=command: run_bash(command, work), plan))
        if rng.random() < 0.2 and (undone := store.undo(rng.choice(entries)).entry_id):
            entries.append(undone)
    after = take_picture(work)

    undone = store.undo(*entries)

    assert undone.kept == ()
    assert take_picture(work) == before
    if undone.entry_id is not None:
        store.undo(undone.entry_id)
        assert take_picture(work) == after
