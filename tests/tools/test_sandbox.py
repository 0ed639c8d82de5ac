from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.support.processes import mark
from tests.support.unprivileged import bound_by_modes

from robota.core.errors import ConfigurationError, ToolExecutionError
from robota.core.permissions import paths
from robota.core.permissions.paths import find_protection
from robota.core.tool import ToolContext
from robota.tools.builtins.bash import bash_tool
from robota.tools.processes import ProcessTable
from robota.tools.sandbox.bubblewrap import find_bubblewrap
from robota.tools.sandbox.landlock import _allowed
from robota.tools.sandbox.policy import (
    GIT_NAMES,
    HOME_NAMES,
    PROJECT_NAMES,
    SandboxPolicy,
    find_caches,
    find_protected,
    workspace_policy,
)
from robota.tools.sandbox.refusal import is_tame_repository
from robota.tools.sandbox.sandbox import Sandbox, remove_tree

__all__ = ["mark"]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mark")]

NOTHING_WORKS = "the sandbox is required, and none works here (no kind of sandbox is allowed)"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "workspace"
    path.mkdir()
    return path


# --- the policy ----------------------------------------------------------------------------------------


def test_a_workspace_may_be_written_with_its_added_and_a_private_directory(
    workspace: Path, tmp_path: Path
) -> None:
    for name in ("added", "tmp"):
        (tmp_path / name).mkdir()
    policy = workspace_policy(
        str(workspace), str(tmp_path / "tmp"), additional_dirs=["../added", "../not-there"], home="/home/x"
    )
    assert policy.writable == (str(workspace), str(tmp_path / "added"), str(tmp_path / "tmp"))
    assert (policy.tmp, policy.network) == (str(tmp_path / "tmp"), "off")
    assert {str(tmp_path / "added" / ".mcp.json"), str(workspace / ".claude")} <= set(
        policy.read_only_even_if_missing
    )


def test_links_are_followed(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)
    (workspace / "shared").mkdir()
    (workspace / ".claude").symlink_to("shared")
    policy = workspace_policy(str(tmp_path / "link"), str(tmp_path), deny_read=["../link/secret"])
    assert policy.writable[0] == str(workspace)
    assert policy.deny_read == (str(workspace / "secret"),)
    assert str(workspace / "shared") in policy.read_only_even_if_missing


def test_the_whole_file_system_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="whole file system"):
        workspace_policy("/", str(tmp_path))


def test_a_home_directory_in_the_workspace_is_protected_like_a_home(workspace: Path, tmp_path: Path) -> None:
    home = workspace / "me"
    home.mkdir()
    guarded = workspace_policy(str(workspace), str(tmp_path), home=str(home)).read_only_even_if_missing
    assert {str(home / ".bashrc"), str(home / ".ssh"), str(home / ".mcp.json")} <= set(guarded)
    assert str(workspace / ".bashrc") not in guarded


def test_start_up_files_elsewhere_are_protected_if_they_exist(workspace: Path) -> None:
    (workspace / ".zshrc").touch()
    assert str(workspace / ".zshrc") in find_protected(str(workspace))
    assert str(workspace / ".bashrc") not in find_protected(str(workspace))


def test_a_git_directory_is_protected_with_its_submodules_and_worktrees(workspace: Path) -> None:
    for name in ("modules/vendor/lib/modules/deep", "worktrees/other"):
        (workspace / ".git" / name).mkdir(parents=True)
    for name in ("modules/vendor/lib", "modules/vendor/lib/modules/deep"):
        (workspace / ".git" / name / "HEAD").touch()
    guarded = {
        path.removeprefix(f"{workspace}/.git/") for path in find_protected(str(workspace)) if ".git/" in path
    }
    assert {
        *GIT_NAMES,
        "modules/vendor/lib/config",
        "modules/vendor/lib/modules/deep/hooks",
        "worktrees/other/commondir",
    } <= guarded


def test_every_name_that_permissions_protect_is_known_here() -> None:
    names = {*PROJECT_NAMES, *HOME_NAMES}
    pairs = {"/".join(pair) for pair in paths._PROTECTED_PAIRS if pair[0] != "etc"}
    assert paths._PROTECTED_FILES | paths._PROTECTED_DIRECTORIES | pairs <= names
    assert {os.path.basename(name) for name in GIT_NAMES} == paths._PROTECTED_IN_GIT
    directories = paths._PROTECTED_DIRECTORIES | {".robota", ".claude", *pairs}
    for name in names:
        inside = f"/w/{name}/settings.json" if name in directories else f"/w/{name}"
        assert find_protection([inside]) is not None, name


def test_what_is_missing_is_held_or_refused_afterwards(workspace: Path, tmp_path: Path) -> None:
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".vscode").mkdir()

    def names(paths: tuple[str, ...]) -> set[str]:
        return {path.removeprefix(f"{workspace}/") for path in paths if not path.endswith(".git")}

    policy = workspace_policy(str(workspace), str(tmp_path), home="/home/x", protection="existing")
    assert names(policy.refused) == {
        ".robota", ".claude", ".claude-plugin", ".idea", ".zed", ".mcp.json", ".gitmodules", ".envrc"
    }  # fmt: skip
    assert names(policy.read_only_even_if_missing) == {".vscode", *(f".git/{name}" for name in GIT_NAMES)}
    loose = workspace_policy(
        str(workspace), str(tmp_path), home="/home/x", protection="none", read_only=["a"]
    )
    assert {".git/commondir", ".git/config", ".mcp.json"} <= names(loose.refused)
    assert names(loose.read_only_even_if_missing) == {"a"}
    assert "/tmp" in loose.writable


def test_the_git_directory_above_a_workspace_belongs_to_it(tmp_path: Path) -> None:
    (tmp_path / "work" / "below").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", tmp_path / "work"], check=True)
    git = str(tmp_path.resolve() / "work" / ".git")
    policy = workspace_policy(str(tmp_path / "work" / "below"), str(tmp_path / "tmp"), home="/home/x")
    assert git in policy.writable
    assert {f"{git}/config", f"{git}/hooks"} <= set(policy.read_only_even_if_missing)
    assert str(tmp_path.resolve() / "work") not in policy.writable
    assert workspace_policy(str(tmp_path / "work"), str(tmp_path / "tmp"), home="/home/x").writable[1:] == (
        str(tmp_path / "tmp"),
    )


@pytest.mark.parametrize("target", ["/etc", "../elsewhere", "/"])
def test_a_file_that_only_claims_to_lead_to_a_git_directory_opens_nothing(
    workspace: Path, tmp_path: Path, target: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "HEAD").touch()
    (workspace / ".git").write_text(f"gitdir: {target}\n")
    policy = workspace_policy(str(workspace), str(tmp_path / "tmp"), home="/home/x")
    assert policy.writable == (str(workspace), str(tmp_path / "tmp"))


def test_caches_are_found_or_moved(tmp_path: Path) -> None:
    home, tmp = tmp_path / "home", tmp_path / "tmp"
    for name in (".cache", ".cargo", ".gradle/caches", "pip"):
        (home / name).mkdir(parents=True)
    environment = {"PIP_CACHE_DIR": str(home / "pip"), "UV_CACHE_DIR": "/", "GOPATH": str(home / "nowhere")}
    found = find_caches(str(home), environment, str(tmp))
    expected = (".gradle/caches", "pip", ".cache", ".cargo/registry", ".cargo/git")
    assert found.writable == tuple(str(home / name) for name in expected)
    assert found.variables == {"npm_config_cache": str(tmp / "caches" / "npm")}
    assert os.path.isdir(found.variables["npm_config_cache"])


def test_a_cache_that_holds_the_home_directory_is_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PIP_CACHE_DIR": str(home), "CCACHE_DIR": "relative"}
    assert find_caches(str(home), environment, str(tmp_path / "tmp")).writable == ()


# --- what was made where nothing may be ----------------------------------------------------------------

FRESH = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"


@pytest.mark.parametrize(
    ("more", "tame"),
    [
        ("", True),
        ('[remote "origin"]\n\turl = https://example.com/a.git\n\tfetch = +refs/heads/*:refs/x/*\n', True),
        ('[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = Ann Lee\n', True),
        ("\tfsmonitor = ./evil\n", False),
        ("\tsshCommand = ./evil\n", False),
        ("[include]\n\tpath = ../c\n", False),
        ('[alias]\n\tst = "!evil"\n', False),
        ("\tbare = false \\\n\n", False),
        ("[core] fsmonitor = ./evil\n", False),
        ("[core]\tbare = false\r\tfsmonitor = ./evil\n", False),
    ],
)
def test_a_repository_is_tame_when_its_configuration_runs_nothing(
    workspace: Path, more: str, tame: bool
) -> None:
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "hooks" / "pre-commit.sample").touch()
    (workspace / ".git" / "config").write_bytes((FRESH + more).encode())
    assert is_tame_repository(str(workspace / ".git")) == tame


def test_git_init_makes_a_tame_repository(workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", workspace], check=True)
    assert is_tame_repository(str(workspace / ".git"))
    (workspace / ".git" / "hooks" / "post-checkout").touch()
    assert not is_tame_repository(str(workspace / ".git"))


# --- what Landlock is told -----------------------------------------------------------------------------


def test_a_directory_with_an_exception_is_allowed_entry_by_entry(workspace: Path) -> None:
    for name in ("src", ".git/hooks", ".git/objects"):
        (workspace / name).mkdir(parents=True)
    for name in ("top", ".git/config"):
        (workspace / name).touch()
    (workspace / "link").symlink_to("/")
    exceptions = [str(workspace / name) for name in (".git/config", ".git/hooks", ".claude")]
    allowed = {path.removeprefix(f"{workspace}/") for path in _allowed([str(workspace)], exceptions)}
    assert allowed == {"src", "top", ".git/objects"}
    assert list(_allowed([str(workspace / "src")], exceptions)) == [str(workspace / "src")]
    assert list(_allowed([str(workspace / ".git" / "hooks")], exceptions)) == []
    below = str(workspace / ".claude" / "worktrees")
    assert list(_allowed([below], exceptions)) == [below]


# --- which kind ----------------------------------------------------------------------------------------


async def test_off_runs_commands_as_they_are() -> None:
    tool = bash_tool()
    assert (tool.sandbox, tool.auto_allow_bash_if_sandboxed) == (None, False)
    result = await tool.run({"command": "echo free"}, ToolContext())
    assert (result.text, result.metadata) == ("free", {"exitCode": 0})


async def test_required_and_unavailable_runs_nothing(workspace: Path) -> None:
    tool = bash_tool(sandbox=Sandbox("required", backends=()))
    result = await tool.run({"command": "touch ran"}, ToolContext(cwd=str(workspace)))
    assert (result.ok, result.error_code) == (False, "not_started")
    assert NOTHING_WORKS in (result.error or "")
    assert list(workspace.iterdir()) == []


async def test_required_and_unavailable_starts_nothing_in_the_background(workspace: Path) -> None:
    async with ProcessTable() as table:
        tool = bash_tool(table=table, sandbox=Sandbox("required", backends=()))
        arguments = {"command": "touch ran", "run_in_background": True}
        result = await tool.run(arguments, ToolContext(cwd=str(workspace)))
        assert NOTHING_WORKS in (result.error or "")
        assert table.processes == ()


async def test_auto_and_unavailable_runs_and_says_so_once() -> None:
    tool = bash_tool(sandbox=Sandbox("auto", backends=()))
    first = await tool.run({"command": "echo free"}, ToolContext())
    assert (first.text, first.metadata) == (
        "free",
        {
            "exitCode": 0,
            "sandbox": "off",
            "sandboxNote": "Commands run without a sandbox: no kind of sandbox is allowed.",
        },
    )
    second = await tool.run({"command": "echo free"}, ToolContext())
    assert second.metadata == {"exitCode": 0, "sandbox": "off"}


async def test_a_bubblewrap_that_does_not_confine_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("HOME", str(tmp_path))
    backend, reason = await Sandbox("required", backends=["bubblewrap"]).find_backend()
    assert backend is None
    assert "a command could write to /var/tmp" in reason
    assert sorted(tmp_path.iterdir()) == [fake]


async def test_a_bubblewrap_that_does_not_work_is_found_out_by_running_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    sandbox = Sandbox("required", backends=["bubblewrap"])
    reason = "bubblewrap: bwrap: No permissions to create a new namespace"
    assert await sandbox.find_backend() == (None, reason)
    with pytest.raises(ToolExecutionError, match="No permissions to create a new namespace"):
        await sandbox.confine(["true"], "/tmp", {})


def test_a_bubblewrap_in_the_workspace_is_not_used(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "bwrap").write_text("#!/bin/sh\n")
    (workspace / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{workspace}:.:")
    monkeypatch.chdir(workspace)
    assert find_bubblewrap(SandboxPolicy(writable=(str(workspace),), tmp="/tmp")) is None


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'off', 'auto' or 'required'"):
        Sandbox("maybe")  # type: ignore[arg-type]  # what a settings file may say


def test_the_wish_to_allow_sandboxed_commands_is_carried_by_the_tool() -> None:
    sandbox = Sandbox("auto")
    tool = bash_tool(sandbox=sandbox, auto_allow_bash_if_sandboxed=True)
    assert (tool.sandbox, tool.auto_allow_bash_if_sandboxed) == (sandbox, True)


# --- the launcher --------------------------------------------------------------------------------------


def launch(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "robota.tools.sandbox", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--write", "/tmp"),
        ("--write", "/tmp", "--"),
        ("--network", "on", "--", "true"),
        ("--write", "/tmp", "--elsewhere", "/", "--", "true"),
        ("--", "true"),
        ("true",),
    ],
)
def test_the_launcher_runs_nothing_without_a_policy(arguments: tuple[str, ...]) -> None:
    done = launch(*arguments)
    assert done.returncode == 125
    assert done.stderr.startswith("robota sandbox: ")
    assert done.stderr.endswith("; nothing was run.\n")
    assert done.stdout == ""


def test_a_policy_is_data() -> None:
    policy = SandboxPolicy(
        writable=("/w",), tmp="/t", read_only_even_if_missing=("/w/.git",), deny_read=("/s",)
    )
    assert msgspec.json.decode(msgspec.json.encode(policy), type=SandboxPolicy) == policy


def test_what_lies_around_a_directory_stays_as_it_is_when_it_is_removed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    cache = tmp_path / "tmp" / "cache"
    cache.mkdir(parents=True)
    (cache / "file").write_text("x")
    cache.chmod(0o500)

    with bound_by_modes():
        remove_tree(str(tmp_path / "tmp"))
    remove_tree(str(tmp_path / "tmp"))  # somebody else has removed it

    assert not (tmp_path / "tmp").exists()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
