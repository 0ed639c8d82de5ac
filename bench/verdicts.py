"""How long a permission verdict for an ordinary shell command takes.

`python bench/verdicts.py` judges the ordinary commands of the corpus that run unasked, each under its own
rules, and prints the time of one verdict in microseconds of processor time: for commands that were never seen
before, with the tables of programs loaded, and for commands that come again. They are judged in a repository,
where people give them: git is asked about everywhere else, and has to be looked for.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from robota.core.permissions import command_reading, evaluate_permission

CORPUS = Path(__file__).parents[1] / "tests" / "permissions" / "corpus"
TERMS = ("mode", "allow", "deny", "ask")
ROUNDS = 25


def read_questions(repository: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    files = sorted(CORPUS.glob("benign_[cds]*.jsonl"))
    lines = [line for file in files for line in file.read_text().splitlines()]
    rows = [json.loads(line) for line in lines]
    place = {"cwd": str(repository), "home": "/home/u"}
    return [
        (row["input"], {name: row[name] for name in TERMS if name in row} | place)
        for row in rows
        if row["tool"] == "Bash" and row["expect"] == "auto" and "{root}" not in json.dumps(row)
    ]


def measure(questions: list[tuple[dict[str, Any], dict[str, Any]]], *, again: bool) -> list[float]:
    times = []
    for _ in range(ROUNDS):
        if not again:
            command_reading.read_again.cache_clear()
        start = time.process_time()
        for call, terms in questions:
            evaluate_permission("Bash", call, **terms)
        times.append((time.process_time() - start) / len(questions) * 1e6)
    return times


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / ".git").mkdir()
        questions = read_questions(Path(directory))
        measure(questions, again=True)
        for name, again in (("never seen", False), ("seen before", True)):
            times = measure(questions, again=again)
            print(f"{len(questions)} commands, {name}: {min(times):.1f} to {statistics.median(times):.1f} µs")


if __name__ == "__main__":
    main()
