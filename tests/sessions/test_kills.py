from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KILLS = Path(__file__).parents[2] / "fuzz" / "kills.py"
FLIPS = KILLS.with_name("flips.py")


@pytest.mark.parametrize("program", ["journal", "session"])
def test_nothing_acknowledged_is_missing_after_a_kill(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = subprocess.run(
        [sys.executable, str(KILLS), "--program", program, "--runs", "10", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
    )

    with capsys.disabled():
        print(f"\n{program}: {done.stdout.strip()}")
    assert done.stdout.strip().endswith("0 failures"), done.stdout + done.stderr
    assert done.returncode == 0


def test_a_damaged_record_costs_itself_and_no_call_gets_the_result_of_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = subprocess.run(
        [sys.executable, str(FLIPS), "--cases", "12", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
    )

    with capsys.disabled():
        print(f"\nflips: {done.stdout.strip()}")
    assert done.stdout.strip().endswith("0 failures"), done.stdout + done.stderr
    assert done.returncode == 0
