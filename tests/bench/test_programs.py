"""The measuring programs work: short forms of what `make bench` and `make soak` run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def start(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_two_hundred_mixed_turns_leave_nothing_behind() -> None:
    done = start("soak.py", "--turns", "200")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing grew" in done.stdout


@pytest.mark.system
def test_two_hundred_turns_in_a_terminal_leave_nothing_behind() -> None:
    done = start("soak_terminal.py", "--turns", "200")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing grew" in done.stdout


def test_the_benchmark_compares_both_sides_and_keeps_the_samples(tmp_path: Path) -> None:
    file = tmp_path / "samples.json"
    done = start("run.py", "--only", "import,fresh", "--repeats", "1", "--json", str(file))
    assert done.returncode == 0, done.stderr
    assert "| new agent and one answer " in done.stdout
    lines = {line["title"]: line for line in json.loads(file.read_text(encoding="utf-8"))["lines"]}
    assert lines["new agent and one answer"]["floor"] > 0


def test_the_benchmark_says_which_measures_there_are() -> None:
    done = start("run.py", "--only", "speed")
    assert done.returncode == 2
    assert "There is no measure 'speed'; choose from import, cold," in done.stderr


def test_a_profile_names_the_packages_that_take_the_time() -> None:
    done = start("run.py", "--profile", "build")
    assert done.returncode == 0, done.stderr
    assert "robota.core" in done.stdout


def test_undo_is_measured_beside_a_copy_of_the_same_tree() -> None:
    done = start("undo.py", "--files", "80", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == [
        "cp", "cp", "first", "finish", "save", "restore",
    ]  # fmt: skip
