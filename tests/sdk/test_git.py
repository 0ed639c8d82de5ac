"""Repositories that would run programs when git is run in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sdk.agents.test_worktree import git, make_repository, make_shop

from robota.core.errors import ConfigurationError
from robota.sdk.git import run_git
from robota.sdk.project_files import ProjectFiles
from robota.testing import call

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_repository(tmp_path)


def configure(project: Path, text: str) -> None:
    with (project / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(text)


def write_program(path: Path, trap: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    path.chmod(0o755)


async def work_isolated(tmp_path: Path) -> dict[str, object]:
    """What became of the tree of a subagent that wrote a file there."""
    shop = make_shop(tmp_path, [call("Write", file_path="src/new.txt", content="x")])
    await shop.session.submit("hi")
    return shop.result.metadata


@pytest.mark.parametrize("name", ["post-checkout", "reference-transaction", "post-index-change"])
@pytest.mark.parametrize("place", [".git/hooks", "tools"])
async def test_an_isolated_subagent_starts_no_hook_of_the_repository(
    tmp_path: Path, project: Path, name: str, place: str
) -> None:
    trap = tmp_path / "trap"
    write_program(project / place / name, trap)
    if place == "tools":
        configure(project, "[core]\n\thooksPath = tools\n")
    facts = await work_isolated(tmp_path)
    assert facts["worktreeStatus"] == "dirty"
    assert not trap.exists()


async def test_no_hook_of_the_configuration_is_started(tmp_path: Path, project: Path) -> None:
    """Later versions of git know hooks by name."""
    trap = tmp_path / "trap"
    configure(project, f'[hook "trap"]\n\tevent = post-checkout\n\tcommand = touch {trap}\n')
    assert (await work_isolated(tmp_path))["worktreeStatus"] == "dirty"
    assert not trap.exists()


@pytest.mark.parametrize("kind", ["smudge", "clean", "process"])
@pytest.mark.parametrize(
    ("name", "included"), [("trap.a", False), ("trap.a", True), ("tr\x1b[1map", False), ("tr\xe4p", True)]
)
async def test_an_isolated_subagent_starts_no_filter_of_the_repository(
    tmp_path: Path, project: Path, kind: str, included: bool, name: str
) -> None:
    trap = tmp_path / "trap"
    (project / ".gitattributes").write_text(f"* filter={name}\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "attributes")
    text = f'[filter "{name}"]\n\trequired = true\n\t{kind} = "touch {trap}; cat"\n'
    if included:
        (project / ".git" / "more").write_text(text)
        text = "[include]\n\tpath = more\n"
    configure(project, text)
    facts = await work_isolated(tmp_path)
    assert facts["worktreeStatus"] == "dirty"
    assert (Path(str(facts["worktreePath"])) / "src" / "a.txt").read_text() == "committed\n"
    assert not trap.exists()


async def test_no_file_monitor_is_started(tmp_path: Path, project: Path) -> None:
    trap = tmp_path / "trap"
    write_program(project / "tools" / "monitor", trap)
    configure(project, f"[core]\n\tfsmonitor = {project}/tools/monitor\n")
    assert (await work_isolated(tmp_path))["worktreeStatus"] == "dirty"
    assert not trap.exists()


async def test_no_remote_is_asked_for_what_is_missing(tmp_path: Path, project: Path) -> None:
    trap, program = tmp_path / "trap", project / "tools" / "remote"
    write_program(program, trap)
    configure(
        project,
        f'[remote "origin"]\n\turl = "ext::{program}"\n\tpromisor = true\n'
        "[protocol]\n\tallow = always\n[extensions]\n\tpartialClone = origin\n"
        "[core]\n\trepositoryformatversion = 1\n",
    )
    blob = git(project, "rev-parse", "HEAD:src/a.txt")
    (project / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    shop = make_shop(tmp_path)
    await shop.session.submit("hi")
    assert "git worktree failed" in str(shop.result.error)
    assert not trap.exists()


async def test_a_name_that_cannot_be_turned_off_is_refused(project: Path) -> None:
    configure(project, '[filter "a=b"]\n\tsmudge = "touch trap"\n')
    with pytest.raises(ConfigurationError, match="rename it without"):
        await run_git(str(project), "status", timeout=30)


async def test_what_the_user_has_configured_runs(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "own"
    home.mkdir()
    (home / ".gitconfig").write_text('[filter "upper"]\n\tsmudge = tr a-z A-Z\n')
    (project / ".gitattributes").write_text("a.txt filter=upper\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "attributes")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    result = await run_git(str(project), "worktree", "add", "-q", str(tmp_path / "tree"), timeout=30)
    assert result.exit_code == 0
    assert (tmp_path / "tree" / "src" / "a.txt").read_text() == "COMMITTED\n"


async def test_plain_files_are_not_taken_for_a_repository(project: Path) -> None:
    for name in ("objects", "refs"):
        (project / "src" / name).mkdir()
    (project / "src" / "HEAD").write_text("ref: refs/heads/main\n")
    (project / "src" / "config").write_text("[core]\n\tbare = true\n")
    result = await run_git(str(project / "src"), "rev-parse", "--git-dir", timeout=30)
    assert result.exit_code != 0


async def test_a_repository_whose_files_are_elsewhere_gives_no_tree(tmp_path: Path, project: Path) -> None:
    configure(project, f"[core]\n\tworktree = {tmp_path}\n")
    shop = make_shop(tmp_path)
    await shop.session.submit("hi")
    assert "has its files in" in str(shop.result.error)
    assert not (tmp_path / ".robota").exists()


async def test_a_tree_with_submodules_is_kept(tmp_path: Path, project: Path) -> None:
    other = make_repository(tmp_path / "other")
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "part")
    git(project, "commit", "-qm", "part")
    fetch = "git -c protocol.file.allow=always submodule --quiet update --init"
    shop = make_shop(tmp_path, [call("Bash", command=f"{fetch} && echo changed > part/src/a.txt")])
    await shop.session.submit("hi")
    facts = shop.result.metadata
    assert facts["worktreeStatus"] == "dirty"
    assert (Path(facts["worktreePath"]) / "part" / "src" / "a.txt").read_text() == "changed\n"


def test_listing_files_for_a_completion_starts_no_monitor_of_the_repository(
    tmp_path: Path, project: Path
) -> None:
    """Whoever types `@` has not trusted anything."""
    trap = tmp_path / "trap"
    write_program(tmp_path / "tools" / "monitor", trap)
    configure(project, f"[core]\n\tfsmonitor = {tmp_path}/tools/monitor\n\tuntrackedCache = true\n")
    (project / "new.txt").write_text("x")

    paths = ProjectFiles(str(project)).paths()

    assert "new.txt" in paths
    assert not trap.exists()


def test_the_program_that_lists_files_gets_no_key(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    git = tmp_path / "tools" / "git"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\nenv > {seen}\nprintf 'a.txt\\0'\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:/usr/bin:/bin")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-user")

    assert ProjectFiles(str(project)).paths() == ["a.txt"]
    assert "sk-ant-of-the-user" not in seen.read_text()
