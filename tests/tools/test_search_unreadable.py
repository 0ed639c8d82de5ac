from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

CAPABILITY_DROP, MAY_READ_ANYTHING = 24, (1, 2)
CALL = """
import sys, anyio
from robota.core.tool import ToolContext
from robota.tools.builtins.search import glob_tool
from robota.tools.builtins.search import grep_tool
name, ripgrep, path, cwd = sys.argv[1:]
tool = (glob_tool if name == "Glob" else grep_tool)(ripgrep=ripgrep == "True")
pattern = "**/*" if name == "Glob" else "text"
print(anyio.run(tool.run, {"pattern": pattern, "path": path}, ToolContext(cwd=cwd)).text)
"""


def give_up_privileges() -> None:
    """Root may read everything unless the programs it starts are kept from it."""
    if os.getuid() == 0:
        library = ctypes.CDLL(None)
        for capability in MAY_READ_ANYTHING:
            library.prctl(CAPABILITY_DROP, capability, 0, 0, 0)


def search(name: str, ripgrep: bool, path: str, cwd: Path) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", CALL, name, str(ripgrep), path, str(cwd)],
        preexec_fn=give_up_privileges,
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.rstrip("\n")


@pytest.fixture
def root(tmp_path):
    for path in ("open/a.txt", "closed/b.txt"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text("text\n")
    (tmp_path / "closed").chmod(0)
    yield tmp_path
    (tmp_path / "closed").chmod(0o700)


@pytest.mark.parametrize("ripgrep", [True, False], ids=["ripgrep", "python"])
@pytest.mark.parametrize("name", ["Glob", "Grep"])
def test_what_cannot_be_read_is_passed_over_and_said(root, name, ripgrep):
    note = "[Some files or directories could not be read.]"
    assert search(name, ripgrep, ".", root) == f"open/a.txt\n{note}"


@pytest.mark.parametrize("name", ["Glob", "Grep"])
def test_a_directory_that_was_named_must_be_readable(root, name):
    assert search(name, True, "closed", root) == f"Error: Permission denied: {root / 'closed'}"


@pytest.mark.parametrize("ripgrep", [True, False], ids=["ripgrep", "python"])
def test_a_file_that_cannot_be_read_is_passed_over_unless_it_was_named(root, ripgrep):
    (root / "open" / "b.txt").write_text("text\n")
    (root / "open" / "b.txt").chmod(0)
    note = "[Some files or directories could not be read.]"
    assert search("Grep", ripgrep, "open", root) == f"open/a.txt\n{note}"
    assert search("Grep", ripgrep, "open/b.txt", root) == f"Error: Permission denied: {root / 'open/b.txt'}"
