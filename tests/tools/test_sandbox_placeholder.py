from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from robota.tools.sandbox.bubblewrap import Placeholders


def entries(path: Path) -> list[str]:
    return sorted(str(entry.relative_to(path)) for entry in path.rglob("*"))


def test_a_missing_name_is_an_empty_directory_while_it_is_held(tmp_path: Path) -> None:
    with Placeholders() as placeholders:
        assert placeholders.cover(str(tmp_path / ".mcp.json"))
        assert placeholders.cover(str(tmp_path / ".mcp.json"))
        assert (tmp_path / ".mcp.json").is_dir()
    assert entries(tmp_path) == []


def test_what_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".mcp.json").write_text("{}")
    with Placeholders() as placeholders:
        assert placeholders.cover(str(tmp_path / ".claude"))
        assert placeholders.cover(str(tmp_path / ".mcp.json"))
    assert entries(tmp_path) == [".claude", ".mcp.json"]


def test_the_last_holder_removes_it(tmp_path: Path) -> None:
    path = str(tmp_path / ".claude")
    first, second = Placeholders(), Placeholders()
    first.cover(path)
    second.cover(path)
    first.release()
    assert entries(tmp_path) == [".claude"]
    second.release()
    second.release()
    assert entries(tmp_path) == []


def test_another_program_keeps_it(tmp_path: Path) -> None:
    path = str(tmp_path / ".claude")
    script = (
        "import sys; from robota.tools.sandbox.bubblewrap import Placeholders; held = Placeholders();"
        f"held.cover({path!r}); print('held', flush=True); sys.stdin.read(); held.release()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with Placeholders() as placeholders:
            placeholders.cover(path)
        assert entries(tmp_path) == [".claude"]
        other.communicate("")
    assert entries(tmp_path) == []


def test_one_left_behind_is_removed_the_next_time(tmp_path: Path) -> None:
    path = str(tmp_path / ".claude")
    script = (
        "import os; from robota.tools.sandbox.bubblewrap import Placeholders;"
        f"Placeholders().cover({path!r}); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert entries(tmp_path) == [".claude"]
    with Placeholders() as placeholders:
        placeholders.cover(path)
    assert entries(tmp_path) == []


def test_one_that_somebody_put_something_into_stays(tmp_path: Path) -> None:
    with Placeholders() as placeholders:
        placeholders.cover(str(tmp_path / ".claude"))
        (tmp_path / ".claude" / "settings.json").write_text("{}")
    assert entries(tmp_path) == [".claude", ".claude/settings.json"]


def test_one_that_was_replaced_stays(tmp_path: Path) -> None:
    with Placeholders() as placeholders:
        placeholders.cover(str(tmp_path / ".mcp.json"))
        (tmp_path / ".mcp.json").rmdir()
        (tmp_path / ".mcp.json").write_text("{}")
    assert (tmp_path / ".mcp.json").read_text() == "{}"


def test_git_still_works_with_placeholders_in_its_directory(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=b"]
    subprocess.run([*git, "init", "-q"], check=True)
    before = entries(tmp_path)
    with Placeholders() as placeholders:
        for name in ("commondir", "config.worktree", "info/attributes"):
            assert placeholders.cover(str(tmp_path / ".git" / name))
        for name in (".claude", ".mcp.json", ".gitmodules", ".envrc"):
            assert placeholders.cover(str(tmp_path / name))
        (tmp_path / "file").touch()
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", "one"], check=True)
        shown = subprocess.run(
            [*git, "show", "--stat", "--format=%s"], check=True, capture_output=True, text=True
        )
    assert shown.stdout == "one\n\n file | 0\n 1 file changed, 0 insertions(+), 0 deletions(-)\n"
    left = [name for name in entries(tmp_path) if name not in before and "objects/" not in name]
    assert "file" in left
    assert not any(name.endswith(("commondir", "config.worktree", "attributes")) for name in left)


def test_where_we_may_not_write_nothing_is_needed(tmp_path: Path) -> None:
    with Placeholders() as placeholders:
        assert not placeholders.cover("/proc/placeholder")
        assert not placeholders.cover(str(tmp_path / "missing" / ".claude"))


def test_one_that_cannot_be_held_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", refuse)
    with Placeholders() as placeholders, pytest.raises(OSError, match="cannot be kept from being created"):
        placeholders.cover(str(tmp_path / ".claude"))
