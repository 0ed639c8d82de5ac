"""The bash oracle with the kernel's own account of what was executed and opened for writing."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

FUZZ = Path(__file__).parents[2] / "fuzz"


def test_strace_sees_nothing_that_was_not_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(FUZZ))
    oracle = importlib.import_module("oracle")
    assert oracle.STRACE, "strace is needed"

    report = oracle.run_cases(200, seed=11, strace=True)

    assert report.failures == [], "\n".join(report.failures)
    seen = oracle.run_in_bash(
        f"ls > {tmp_path}/out; /usr/bin/env", oracle.Place(tmp_path / "place"), strace=True
    )
    assert f"{tmp_path}/out" in seen.written
    assert any(start.words == ("/usr/bin/env",) for start in seen.started)
