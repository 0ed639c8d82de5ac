"""What a search may show is what a Read may read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from robota.core.permissions import evaluate_permission
from robota.core.permissions.read_filter import deny_reading

RULES = (
    "Read(.env)", "Read(secrets/**)", "Read(~/.ssh/**)", "Read(*.key)", "Read(/etc/**)", "Edit(src/**)",
    "Grep",
    "Grep(notes/*)", "Glob(*.md)", "Bash(rm *)", "Read(link/**)", "Read(./a/b.txt)", "Read(**/deep/*.txt)",
    "WebFetch", "Read", "NotebookEdit", "Read(offset:5)",
)  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        ".env", "a/b.txt", "a/.env", "secrets/x/y", "src/app.py", "x.key", "notes/one", "deep/t.txt",
        "q/deep/t.txt", "README.md",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "to_env").symlink_to(tmp_path / ".env")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    return tmp_path


def test_the_filter_says_what_the_evaluator_says(tree: Path) -> None:
    chance = random.Random(7)
    paths = [*map(str, tree.rglob("*")), *(str(path.relative_to(tree)) for path in tree.rglob("*"))]
    paths += ["/etc/passwd", "~/.ssh/id", "/nowhere/at/all", "x\x00y", "a\nb", ""]
    for _ in range(150):
        deny = tuple(chance.sample(RULES, chance.randint(1, 4)))
        is_denied = deny_reading(deny, cwd=str(tree), home="/home/me")
        for path in paths:
            said = evaluate_permission("Read", {"file_path": path}, deny=deny, cwd=str(tree), home="/home/me")
            assert (is_denied is not None and is_denied(path)) == (said == "deny"), (deny, path)


def test_rules_about_other_things_need_no_filter(tree: Path) -> None:
    assert deny_reading(("Bash(rm *)", "WebFetch"), cwd=str(tree)) is None
    assert deny_reading((), cwd=str(tree)) is None
