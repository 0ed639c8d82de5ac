from __future__ import annotations

import importlib
import random
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "fuzz"


@pytest.mark.slow
def test_what_a_user_saw_is_in_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve ends with seed 7; `make printed` has hundreds."""
    monkeypatch.syspath_prepend(str(FUZZ))
    printed = importlib.import_module("printed")
    monkeypatch.setattr(printed, "SETTLED", 2.0)  # a machine that runs tests may be late for 0.6 seconds
    outcomes = []
    for run in range(12):
        directory = tmp_path / str(run)
        directory.mkdir()
        outcomes.append(printed.run_one(directory, random.Random(f"7-{run}")))

    assert [outcome for outcome in outcomes if outcome.problems] == []
    assert any(outcome.shown for outcome in outcomes if outcome.end == "KILL")
    assert any(outcome.shown for outcome in outcomes if outcome.end != "KILL")
