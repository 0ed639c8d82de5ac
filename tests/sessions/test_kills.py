from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.kills import describe, run_kills


def test_no_acknowledged_record_is_missing_after_a_kill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = run_kills(tmp_path, runs=25, seed=7)

    with capsys.disabled():
        print(f"\n{describe(counts, 7)}")
    assert counts.failures == []
    assert counts.found >= counts.acknowledged > 25
