"""A short, seeded run of the permission fuzzer; `python fuzz/permissions.py` is the long one."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

FUZZ = Path(__file__).parents[2] / "fuzz"


@pytest.fixture
def fuzzer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FUZZ))
    monkeypatch.delitem(sys.modules, "permissions", raising=False)
    return importlib.import_module("permissions")


def test_two_thousand_generated_questions_of_every_class_get_their_known_answers(fuzzer: ModuleType) -> None:
    report = fuzzer.run_cases(2_000, seed=1)

    assert report.failures == [], "\n".join(report.failures)
    assert {label for label in report.counts if "(" not in label} == {
        *("shell: all allowed", "shell: one part not allowed", "shell: denied part", "shell: computed word"),
        *("shell: denied and computed", "shell: denied and broken", "arbitrary input", "relations", "failed"),
        *("path: allow", "path: deny", "path: loop", "shell: writes in the workspace"),
    }


def test_the_same_seed_asks_the_same_questions(fuzzer: ModuleType) -> None:
    assert fuzzer.run_cases(100, seed=9).counts == fuzzer.run_cases(100, seed=9).counts
