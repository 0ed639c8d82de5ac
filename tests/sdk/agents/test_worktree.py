"""Subagents in a working tree of their own: made, removed or kept, and the walls around it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.agents.workshop import Workshop, define, start
from tests.sessions.live_session import heard, run

from robota.core.events import ToolEnded
from robota.sdk.agents.runner import SubagentOptions
from robota.sdk.agents.worktree import WorktreeError, WorktreeOptions, create_worktree, settle_worktree
from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import call

pytestmark = pytest.mark.anyio
FREE = PermissionRules(mode="bypassPermissions")
EDITS = PermissionRules(mode="acceptEdits", allow=("Agent",))
ALONE = define("alone", isolation="worktree")


def git(directory: Path | str, *arguments: str) -> str:
    names = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=directory, env={"PATH": os.environ["PATH"], **names}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def make_repository(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "a.txt").write_text("committed\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    return project


def make_shop(tmp_path: Path, *steps: Any, rules: PermissionRules = FREE, **options: Any) -> Workshop:
    first = start(subagent_type="alone", description="Fix the Parser!")
    return Workshop(tmp_path, [first], *steps, "report", "done", agents=[ALONE], rules=rules, **options)


async def test_an_isolated_subagent_changes_only_its_own_tree_which_is_kept(tmp_path: Path) -> None:
    project = make_repository(tmp_path)
    (project / "uncommitted.txt").write_text("mine")
    shop = make_shop(tmp_path, [call("Write", file_path="src/new.txt", content="x")], rules=EDITS)
    await shop.session.submit("hi")
    facts = shop.result.metadata
    path = Path(facts["worktreePath"])
    assert path.parent == project / ".robota" / "worktrees"
    assert path.name.startswith("fix-the-parser-")
    assert (path / "src" / "new.txt").read_text() == "x"
    assert not (project / "src" / "new.txt").exists()
    assert not (path / "uncommitted.txt").exists()
    assert facts["branchName"] == f"robota/{path.name}"
    assert facts["baseRevision"] == git(project, "rev-parse", "HEAD")
    assert (facts["worktreeStatus"], facts["parentStatus"]) == ("dirty", "dirty")
    assert facts["worktreeNextAction"].startswith(f"Review the changes in {path}, merge branch robota/")
    assert shop.result.content.startswith("report")
    assert str(path) in shop.result.content
    assert git(project, "status", "--porcelain") == "?? uncommitted.txt"


async def test_a_tree_in_which_nothing_was_done_is_removed_with_its_branch(tmp_path: Path) -> None:
    project = make_repository(tmp_path)
    shop = make_shop(tmp_path, hooks={"WorktreeRemove": [heard(tmp_path)]})
    await shop.session.submit("hi")
    facts = shop.result.metadata
    assert (facts["worktreeStatus"], facts["parentStatus"]) == ("removed", "clean")
    assert not Path(facts["worktreePath"]).exists()
    assert git(project, "branch", "--list", "robota/*") == ""
    assert git(project, "worktree", "list").count("\n") == 0
    assert shop.result.content == "report"
    [told] = shop.fired
    assert told["worktree_path"] == facts["worktreePath"]
    assert told["tool_input"]["removed"] is True


async def test_a_tree_with_a_commit_is_kept(tmp_path: Path) -> None:
    project = make_repository(tmp_path)
    commit = "git -c user.name=t -c user.email=t@example.com commit -q --allow-empty -m second"
    shop = make_shop(tmp_path, [call("Bash", command=commit)])
    await shop.session.submit("hi")
    assert shop.result.metadata["worktreeStatus"] == "dirty"
    assert git(project, "log", "-1", "--format=%s", shop.result.metadata["branchName"]) == "second"


async def test_the_workspace_of_an_isolated_subagent_is_its_tree(tmp_path: Path) -> None:
    project = make_repository(tmp_path)
    rules = PermissionRules(mode="acceptEdits", allow=("Agent",), deny=("Read(./src/a.txt)",))
    steps = (
        [call("Write", file_path=str(project / "out.txt"), content="x")],
        [call("Read", file_path="src/a.txt")],
    )
    shop = make_shop(tmp_path, *steps, rules=rules)
    await shop.session.submit("hi")
    assert not (project / "out.txt").exists()
    outside, denied = shop.inner(ToolEnded)
    assert outside.outcome == "denied"
    assert denied.outcome == "denied"
    assert "Read(./src/a.txt)" in (denied.error or "")


async def test_below_the_top_of_a_repository_the_same_directory_of_the_tree_is_used(tmp_path: Path) -> None:
    project = make_repository(tmp_path)
    shop = make_shop(tmp_path)
    tree = await create_worktree(str(project / "src"), "x", shop.session.hooks, lambda: "abcdefgh")
    assert tree.cwd == str(project / ".robota" / "worktrees" / "x-abcdefgh" / "src")


async def test_a_name_that_is_taken_is_passed_over_up_to_five_times(tmp_path: Path) -> None:
    project = make_repository(tmp_path)
    shop = make_shop(tmp_path)
    names = iter(["aaaaaaaa", "aaaaaaaa", "bbbbbbbb", *["bbbbbbbb"] * 5])

    async def make() -> str:
        tree = await create_worktree(str(project), "x", shop.session.hooks, lambda: next(names))
        return tree.branch

    assert [await make(), await make()] == ["robota/x-aaaaaaaa", "robota/x-bbbbbbbb"]
    with pytest.raises(WorktreeError, match="already exists"):
        await make()
    assert list(names) == []


async def test_what_is_no_repository_is_a_clear_error_and_nothing_runs_unguarded(tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    await shop.session.submit("hi")
    assert (shop.result.error or "").startswith(
        "Sub-agent error: A working tree of its own needs a git repository"
    )
    assert len(shop.provider.requests) == 2  # both of the parent


async def test_a_repository_without_a_commit_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    git(tmp_path / "project", "init", "-q")
    shop = make_shop(tmp_path)
    await shop.session.submit("hi")
    assert "has no commit that a working tree could be made of: commit first." in (shop.result.error or "")


async def test_trees_are_made_inside_the_repository_only(tmp_path: Path) -> None:
    project = make_repository(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (project / ".robota").symlink_to(tmp_path / "elsewhere")
    shop = make_shop(tmp_path)
    await shop.session.submit("hi")
    assert "leads out of the repository" in (shop.result.error or "")
    assert os.listdir(tmp_path / "elsewhere") == []


async def test_a_link_in_the_place_of_our_file_makes_none_elsewhere(tmp_path: Path) -> None:
    project = make_repository(tmp_path)
    (project / ".robota" / "worktrees").mkdir(parents=True)
    (project / ".robota" / "worktrees" / ".gitignore").symlink_to(tmp_path / "made")
    shop = make_shop(tmp_path)
    await shop.session.submit("hi")
    assert shop.result.metadata["worktreeStatus"] == "removed"
    assert not (tmp_path / "made").exists()


async def test_variables_of_git_do_not_lead_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_WORK_TREE", "/")
    shop = make_shop(tmp_path)
    await shop.session.submit("hi")
    assert shop.result.metadata["worktreeStatus"] == "removed"


async def test_a_hook_makes_the_tree_instead(tmp_path: Path) -> None:
    made = tmp_path / "made"
    command = f"cat > {tmp_path}/asked.json; mkdir {made}; echo working; echo {made}"
    shop = make_shop(
        tmp_path, [call("Write", file_path="x.txt", content="x")], rules=EDITS,
        hooks={"WorktreeCreate": [run(command)]},
    )  # fmt: skip
    await shop.session.submit("hi")
    assert (made / "x.txt").exists()
    facts = shop.result.metadata
    assert (facts["worktreePath"], facts["branchName"]) == (str(made), None)
    assert facts["worktreeStatus"] == "dirty"  # nobody can tell, so it is kept
    assert '"name": "fix-the-parser-' in (tmp_path / "asked.json").read_text().replace('":"', '": "')


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("exit 1", "made no working tree"),
        ("echo not/absolute", "gave no working tree"),
        ("true", "gave no working"),
    ],
)
async def test_a_hook_that_makes_no_tree_stops_the_subagent(tmp_path: Path, command: str, words: str) -> None:
    make_repository(tmp_path)
    shop = make_shop(tmp_path, hooks={"WorktreeCreate": [run(command)]})
    await shop.session.submit("hi")
    assert words in (shop.result.error or "")
    assert len(shop.provider.requests) == 2


async def test_a_tree_that_was_broken_meanwhile_is_told_about(tmp_path: Path) -> None:
    project = make_repository(tmp_path)
    shop = make_shop(tmp_path)
    tree = await create_worktree(str(project), "x", shop.session.hooks, lambda: "abcdefgh")
    (Path(tree.path) / ".git").unlink()
    (project / ".git" / "HEAD").unlink()
    facts = await settle_worktree(tree, shop.session.hooks)
    assert facts["worktreeStatus"] == "unknown"
    assert facts["worktreeNextAction"].startswith("Look at it: git status failed")


async def test_settings_say_what_a_tree_begins_with_and_what_it_shares(tmp_path: Path) -> None:
    project = make_repository(tmp_path)
    first = git(project, "rev-parse", "HEAD")
    (project / "docs").mkdir()
    (project / "docs" / "b.txt").write_text("second")
    (project / ".gitignore").write_text("packages/\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "second")
    (project / "packages").mkdir()
    (tmp_path / "outside").mkdir()
    hooks = make_shop(tmp_path).session.hooks

    async def make(name: str, **options: Any) -> Path:
        tree = await create_worktree(
            str(project), name, hooks, lambda: "abcdefgh", WorktreeOptions(**options)
        )
        return Path(tree.path)

    assert not (await make("old", base_ref=first) / "docs").exists()
    sparse = await make("sparse", sparse_paths=("docs",))
    assert ((sparse / "docs" / "b.txt").exists(), (sparse / "src").exists()) == (True, False)
    shared = await make("shared", symlink_directories=("packages", "missing", "../outside"))
    assert (shared / "packages").readlink() == project / "packages"
    assert not (shared / "missing").is_symlink()
    assert not (shared.parent / "outside").is_symlink()
    assert git(shared, "status", "--porcelain") == "?? packages"
    worktrees = WorktreeOptions(symlink_directories=("packages",))
    subagents = {"options": SubagentOptions(worktrees=worktrees)}
    shop = make_shop(tmp_path, subagents=subagents)
    await shop.session.submit("hi")
    assert shop.result.metadata["worktreeStatus"] == "removed"  # the link is nobody's work
    assert (project / "packages").is_dir()
    with pytest.raises(WorktreeError, match="has no commit 'gone'"):
        await make("gone", base_ref="gone")
