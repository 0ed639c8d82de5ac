from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PRINTED = Path(__file__).parents[2] / "fuzz" / "printed.py"


@pytest.mark.slow
def test_what_a_user_saw_is_in_the_session(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--runs", "12", "--seed", "7"]
    done = subprocess.run(
        [sys.executable, str(PRINTED), *arguments], capture_output=True, text=True, check=False
    )

    with capsys.disabled():
        print(f"\n{done.stdout.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "signals: 0 letters" not in done.stdout
