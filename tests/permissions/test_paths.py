"""Files under rules and modes: both forms of a path, links, the workspace, protected files."""

from __future__ import annotations

from pathlib import Path

import pytest

from robota.core.permissions import evaluate_permission

ALLOWED = {"allow": ["Edit(src/**)", "Write(src/**)"]}


class Tree:
    """A workspace `w` beside a directory `out`, with links between them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd = root / "w"
        for directory in ("w/src", "w/.git", "out", "home"):
            (root / directory).mkdir(parents=True)
        for file in ("w/src/a.py", "w/.env", "out/x"):
            (root / file).touch()
        self.link("w/src/link", root / "out")
        self.link("w/outside", root / "out")
        self.link("w/current", root / "w/src")
        self.link("w/dangling", root / "out/missing")
        self.link("w/envlink", root / "w/.env")
        self.link("w/configlink", root / "w/.git/config")
        self.link("w/loop", Path("loop"))
        self.link("reached", root / "w")

    def link(self, name: str, target: Path) -> None:
        (self.root / name).symlink_to(target)

    def decide(
        self, tool: str, path: object, *, cwd: Path | None = None, mode: str = "default", **options: object
    ) -> str:
        arguments = path if isinstance(path, dict) else {"file_path": path if path is None else str(path)}
        where, home = str(cwd or self.cwd), str(self.root / "home")
        return evaluate_permission(tool, arguments, mode=mode, cwd=where, home=home, **options)  # type: ignore[arg-type]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


# --- allow ---


@pytest.mark.parametrize(
    "path", ["src/a.py", "./src/a.py", "src//a.py", "src/new/deep.py", "src/../src/a.py", "../w/src/a.py"]
)
def test_a_path_rule_covers_every_spelling_of_the_file(tree: Tree, path: str) -> None:
    assert tree.decide("Edit", path, **ALLOWED) == "auto"
    assert tree.decide("Write", {"filePath": path}, **ALLOWED) == "auto"
    assert tree.decide("Edit", tree.cwd / path, **ALLOWED) == "auto"


@pytest.mark.parametrize(
    "path", ["srcx/a", "src-2/a", "src/../x", "../x", "src", "/etc/passwd", "~/src/a", "src/link/x", "src/\0"]
)
def test_a_path_rule_covers_nothing_else(tree: Tree, path: str) -> None:
    assert tree.decide("Edit", path, **ALLOWED) == "approve"


def test_a_workspace_reached_through_a_link_is_the_same_workspace(tree: Tree) -> None:
    link = tree.root / "reached"
    assert tree.decide("Edit", "src/a.py", cwd=link, **ALLOWED) == "auto"
    assert tree.decide("Edit", link / "src/a.py", cwd=link, **ALLOWED) == "auto"
    assert tree.decide("Edit", tree.cwd / "src/a.py", cwd=link, **ALLOWED) == "auto"
    assert tree.decide("Edit", link / "src/a.py", allow=[f"Edit({link}/**)"]) == "auto"
    assert tree.decide("Edit", "src/a.py", cwd=link, mode="acceptEdits") == "auto"


def test_a_link_inside_the_workspace_widens_no_rule(tree: Tree) -> None:
    assert tree.decide("Edit", "current/a.py", allow=["Edit(current/**)"]) == "auto"
    assert tree.decide("Edit", "outside/x", allow=["Edit(outside/**)"]) == "approve"
    assert tree.decide("Write", "dangling", allow=["Write(dangling)"]) == "approve"
    assert tree.decide("Write", "loop", allow=["Write(loop)"]) == "approve"


def test_a_leading_slash_is_the_root_a_tilde_the_home_anything_else_the_working_directory(tree: Tree) -> None:
    home = tree.root / "home"
    assert tree.decide("Edit", tree.cwd / "x", allow=[f"Edit({tree.cwd}/x)"]) == "auto"
    assert tree.decide("Edit", tree.cwd / "x", allow=[f"Edit(/{tree.cwd}/x)"]) == "auto"
    assert tree.decide("Edit", home / "x", allow=["Edit(~/x)"]) == "auto"
    assert tree.decide("Edit", "x", allow=["Edit(./x)"]) == "auto"
    assert tree.decide("Edit", "src/x", allow=["Edit(/src/**)"]) == "approve"
    assert tree.decide("Edit", "src/a.py", allow=["Edit(src/**/*.py)"]) == "auto"
    assert tree.decide("Edit", tree.root / "out/x.md", allow=["Edit(*.md)"]) == "approve"


def test_both_spellings_of_an_argument_must_be_covered(tree: Tree) -> None:
    assert tree.decide("Edit", {"file_path": "src/a", "filePath": "/etc/x"}, **ALLOWED) == "approve"
    assert tree.decide("Read", {"file_path": "a", "filePath": ".env"}, deny=["Read(.env)"]) == "deny"


def test_an_edit_rule_does_not_allow_writing(tree: Tree) -> None:
    assert tree.decide("Write", "src/a.py", allow=["Edit(src/**)"]) == "approve"


# --- deny ---


@pytest.mark.parametrize(
    "path", [".env", "./.env", "a/../.env", ".//.env", "envlink", "src/../envlink", "sub/.env"]
)
def test_a_read_deny_holds_for_every_way_to_the_file(tree: Tree, path: str) -> None:
    rules = {"deny": ["Read(.env)"]}
    assert tree.decide("Read", path, **rules) == "deny"
    assert tree.decide("Read", tree.cwd / path, **rules) == "deny"
    assert tree.decide("Edit", path, mode="bypassPermissions", **rules) == "deny"
    assert tree.decide("Grep", {"pattern": "x", "path": path}, **rules) == "deny"


@pytest.mark.parametrize("path", [".env.example", "env", "x.env", "src/a.py", ".environment"])
def test_a_read_deny_is_about_that_name_only(tree: Tree, path: str) -> None:
    assert tree.decide("Read", path, deny=["Read(.env)"]) == "auto"


def test_directories_are_compared_by_component(tree: Tree) -> None:
    for rule in ("Read(secrets/**)", "Read(secrets)", "Read(./secrets/)"):
        assert tree.decide("Read", "secrets/a/b", deny=[rule]) == "deny"
        assert tree.decide("Read", "secrets-2/a", deny=[rule]) == "auto"
        assert tree.decide("Grep", {"pattern": "x", "path": "secrets"}, deny=[rule]) == "deny"
        assert tree.decide("Glob", {"pattern": "secrets/*"}, deny=[rule]) == "deny"
        assert tree.decide("Grep", {"pattern": "secrets", "path": "src"}, deny=[rule]) == "auto"


def test_a_wider_search_is_left_to_the_tool_which_skips_denied_files(tree: Tree) -> None:
    assert tree.decide("Grep", {"pattern": "x"}, deny=["Read(.env)"]) == "auto"
    assert tree.decide("Glob", {"pattern": "**/*"}, deny=["Read(.env)"]) == "auto"
    assert tree.decide("Grep", {"pattern": "x", "glob": ".env"}, deny=["Read(.env)"]) == "deny"


def test_a_deny_follows_links_both_ways(tree: Tree) -> None:
    assert tree.decide("Read", "src/link/x", deny=[f"Read({tree.root}/out/**)"]) == "deny"
    assert tree.decide("Read", tree.root / "out/x", deny=["Read(src/link/**)"]) == "deny"
    assert tree.decide("Read", "dangling", deny=[f"Read({tree.root}/out/missing)"]) == "deny"


def test_a_deny_pattern_that_begins_with_a_wildcard_reaches_everywhere(tree: Tree) -> None:
    for path in ("key.pem", "a/b/key.pem", "/other/key.pem"):
        assert tree.decide("Read", path, deny=["Read(**/*.pem)"]) == "deny"
        assert tree.decide("Read", path, deny=["Read(*.pem)"]) == "deny"


def test_write_and_edit_denials_bind_each_other_and_not_reading(tree: Tree) -> None:
    assert tree.decide("Edit", "x", mode="bypassPermissions", deny=["Write(x)"]) == "deny"
    assert tree.decide("Write", "x", mode="bypassPermissions", deny=["Edit(x)"]) == "deny"
    assert tree.decide("Edit", "x", mode="bypassPermissions", deny=["Write"]) == "deny"
    assert (
        tree.decide("NotebookEdit", {"notebook_path": "x"}, mode="bypassPermissions", deny=["Edit(x)"])
        == "deny"
    )
    assert tree.decide("Read", "x", deny=["Write(x)", "Edit"]) == "auto"


def test_denying_the_reading_tool_denies_searching_too(tree: Tree) -> None:
    assert tree.decide("Grep", {"pattern": "x"}, deny=["Read"]) == "deny"
    assert tree.decide("Write", "x", deny=["Read"]) == "approve"


@pytest.mark.parametrize("tool", ["Grep", "Glob"])
def test_a_search_without_a_pattern_is_asked_about_when_a_rule_denies_such_searches(
    tree: Tree, tool: str
) -> None:
    assert tree.decide(tool, {}, deny=[f"{tool}(password*)"]) == "approve"
    assert tree.decide(tool, {"pattern": 3}, deny=[f"{tool}(password*)"]) == "approve"
    assert tree.decide(tool, {}, deny=["Read(.env)"]) == "auto"


@pytest.mark.parametrize("path", [None, 5, ["a"], ""])
def test_a_path_that_is_missing_or_odd_is_asked_about(tree: Tree, path: object) -> None:
    arguments = {} if path is None else {"file_path": path}
    assert tree.decide("Read", arguments) == "auto"
    assert tree.decide("Read", arguments, deny=["Read(x)"]) == "approve"
    assert tree.decide("Read", arguments, deny=["Read(x)"], mode="plan") == "deny"
    assert tree.decide("Write", arguments, allow=["Write"]) == "approve"
    assert tree.decide("Write", arguments, mode="acceptEdits") == "approve"
    assert tree.decide("Write", arguments, mode="bypassPermissions") == "auto"
    assert tree.decide("Write", arguments, deny=["Write"]) == "deny"


# --- acceptEdits and protected files ---


def test_accept_edits_reaches_the_workspace_only(tree: Tree) -> None:
    for path in ("x", "src/new/x", tree.cwd / "x", "current/a.py"):
        assert tree.decide("Write", path, mode="acceptEdits") == "auto"
    for path in ("../x", "/etc/x", f"{tree.cwd}-2/x", "src/link/x", "dangling", "loop"):
        assert tree.decide("Write", path, mode="acceptEdits") == "approve"


def test_additional_directories_belong_to_the_workspace(tree: Tree) -> None:
    for added in (str(tree.root / "out"), "../out"):
        assert (
            tree.decide("Write", tree.root / "out/x", mode="acceptEdits", additional_dirs=[added]) == "auto"
        )
        assert tree.decide("Write", "src/link/x", mode="acceptEdits", additional_dirs=[added]) == "auto"


PROTECTED = [
    *(
        ".git/config",
        ".git/hooks/pre-commit",
        ".GIT/config",
        ".git",
        ".gitmodules",
        "sub/.git/hooks/x",
        "configlink",
    ),
    *(
        ".claude/settings.json",
        ".Claude/Settings.json",
        ".claude/settings.local.json",
        "sub/.claude/settings.json",
    ),
    *(".claude/hooks/x.sh", ".claude/commands/x.md", ".claude/agents/x.md", ".claude/skills/a/b.md"),
    *(".robota/settings.json", ".robota/plugins/x", ".mcp.json", ".MCP.json", ".ssh/config", ".envrc"),
    *(".bashrc", ".zshrc", ".profile", ".vscode/tasks.json", ".idea/x.xml"),
]


@pytest.mark.parametrize("path", PROTECTED)
def test_files_that_decide_what_runs_later_are_protected(tree: Tree, path: str) -> None:
    wide = ["Edit", "Edit(*)", "Edit(**)", "Edit(./**)", f"Edit({tree.cwd}/**)", "Edit(/**)"]
    assert tree.decide("Edit", path, mode="acceptEdits") == "approve"
    assert tree.decide("Edit", path, allow=wide) == "approve"
    assert tree.decide("Edit", path, mode="bypassPermissions") == "auto"
    assert tree.decide("Read", path) == "auto"


@pytest.mark.parametrize(
    "path", [".claude/notes.md", "CLAUDE.md", ".gitignore", ".github/x.yml", ".robota/worktrees/x/a", ".env"]
)
def test_files_beside_them_are_not(tree: Tree, path: str) -> None:
    assert tree.decide("Edit", path, mode="acceptEdits") == "auto"


def test_a_rule_that_spells_a_protected_file_out_covers_it(tree: Tree) -> None:
    for path, rule in [
        (".claude/settings.json", "Edit(.claude/settings.json)"),
        (".claude/settings.json", "Edit(.claude/**)"),
        (".git/hooks/x", "Edit(.git/hooks/*)"),
        ("sub/.mcp.json", "Edit(**/.mcp.json)"),
    ]:
        assert tree.decide("Edit", path, allow=[rule]) == "auto"
    assert tree.decide("Edit", "configlink", allow=["Edit(configlink)"]) == "approve"
