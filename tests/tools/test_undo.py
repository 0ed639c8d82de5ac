from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.unprivileged import public_directory
from tests.tools.undo_repository import build_repository, differences, run_bash, take_picture

from robota.core.errors import StorageError, ValidationError
from robota.core.ports import Ports
from robota.tools.files.directory import SystemCalls
from robota.tools.undo.journal import Undone
from robota.tools.undo.plan import Plan, plan_command, plan_files
from robota.tools.undo.snapshot import HashCache, Scanner, Scope, cover
from robota.tools.undo.store import UndoStore


class QuickCalls(SystemCalls):
    fsync = staticmethod(lambda descriptor: None)
    sync_disk = staticmethod(lambda descriptor: None)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def store(tmp_path: Path) -> UndoStore:
    return UndoStore(tmp_path / "undo", system=QuickCalls())


def everything(work: Path) -> Plan:
    return Plan(Scope(), cover([str(work)]), workspace=str(work))


def call(store: UndoStore, work: Path, act: Callable[[], object], plan: Plan | None = None) -> str:
    saved = store.save(plan or everything(work), "a call")
    assert saved.entry_id is not None
    act()
    store.finish(saved.entry_id)
    return saved.entry_id


def run(store: UndoStore, work: Path, command: str) -> str:
    plan = plan_command(command, str(work), [str(work)])
    assert plan is not None
    return call(store, work, lambda: run_bash(command, work), plan)


def kept(undone: Undone) -> dict[str, str]:
    return {Path(each.path).name: each.reason for each in undone.kept}


# --- what is restored ----------------------------------------------------------------------------------


def test_content_mode_time_and_absence_come_back(store, work):
    (work / "old").write_text("old")
    (work / "old").chmod(0o751)
    os.utime(work / "old", ns=(1, 1_234_567_891))
    before = take_picture(work)
    entry = run(
        store, work, "echo new > old; chmod 600 old; echo x > fresh; mkdir -p made/deep; ln -s old made/l"
    )

    store.undo(entry)

    assert take_picture(work) == before


def test_an_undo_is_an_entry_that_can_be_undone_itself_again_and_again(store, work):
    (work / "f").write_text("one")
    entry = run(store, work, "echo -n two > f")
    for content in ("one", "two", "one", "two"):
        undone = store.undo(entry)
        assert (work / "f").read_text() == content
        assert undone.entry_id is not None
        entry = undone.entry_id

    last = store.entries()[-1]
    assert last.label == "undo: undo: undo: undo: a call"
    assert last.undoes == (store.entries()[-2].id,)


def test_undoing_twice_has_nothing_left_to_do(store, work):
    (work / "f").write_text("one")
    entry = run(store, work, "rm f")
    store.undo(entry)
    assert store.undo(entry) == Undone(None)


def test_a_file_with_several_names_keeps_them(store, work):
    (work / "a").write_text("shared")
    os.link(work / "a", work / "b")
    entry = run(store, work, "echo gone > a")

    store.undo(entry)

    assert (work / "b").read_text() == "shared"
    assert (work / "a").stat().st_ino == (work / "b").stat().st_ino


def test_a_link_that_took_the_place_of_a_directory_is_not_followed(store, work, tmp_path):
    (work / "d").mkdir()
    (work / "d" / "f").write_text("inside")
    (tmp_path / "other").mkdir()
    entry = run(store, work, f"rm -r d; ln -s {tmp_path}/other d")

    store.undo(entry)

    assert (work / "d" / "f").read_text() == "inside"
    assert os.listdir(tmp_path / "other") == []


def test_a_large_file_is_saved_in_pieces(store, work):
    data = os.urandom(3_000_000) + b"x" * 3_000_000
    (work / "large").write_bytes(data)
    entry = run(store, work, "truncate -s 10 large")
    store.undo(entry)
    assert (work / "large").read_bytes() == data


def test_what_compresses_well_takes_little_room_and_the_same_content_is_stored_once(store, work):
    (work / "a").write_bytes(b"x" * 5_000_000)
    shutil.copy(work / "a", work / "b")
    call(store, work, lambda: None)
    assert store.used_bytes < 100_000


def test_only_a_file_that_has_rested_is_not_read_again(work):
    rested, fresh, cache = os.fsencode(os.__file__), os.fsencode(work / "fresh"), HashCache()
    (work / "fresh").write_text("x")
    for path in (rested, fresh):
        Scanner(cache).look(path)
    known = cache.look_up(rested, os.stat(rested))
    assert known is not None
    assert known.digest == sha256(Path(os.__file__).read_bytes()).digest()
    assert cache.look_up(rested, os.stat(fresh)) is None
    assert cache.look_up(fresh, os.stat(fresh)) is None


def test_a_change_that_keeps_size_and_times_is_seen(store, work):
    path = work / "f"
    path.write_text("one")
    os.utime(path, ns=(5, 5))
    call(store, work, lambda: None)

    def cheat() -> None:
        path.write_text("two")
        os.utime(path, ns=(5, 5))

    cheat()
    entry = call(store, work, path.unlink)
    store.undo(entry)
    assert path.read_text() == "two"


def test_a_process_started_later_finds_the_entries(store, work, tmp_path):
    (work / "f").write_text("one")
    entry = run(store, work, "rm f")
    UndoStore(tmp_path / "undo").undo(entry)
    assert (work / "f").read_text() == "one"


def test_the_store_inside_the_workspace_is_not_saved_into_itself(work):
    store = UndoStore(work / ".robota" / "undo", system=QuickCalls())
    (work / "f").write_text("one")
    entry = call(store, work, (work / "f").unlink)
    assert store.entries()[0].files == 1
    store.undo(entry)
    assert (work / "f").read_text() == "one"


def test_everything_in_the_store_is_for_its_owner_alone(store, work, tmp_path):
    (tmp_path / "undo").mkdir(mode=0o755)
    (work / "f").write_text("secret")
    old = os.umask(0)
    try:
        run(store, work, "rm -rf f")
    finally:
        os.umask(old)
    for path in [tmp_path / "undo", *(tmp_path / "undo").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_an_entry_tells_what_it_is_about(tmp_path, work):
    store = UndoStore(tmp_path / "undo", ports=Ports(now=lambda: 12.5, new_id=iter(["e1", "e2"]).__next__))
    (work / "f").write_text("12345")
    plan = plan_command("rm f", str(work), [str(work)])
    assert plan is not None
    saved = store.save(plan, "rm f \ud800", tool="Bash", session_id="s", call_id="c-1")
    assert saved.entry_id == "e1"
    (work / "f").unlink()
    entry = store.finish("e1")
    assert (entry.id, entry.at, entry.label, entry.ended) == ("e1", 12.5, "rm f ?", True)
    assert (entry.files, entry.size, entry.tool, entry.session_id, entry.call_id) == (
        1,
        5,
        "Bash",
        "s",
        "c-1",
    )


def test_an_unknown_entry_is_named(store):
    with pytest.raises(ValidationError, match="There is no undo entry 'nope'"):
        store.undo("nope")


def test_a_call_that_still_runs_cannot_be_undone(store, work):
    saved = store.save(everything(work), "sleep")
    with pytest.raises(StorageError, match="“sleep” is still running"):
        store.undo(saved.entry_id)


def test_a_damaged_content_is_never_put_back(store, work, tmp_path):
    (work / "f").write_bytes(os.urandom(200))
    (work / "g").write_text("fine")
    entry = run(store, work, "echo x > f; echo y > g")
    for blob in (tmp_path / "undo" / "blobs").rglob("*"):
        if blob.is_file() and blob.stat().st_size == 200:
            blob.write_bytes(bytes(200))

    undone = store.undo(entry)

    assert "damaged" in kept(undone)["f"]
    assert ((work / "f").read_text(), (work / "g").read_text()) == ("x\n", "fine")


def test_what_a_command_made_unreadable_for_its_owner_comes_back():
    script = textwrap.dedent("""
        import os, subprocess, sys
        from robota.tools.undo.plan import plan_command
        from robota.tools.undo.store import UndoStore
        top = sys.argv[1]
        plan_command("ls", top, [top])
        if os.geteuid() == 0:
            os.setgroups([]); os.setgid(65534); os.setuid(65534)
        work = top + "/work"
        os.makedirs(work + "/d"); open(work + "/d/f", "w").write("x"); open(work + "/g", "w").write("y")
        store = UndoStore(top + "/undo")
        command = "chmod 000 g d; chmod 500 ."
        plan = plan_command(command, work, [work])
        saved = store.save(plan, command)
        subprocess.run(["bash", "-c", command], cwd=work, check=True)
        store.finish(saved.entry_id)
        preview = store.preview(saved.entry_id)
        assert oct(os.stat(work + "/g").st_mode & 0o777) == "0o0", "looking opened it"
        undone = store.undo(saved.entry_id)
        assert not undone.kept, undone.kept
        assert open(work + "/d/f").read() == "x"
        store.undo(undone.entry_id)
        print(*(oct(os.stat(work + each).st_mode & 0o777) for each in ("", "/d", "/g")))
        os.chmod(work, 0o700); os.chmod(work + "/d", 0o700)
    """)
    with public_directory() as top:
        done = subprocess.run(
            [sys.executable, "-c", script, str(top)], capture_output=True, text=True, check=False
        )
    assert (done.stderr, done.stdout) == ("", "0o500 0o0 0o0\n")


# --- edits made meanwhile ------------------------------------------------------------------------------


def test_a_file_changed_after_the_call_is_kept_and_the_rest_restored(store, work):
    for name in "ab":
        (work / name).write_text("old")
    entry = run(store, work, "echo new > a; echo new > b")
    (work / "a").write_text("mine")

    undone = store.undo(entry)

    assert kept(undone) == {"a": "it was changed after the call"}
    assert ((work / "a").read_text(), (work / "b").read_text()) == ("mine", "old")


def test_the_answer_may_be_to_overwrite_and_even_that_can_be_undone(store, work):
    (work / "a").write_text("old")
    entry = run(store, work, "rm a")
    (work / "a").write_text("mine")
    asked = []

    undone = store.undo(entry, overwrite=lambda path: asked.append(path) or True)

    assert [(each.path, each.action, each.conflict) for each in asked] == [(f"{work}/a", "restore", True)]
    assert (work / "a").read_text() == "old"
    store.undo(undone.entry_id)
    assert (work / "a").read_text() == "mine"


def test_a_file_somebody_put_into_a_new_directory_stays_and_so_does_the_directory(store, work):
    entry = run(store, work, "mkdir -p made/deep; echo x > made/deep/theirs")
    (work / "made" / "deep" / "mine").write_text("mine")

    undone = store.undo(entry)

    assert kept(undone) == {"made": "Directory not empty", "deep": "Directory not empty"}
    assert os.listdir(work / "made" / "deep") == ["mine"]


def test_a_file_in_the_place_of_a_lost_directory_is_kept(store, work):
    (work / "d").mkdir()
    (work / "d" / "f").write_text("x")
    entry = run(store, work, "rm -r d")
    (work / "d").write_text("mine")

    undone = store.undo(entry)

    assert kept(undone) == {"d": "it was changed after the call", "f": "Not a directory"}
    assert (work / "d").read_text() == "mine"


def test_a_later_call_on_the_same_file_is_a_change_too(store, work):
    (work / "f").write_text("0")
    first = run(store, work, "echo 1 > f")
    second = run(store, work, "echo 2 > f")

    assert kept(store.undo(first)) == {"f": "it was changed after the call"}
    store.undo(second)
    assert not store.undo(first).kept
    assert (work / "f").read_text() == "0"


def test_the_time_of_a_directory_that_others_used_since_is_left_alone(store, work):
    (work / "f").write_text("x")
    entry = run(store, work, "rm f")
    (work / "mine").write_text("x")
    os.utime(work, ns=(7, 7))
    store.undo(entry)
    assert work.stat().st_mtime_ns == 7


def test_a_look_at_the_repository_is_no_change_of_it(store, work):
    shutil.rmtree(work)
    build_repository(work)
    before = take_picture(work)
    entry = run(store, work, "git reset -q --hard feature")
    run_bash("touch src/main.py bin/run.sh; git status", work)

    undone = store.undo(entry)

    assert not undone.kept
    assert set(differences(before, take_picture(work))) <= {b"bin/run.sh", b".git"}


def test_an_object_that_a_later_commit_may_need_is_never_taken_away(store, work):
    run_bash("git init -q; git config user.name A; git config user.email a@b; echo x > x", work)
    entry = run(store, work, "python3 -c 'import os; os.system(\"git add x\")'")
    run_bash("git add x; git commit -q -m mine", work)
    store.undo(entry, overwrite=lambda path: path.path.endswith("/index"))
    done = subprocess.run(["git", "fsck", "--full"], cwd=work, capture_output=True, text=True, check=False)
    assert (done.returncode, "missing" in done.stdout) == (0, False)


def test_a_repository_that_a_call_made_goes_completely(store, work):
    entry = run(store, work, "git init -q sub; cd sub; echo x > x; git add x")
    store.undo(entry)
    assert os.listdir(work) == []


# --- looking before -----------------------------------------------------------------------------------


def test_a_preview_shows_what_would_change_with_sizes(store, work):
    (work / "a").write_text("12345")
    (work / "b").write_text("1")
    (work / "c").write_text("123")
    entry = run(store, work, "rm a; echo x > new; chmod 700 b; echo more >> c")
    (work / "c").write_text("mine")

    preview = store.preview(entry)

    assert [(Path(each.path).name, each.action, each.size, each.conflict) for each in preview.paths] == [
        ("a", "restore", 5, False),
        ("b", "change mode or time", 0, False),
        ("c", "restore", 3, True),
        ("new", "delete", 0, False),
    ]
    assert (preview.size, sum(each.conflict for each in preview.paths), preview.entries[0].label) == (
        8,
        1,
        "a call",
    )
    assert (work / "new").exists()


# --- random trees --------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c d", "e\nf", "ü", ".h"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "delete", "mkdir", "link", "chmod", "move"]), PATHS, PATHS),
    max_size=12,
)


def mutate(work: Path, steps: list[tuple[str, str, str]]) -> None:
    for kind, one, other in steps:
        path = work / one
        try:
            match kind:
                case "write":
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(other)
                case "delete":
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                case "mkdir":
                    path.mkdir(parents=True)
                case "link":
                    path.symlink_to(other)
                case "chmod":
                    path.chmod(0o700 if path.stat().st_mode & 0o77 else 0o755)
                case "move":
                    path.rename(work / other)
        except OSError:
            continue


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(  # a link to what has the same names as the directory whose place it took
    first=[("write", "a/b", "a")],
    second=[("delete", "a", ""), ("link", "a", "b"), ("write", "b/b", "a")],
)
@given(first=STEPS, second=STEPS)
def test_any_change_of_a_tree_is_undone_and_done_again(tmp_path_factory, first, second):
    top = tmp_path_factory.mktemp("random")
    work = top / "work"
    work.mkdir()
    mutate(work, first)
    before = take_picture(work)
    store = UndoStore(top / "undo", system=QuickCalls())
    entry = call(store, work, lambda: mutate(work, second))
    after = take_picture(work)

    undone = store.undo(entry)
    assert (take_picture(work), undone.kept) == (before, ())
    if undone.entry_id is not None:
        store.undo(undone.entry_id)
        assert take_picture(work) == after
    shutil.rmtree(top)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=STEPS, second=STEPS, third=STEPS)
def test_no_edit_made_meanwhile_is_ever_lost(tmp_path_factory, first, second, third):
    top = tmp_path_factory.mktemp("random")
    work = top / "work"
    work.mkdir()
    mutate(work, first)
    store = UndoStore(top / "undo", system=QuickCalls())
    entry = call(store, work, lambda: mutate(work, second))
    after = take_picture(work)
    mutate(work, third)
    theirs = {
        path: state[::4]
        for path, state in take_picture(work).items()
        if not stat.S_ISDIR(state[0]) and after.get(path, ())[::4] != state[::4]
    }

    store.undo(entry)

    now = take_picture(work)
    assert {path: now[path][::4] for path in theirs} == theirs
    shutil.rmtree(top)


def test_a_file_written_through_a_link_is_saved_where_it_really_is(store, work, tmp_path):
    (tmp_path / "real").write_text("old")
    (work / "link").symlink_to(tmp_path / "real")
    entry = call(
        store, work, lambda: (work / "link").write_text("new"), plan_files([f"{work}/link"], [str(work)])
    )
    store.undo(entry)
    assert (tmp_path / "real").read_text() == "old"
    assert (work / "link").is_symlink()
