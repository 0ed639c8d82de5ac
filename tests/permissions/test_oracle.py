"""A short, seeded run of the bash oracle; `make oracle` is the long one."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

FUZZ = Path(__file__).parents[2] / "fuzz"


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FUZZ))
    module = importlib.import_module("oracle")
    assert module.BASH, "bash is needed"
    return module


def test_what_bash_starts_and_writes_was_named_or_asked_about(oracle: ModuleType) -> None:
    report = oracle.run_cases(1_000, seed=10)

    assert report.failures == [], "\n".join(report.failures)
    assert report.counts["programs started"] > 500
    assert report.counts["files written"] > 50
    understood = [label for label in report.counts if label.endswith(": understood")]
    assert len(understood) == 4


@pytest.mark.parametrize(
    ("text", "done", "complaint"),
    [
        ("ls a", "rm a", "bash started ('rm', 'a') in tree/deep/er/work, which was not named"),
        ("ls a", "ls b", "bash started ('ls', 'b') in tree/deep/er/work, which was not named"),
        ("ls a", "cd sub; ls a", "bash started ('ls', 'a') in tree/deep/er/work/sub, which was not named"),
        ("ls a", "ls a > out", "bash wrote out, which was not named"),
        ("ls $X", "ls -o $(rm a)", "bash started ('rm', 'a') in tree/deep/er/work, which was not named"),
        ("sort src/c.py", "sort -o a", "auto, but bash started ('sort', '-o', 'a'), which is not"),
        ("ls a", "nowhere a", "auto although Bash(nowhere:*) is denied"),
    ],
)
def test_the_oracle_sees_what_was_not_named(
    oracle: ModuleType, tmp_path: Path, text: str, done: str, complaint: str
) -> None:
    place = oracle.Place(tmp_path)

    run = oracle.run_in_bash(done, place)

    assert complaint in list(oracle.judge(text, run, place))
    assert list(oracle.judge(done, oracle.run_in_bash(done, place), place)) == []
