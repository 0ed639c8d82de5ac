"""How the command ends when a run does not come to an answer: one sentence on stderr and an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.command import robota

from robota.core.provider import StopChunk
from robota.testing import HttpError, ModelServer, call

FAILING = [call("Read", file_path="missing.txt")]
UNKNOWN = [call("Nonsense")]


@pytest.mark.parametrize(
    ("script", "arguments", "code", "sentence"),
    [
        ([[call("Glob", pattern="*")], "Half."], ("--max-turns", "1"), 4, "its limit is 1 rounds"),
        ([[call("Glob", pattern="*")], []], ("--max-turns", "1"), 4, "its limit is 1 rounds"),
        ([FAILING, FAILING, FAILING, "I give up."], (), 4, "same call of Read failed 3 times"),
        ([UNKNOWN, UNKNOWN, "I give up."], (), 4, "tools that do not exist: Nonsense"),
        ([[], [], []], (), 4, "answered with nothing, three times"),
        ([["Half", StopChunk("max_tokens")]], (), 4, "The answer is cut"),
        ([["Half", StopChunk("content_filter")]], (), 4, "content filter"),
        ([HttpError(400, "no such thing")], (), 1, "no such thing"),
    ],
    ids=["rounds", "rounds, no summary", "failing", "unknown", "empty", "max_tokens", "filter", "refused"],
)
def test_a_run_without_an_answer_ends_with_a_sentence_and_a_code(
    tmp_path: Path, script: list[Any], arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    with ModelServer(*script).in_thread() as server:
        done = robota("-p", "go", *arguments, cwd=tmp_path, server=server)

    told = [line for line in done.stderr.splitlines() if sentence in line]
    assert (done.returncode, len(told)) == (code, 1), done.stderr
    assert sentence not in done.stdout
    assert "Traceback" not in done.stderr


def test_a_call_that_was_cut_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    cut = [call("Bash", command="rm -r build"), StopChunk("max_tokens")]
    with ModelServer(cut, "Another way.").in_thread() as server:
        done = robota("-p", "go", cwd=tmp_path, server=server)

    assert (done.returncode, done.stdout) == (0, "Another way.\n")
    assert "✗ Bash:" in done.stderr
