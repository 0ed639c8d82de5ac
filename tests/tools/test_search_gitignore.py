from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from robota.core.tool import ToolContext
from robota.tools.builtins.search import glob_tool

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[True, False], ids=["ripgrep", "python"])
def files(request, tmp_path, monkeypatch):
    """Write files, then list what is not ignored."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    async def files(tree: dict[str, str], below: str = "repo") -> set[str]:
        for path, text in tree.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        tool = glob_tool(ripgrep=request.param)
        result = await tool.run({"pattern": "**/*", "path": below}, ToolContext(cwd=str(tmp_path)))
        return {line for line in result.text.splitlines() if not line.endswith(".gitignore")}

    return files


def repository(rules: str, *paths: str) -> dict[str, str]:
    return {"repo/.git/HEAD": "", "repo/.gitignore": rules} | {f"repo/{path}": "" for path in paths}


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ("*.log", {"a.txt", "src/b.txt", "src/sub/c.txt"}),
        ("/a.*", {"src/a.log", "src/b.txt", "src/sub/c.txt"}),
        ("src/", {"a.txt", "a.log"}),
        ("src/*.txt", {"a.txt", "a.log", "src/a.log", "src/sub/c.txt"}),
        ("src/**", {"a.txt", "a.log"}),
        ("**/sub", {"a.txt", "a.log", "src/a.log", "src/b.txt"}),
        ("src/**/c.txt", {"a.txt", "a.log", "src/a.log", "src/b.txt"}),
        ("*.txt\n!b.txt", {"a.log", "src/a.log", "src/b.txt"}),
        ("!b.txt\n*.txt", {"a.log", "src/a.log"}),
        ("src\n!src/b.txt", {"a.txt", "a.log"}),
        ("# a comment\n\n  \na.txt   ", {"a.log", "src/a.log", "src/b.txt", "src/sub/c.txt"}),
        ("[ab].txt", {"a.log", "src/a.log", "src/sub/c.txt"}),
        ("?.txt", {"a.log", "src/a.log"}),
        ("{", {"a.txt", "a.log", "src/a.log", "src/b.txt", "src/sub/c.txt"}),
        ("a.txt/", {"a.txt", "a.log", "src/a.log", "src/b.txt", "src/sub/c.txt"}),
        ("\ufeff*.log\r", {"a.txt", "src/b.txt", "src/sub/c.txt"}),
    ],
)
async def test_rules_are_read_as_git_reads_them(files, rules, kept):
    tree = repository(rules, "a.txt", "a.log", "src/a.log", "src/b.txt", "src/sub/c.txt")
    assert await files(tree) == kept


async def test_a_deeper_file_decides_over_a_higher_one(files):
    tree = repository("*.log\n", "a.log", "keep/a.log", "keep/deep/b.log")
    assert await files(tree | {"repo/keep/.gitignore": "!*.log\n"}) == {"keep/a.log", "keep/deep/b.log"}


async def test_files_above_the_searched_directory_count_up_to_the_repository(files):
    tree = repository("*.log\nsrc/sub/x\n", "src/a.log", "src/sub/x", "src/sub/y")
    assert await files(tree | {".gitignore": "y\n"}, below="repo/src") == {"sub/y"}


async def test_a_repository_within_a_repository_has_rules_of_its_own(files):
    tree = repository("*.log\n", "a.log", "inner/b.log", "inner/c.txt")
    inner = {"repo/inner/.git/HEAD": "", "repo/inner/.gitignore": "*.txt\n"}
    assert await files(tree | inner) == {"inner/b.log"}


async def test_outside_of_a_repository_nothing_is_ignored(files):
    assert await files({"repo/.gitignore": "*.log\n", "repo/a.log": ""}) == {"a.log"}


async def test_the_lists_of_the_repository_and_of_the_user_count_last(files):
    tree = repository("!kept.tmp\n", "kept.tmp", "a.tmp", "b.mine", "c.txt")
    tree |= {"repo/.git/info/exclude": "*.tmp\n!c.mine\n", "home/.config/git/ignore": "*.mine\n"}
    assert await files(tree | {"repo/c.mine": ""}) == {"kept.tmp", "c.txt", "c.mine"}


async def test_a_worktree_uses_the_list_of_its_repository(files, tmp_path):
    def git(*arguments: str, cwd: Path = tmp_path / "main") -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)

    (tmp_path / "main").mkdir()
    git("init")
    git("commit", "--allow-empty", "-m", "first")
    git("worktree", "add", str(tmp_path / "repo"))
    (tmp_path / "main" / ".git" / "info" / "exclude").write_text("*.log\n")
    assert await files({"repo/a.log": "", "repo/b.txt": ""}) == {"b.txt"}


async def test_a_link_that_leads_nowhere_begins_no_repository(files, tmp_path):
    tree = repository("*.log", "sub/a.log", "sub/b.txt")
    (tmp_path / "repo/sub").mkdir(parents=True)
    (tmp_path / "repo/sub/.git").symlink_to("nowhere")
    assert await files(tree) == {"sub/b.txt"}
