from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robota.core.tool import ToolContext, tool_class
from robota.tools.builtins.search import glob_tool
from robota.tools.search import DEFAULT_LIMIT

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[True, False], ids=["ripgrep", "python"])
def ripgrep(request) -> bool:
    return request.param


@pytest.fixture
def glob(tmp_path, ripgrep):
    async def glob(pattern: str, denied=None, **arguments: Any) -> str:
        tool = glob_tool(ripgrep=ripgrep)
        rules: Any = SimpleNamespace(path_filter=lambda _: denied)
        context = ToolContext(cwd=str(tmp_path), rules=rules)
        return (await tool.run({"pattern": pattern, **arguments}, context)).text

    return glob


@pytest.fixture
def make(tmp_path):
    """Files by their paths, each a second older than the one before."""

    def make(*paths: str, repository: bool = False) -> Path:
        for age, path in enumerate(paths):
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("text\n")
            os.utime(file, (1_000_000_000 - age,) * 2)
        if repository:
            (tmp_path / ".git").mkdir()
        return tmp_path

    return make


# --- patterns ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "b.py"]),
        ("**/*.py", ["a.py", "b.py", "src/c.py", "src/deep/d.py"]),
        ("src/**/*.py", ["src/c.py", "src/deep/d.py"]),
        ("src/*.py", ["src/c.py"]),
        ("src/**", ["src/c.py", "src/deep/d.py", "src/deep/e.ts", "src/.hidden"]),
        ("src/deep/", ["src/deep/d.py", "src/deep/e.ts"]),
        ("**/deep/*", ["src/deep/d.py", "src/deep/e.ts"]),
        ("?.py", ["a.py", "b.py"]),
        ("[ac].py", ["a.py"]),
        ("[!a].py", ["b.py"]),
        ("**/*.{py,ts}", ["a.py", "b.py", "src/c.py", "src/deep/d.py", "src/deep/e.ts"]),
        ("{a,src/c}.py", ["a.py", "src/c.py"]),
        ("{src,lib}/**/{d,x{e,f}}.*", ["src/deep/d.py", "lib/xe.txt"]),
        ("src/.*", ["src/.hidden"]),
        ("*\\[1\\]*", ["list[1].txt"]),
        ("**/é.txt", ["lib/é.txt"]),
        ("**/?.txt", ["lib/é.txt"]),
        ("a.py", ["a.py"]),
        ("./a.py", ["a.py"]),
        ("src/../a.py", ["a.py"]),
        ("src", []),
        ("nothing/*", []),
        ("*[", []),
    ],
)
async def test_a_pattern_is_compared_with_paths_from_the_searched_directory(glob, make, pattern, found):
    make(
        *["a.py", "b.py", "src/c.py", "src/deep/d.py", "src/deep/e.ts", "src/.hidden"],
        *["lib/xe.txt", "lib/é.txt", "list[1].txt"],
    )
    assert await glob(pattern) == ("\n".join(found) or "(no matches)")


async def test_files_come_newest_first(glob, make):
    make("newest.txt", "sub/middle.txt", "oldest.txt")
    assert await glob("**/*.txt") == "newest.txt\nsub/middle.txt\noldest.txt"


async def test_files_of_the_same_age_come_in_the_order_of_their_paths(glob, make):
    root = make("b.txt", "a/z.txt", "a.txt")
    for path in root.rglob("*.txt"):
        os.utime(path, (1, 1))
    assert await glob("**/*.txt") == "a/z.txt\na.txt\nb.txt"


async def test_what_is_above_the_limit_is_counted(glob, make):
    make(*(f"{n}.txt" for n in range(5)))
    note = "[Showing 2 of 5 matches. Use limit parameter to see more.]"
    assert await glob("*.txt", limit=2) == f"0.txt\n1.txt\n{note}"
    assert "Showing" not in await glob("*.txt", limit=5)


async def test_a_thousand_files_are_listed_by_default(glob, tmp_path):
    for number in range(DEFAULT_LIMIT + 1):
        (tmp_path / f"{number}.txt").touch()
    lines = (await glob("*")).splitlines()
    assert len(lines) == 1001
    assert lines[-1] == "[Showing 1000 of 1001 matches. Use limit parameter to see more.]"


# --- what is passed over -------------------------------------------------------------------------------


async def test_hidden_files_are_listed_but_neither_git_nor_node_modules(glob, make):
    make(".env", "node_modules/a/index.js", "sub/node_modules/b.js", ".git/config", "sub/.git/config")
    assert await glob("**/*") == ".env"
    assert await glob("node_modules/**") == "(no matches)"
    assert await glob("**/*.js", path="node_modules") == "a/index.js"


async def test_what_git_ignores_is_left_out_unless_asked_for(glob, make):
    root = make("a.log", "build/out.js", "src/a.js", repository=True)
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    os.utime(root / ".gitignore", (1, 1))
    assert await glob("**/*") == "src/a.js\n.gitignore"
    assert await glob("build/*") == "(no matches)"
    assert await glob("**/*", include_ignored=True) == "a.log\nbuild/out.js\nsrc/a.js\n.gitignore"
    assert await glob("build/*", includeIgnored=True) == "build/out.js"


async def test_links_are_neither_followed_nor_listed(glob, make):
    root = make("real/a.txt")
    (root / "loop").symlink_to(root)
    (root / "link").symlink_to(root / "real")
    (root / "b.txt").symlink_to(root / "real" / "a.txt")
    (root / "broken.txt").symlink_to("nowhere")
    assert await glob("**/*.txt") == "real/a.txt"
    assert await glob("link/*.txt") == "(no matches)"


async def test_what_is_no_regular_file_is_not_listed(glob, make):
    root = make("a.txt")
    os.mkfifo(root / "pipe.txt")
    assert await glob("*.txt") == "a.txt"


async def test_denied_files_are_neither_listed_nor_counted(glob, make, tmp_path):
    make("a.txt", "secret/key.txt", "b.txt")
    asked: list[str] = []

    def denied(path: str) -> bool:
        asked.append(path)
        return "secret" in path

    assert await glob("**/*.txt", denied, limit=1) == (
        "a.txt\n[Showing 1 of 2 matches. Use limit parameter to see more.]"
    )
    assert sorted(asked) == sorted(str(tmp_path / path) for path in ("a.txt", "secret/key.txt", "b.txt"))


async def test_a_rule_that_fails_denies(glob, make):
    make("a.txt")

    def denied(path: str) -> bool:
        raise RuntimeError("no rules")

    assert await glob("*", denied) == "(no matches)"


async def test_behind_a_link_the_real_path_is_asked_about_too(glob, make):
    root = make("real/a.txt", "real/b.txt")
    (root / "link").symlink_to(root / "real")
    assert await glob("*", lambda path: path == str(root / "real" / "a.txt"), path="link") == "b.txt"
    assert await glob("*", lambda path: path == str(root / "link" / "a.txt"), path="link") == "b.txt"


# --- paths that lead elsewhere -------------------------------------------------------------------------


async def test_an_absolute_pattern_within_the_directory_is_understood(glob, make):
    root = make("src/a.py", "b.py")
    assert await glob(f"{root}/src/*.py") == "src/a.py"
    assert await glob(f"{root}/**/*.py") == "src/a.py\nb.py"


@pytest.mark.parametrize(
    ("pattern", "rest"), [("../*.py", "*.py"), ("sub/../../x", "x"), ("{a,../sub/*}", "*")]
)
async def test_a_pattern_that_leads_out_names_the_call_to_make(glob, make, pattern, rest):
    root = make("sub/a.py")
    answer = await glob(pattern)
    assert answer.startswith("Error: The pattern ")
    assert f"leads out of {root}: give '{root.parent}" in answer
    assert answer.endswith(f"' as `path` and {rest!r} as the pattern.")


async def test_the_home_directory_is_no_way_out(glob, make, monkeypatch, tmp_path):
    make("a.txt", "home/b.txt")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert await glob("~/*.txt") == "home/b.txt"
    monkeypatch.setenv("HOME", "/somewhere")
    assert "give '/somewhere' as `path` and '*.txt' as the pattern" in await glob("~/*.txt")


async def test_another_directory_can_be_searched(glob, make):
    root = make("src/a.py", "src/deep/b.py", "c.py", "real/place/d.py", "real/e.py")
    (root / "link").symlink_to("real/place")
    assert await glob("**/*.py", path="src") == "a.py\ndeep/b.py"
    assert await glob("*.py", path="src/../src/deep") == "b.py"
    assert await glob("*.py", path="link/..") == "e.py"


# --- bad input -----------------------------------------------------------------------------------------


async def test_a_missing_directory_is_named(glob, tmp_path):
    assert await glob("*", path="gone") == f"Error: Path not found: {tmp_path / 'gone'}"


async def test_a_file_is_no_directory(glob, make):
    root = make("a.txt")
    assert await glob("*", path="a.txt") == f"Error: Path is not a directory: {root / 'a.txt'}"


async def test_a_circle_of_links_is_no_directory(glob, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert (await glob("*", path="loop")).startswith(f"Error: Path not found: {tmp_path / 'loop'}")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a{b", "there is a `{` without `}`"),
        ("a}b", "there is a `}` without `{`"),
        ("[z-a]", "the range `z-a` is empty"),
        ("a\\", "it ends with a `\\`"),
        ("", "it is empty"),
        ("*/../x", "`..` stands behind a wildcard"),
        ("{a,b}" * 9, "its braces stand for more than 256 patterns"),
    ],
)
async def test_an_invalid_pattern_is_explained(glob, pattern, reason):
    assert await glob(pattern) == f"Error: Invalid glob pattern: {pattern} ({reason})"


async def test_many_stars_take_no_time(glob, make):
    make("a" * 200)
    assert await glob("*a" * 60 + "b") == "(no matches)"


async def test_names_with_control_characters_and_broken_bytes_can_be_shown(glob, make):
    make("a\x1b[31m\nb.txt", "\udcff.txt")
    assert await glob("*.txt") == "a b.txt\n\ufffd.txt"


def test_the_tool_only_looks():
    tool = glob_tool()
    assert (tool.name, tool_class(tool)) == ("Glob", "inspect")
    assert tool.description.startswith("List the files whose paths fit a pattern")
