from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from robota.tools.undo.git import find_repository
from robota.tools.undo.plan import Plan, plan_command, plan_files


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    (path / "src").mkdir(parents=True)
    for name in ("a.txt", "b.txt", ".hidden", "src/x.py"):
        (path / name).touch()
    return path


def plan(command: str, work: Path, **options: str) -> Plan | None:
    return plan_command(command, str(work), [str(work)], home=str(work.parent), **options)


def named(command: str, work: Path) -> list[str]:
    """The trees of a command that is saved exactly, relative to the workspace."""
    found = plan(command, work)
    assert found is not None
    assert found.whole is None
    return [os.path.relpath(tree, work) for tree in found.targets.trees]


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cat a.txt | grep -n x | sort | uniq -c",
        "cd src && ls",
        "git status; git log --oneline | head -3",
        "git stash list && git remote -v && git reflog",
        "sed -n 1,5p a.txt",
        "awk '{print $1}' a.txt",
        "find . -name '*.py'",
        "echo hi > /dev/null 2>&1",
        "test -f a.txt && echo yes",
        "x=1; echo $x",
        "timeout 5 cat a.txt",
    ],
)
def test_nothing_is_saved_for_a_command_that_only_reads(command, work):
    assert plan(command, work) is None


@pytest.mark.parametrize(
    ("command", "trees"),
    [
        ("rm a.txt", ["a.txt"]),
        ("rm -rf src", ["src"]),
        ("rm *.txt", ["*.txt", "a.txt", "b.txt"]),
        ("rm s*/*.py", ["s*", "src/x.py"]),
        ("rm [ab].txt", ["[ab].txt", "a.txt", "b.txt"]),
        ("rm ?.txt .h*", [".h*", ".hidden", "?.txt", "a.txt", "b.txt"]),
        ("rm 'a.txt' \"*.txt\"", ["*.txt", "a.txt"]),
        ("rm ~/outside", ["../outside"]),
        ("rm $HOME/outside $PWD/a.txt", ["../outside", "a.txt"]),
        ("cd src && rm x.py", ["src/x.py"]),
        ("rm src/../a.txt", ["a.txt"]),
        ("echo x > a.txt", ["a.txt"]),
        ("mkdir -p new/deep/er", ["new"]),
        ("cp a.txt src", ["src/a.txt"]),
        ("cp -r src/. new", ["new"]),
        ("mv a.txt b.txt", ["a.txt", "b.txt"]),
        ("rm s[a-z]c/x.py '['", ["[", "s[a-z]c", "src/x.py"]),
        ("cat a.txt | tee b.txt", ["b.txt"]),
        ("sudo rm a.txt; time rm b.txt", ["a.txt", "b.txt"]),
        ("chmod -R 700 src", ["src"]),
        ("dd if=a.txt of=b.txt", ["b.txt"]),
        ("bash -c 'rm a.txt'", ["a.txt"]),
    ],
)
def test_a_command_whose_words_say_it_all_is_saved_exactly(command, trees, work):
    assert sorted(named(command, work)) == sorted(trees)


@pytest.mark.parametrize(
    "command",
    [
        "make",
        "python3 -c 'x'",
        'rm "$X"',
        "rm $(ls)",
        "ls | xargs rm",
        "find . -delete",
        "find . -exec touch a.txt ';' -delete",
        "for f in *; do rm $f; done",
        "sed -i.bak d a.txt",
        "sed -n 'w a.txt' b.txt",
        "awk '{print > $1}' a.txt",
        "cp --parents a.txt src",
        "cp -t src *.txt",
        "chmod -x a.txt",
        "rm -rf src; unknown",
        "PATH=/x ls",
        "export PATH=/x; ls",
        "cd $X && rm a.txt",
        "echo 'unclosed",
        "git diff --output=a.txt",
        "git reflog expire --all",
        "sort -o a.txt a.txt; tar x",
        "strace -o a.txt ls",
        "let 'a[$(rm a.txt)]=1'",
        "cd src; > x.py",
    ],
)
def test_a_command_that_may_do_anything_has_the_whole_workspace_saved(command, work):
    found = plan(command, work)
    assert found is not None
    assert found.whole is not None
    assert found.whole.trees == (str(work),)


def test_what_a_link_leads_to_is_saved_when_it_is_written_through_not_when_it_is_removed(work):
    (work / "link").symlink_to("src/x.py")
    assert named("echo x > link", work) == ["link", "src/x.py"]
    assert named("rm link", work) == ["link"]


def test_a_place_outside_that_a_command_names_is_saved_besides_the_workspace(work):
    found = plan("make; rm -r ../other", work)
    assert found is not None
    assert found.targets.trees == (str(work.parent / "other"),)
    assert str(work) in found.scope.trees


@pytest.mark.parametrize(
    "command", ["cd ../other && make", "cd ../other; echo 'unclosed", "make -C ../other"]
)
def test_a_directory_elsewhere_is_not_saved_because_an_unknown_command_runs_in_it(command, work):
    (work.parent / "other").mkdir()
    found = plan(command, work)
    assert found is not None
    assert found.scope.trees == (str(work),)


def test_where_an_unknown_command_runs_elsewhere_is_said(work):
    (work.parent / "other").mkdir()
    found = plan("cd ../other && make && touch made; rm -r /usr/local/some", work)
    assert found is not None
    assert found.outside == (str(work.parent / "other"),)
    assert set(found.targets.trees) == {"/usr/local/some", str(work.parent / "other" / "made")}
    unreadable = plan_command("echo 'unclosed", "/usr", [str(work)])
    assert unreadable is not None
    assert (unreadable.scope.trees, unreadable.outside) == ((str(work),), ("/usr",))


def test_a_repository_elsewhere_in_which_git_works_is_saved(work):
    other = work.parent / "other"
    subprocess.run(["git", "init", "-q", other], check=True)
    found = plan("git -C ../other reset --hard", work)
    assert found is not None
    assert found.outside == ()
    assert str(other) in found.scope.trees


def test_in_a_directory_behind_a_link_both_meanings_of_the_one_above_are_saved(work, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(work)
    found = plan_command("cd .. && rm x", str(tmp_path / "elsewhere" / "link"), [str(work)])
    assert found is not None
    assert found.targets.trees == (f"{tmp_path}/elsewhere/x", f"{tmp_path}/x")


def test_devices_are_not_files_to_save(work):
    assert plan("echo x > /dev/stderr", work) is None


def test_git_in_a_subdirectory_has_the_whole_repository_saved_but_not_its_objects(tmp_path):
    for name in ("objects", "refs", "HEAD"):
        (tmp_path / ".git" / name).mkdir(parents=True)
    (tmp_path / "sub").mkdir()
    found = plan_command("git reset --hard", str(tmp_path / "sub"), [str(tmp_path / "sub")])
    assert found is not None
    assert found.whole is not None
    assert str(tmp_path) in found.whole.trees
    assert found.excluded == (f"{tmp_path}/.git/objects",)
    for command in ("git gc", "git -c x=y reset", "git reset --hard; make", "git --git-dir=x reset"):
        careful = plan_command(command, str(tmp_path), [str(tmp_path)])
        assert careful is not None
        assert careful.excluded == ()


def test_git_with_another_directory_is_followed_there(tmp_path, work):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    for command in ("git -C ../repo reset --hard", "cd ../repo && git reset --hard"):
        found = plan(command, work)
        assert found is not None
        assert found.targets.trees == (f"{tmp_path}/repo/.git",)


def test_a_linked_working_tree_leads_to_the_repository_it_belongs_to(tmp_path):
    own = tmp_path / "main" / ".git" / "worktrees" / "tree"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text(f"gitdir: {own}\n")
    repository = find_repository(str(tmp_path / "tree"))
    assert repository is not None
    assert repository.top == str(tmp_path / "tree")
    assert repository.folders == (str(own), str(tmp_path / "main" / ".git"))


def test_a_directory_without_a_repository_has_none(tmp_path):
    assert find_repository(str(tmp_path)) is None


def test_a_new_file_covers_the_directories_that_are_made_for_it(work):
    found = plan_files([f"{work}/new/deep/file"], [str(work)])
    assert found.targets.trees == (f"{work}/new",)
    assert found.targets.paths == (str(work),)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no disk in memory here")
def test_a_workspace_on_the_disk_in_memory_is_saved_although_it_is_below_dev():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        found = plan_command("make", work, [work])
        assert found is not None
        assert found.scope.trees == (os.path.realpath(work),)


def test_a_name_that_the_command_itself_makes_may_lead_to_any_file(work):
    for command in ("ln -s a.txt new && echo x > new", "cp -a src new; echo x > new/y", "mv a.txt b; tee b"):
        found = plan(command, work)
        assert found is not None
        assert found.whole is not None, command
    assert named("mv a.txt new && mv new a.txt", work) == ["a.txt", "new"]
    assert named("ln -s a.txt new && rm new", work) == ["new"]
    assert named("cp a.txt src && cp b.txt src", work) == ["src/a.txt", "src/b.txt"]
