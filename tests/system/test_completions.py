"""Completions as the shells read them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.command import robota

pytestmark = pytest.mark.system


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_valid_scripts(tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    assert program, f"{shell} is missing: run `make test-system`, which installs it"
    (tmp_path / "script").write_text(robota("completions", shell, cwd=tmp_path).stdout)

    subprocess.run([program, "-n", "script"], cwd=tmp_path, check=True)


def test_fish_completes_commands_and_options(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(robota("completions", "fish", cwd=tmp_path).stdout)
    line = "source script; complete -C 'robota sess'; complete -C 'robota --fork-s'"
    shown = subprocess.run(
        ["fish", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout

    assert "sessions" in shown
    assert "--fork-session" in shown
