"""Known answers of the permission evaluator, one JSON line per case in `corpus/`.

A case names the requirement it follows from (`why`); `expect` is one answer or a list of acceptable ones.
Lines marked `contested` record a question the specification leaves open and are not asserted.
`{root}` stands for the directory tree that the fixture `tree` builds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from robota.core.permissions import evaluate_permission, explain_permission

CORPUS = Path(__file__).parent / "corpus"
CONTEXT_FIELDS = ("mode", "allow", "deny", "ask", "cwd", "home", "additional_dirs", "tool_class")
LINKS = {
    "wslink": "ws",
    "ws/src/escape": "{root}/outside",
    "ws/src/up": "../../outside",
    "ws/src/dangling": "{root}/outside/new.txt",
    "ws/src/escape2": "../../outside/secret.txt",
    "ws/src/chain": "escape2",
    "ws/src/chainsec": "../keylink",
    "ws/src/inner": "lib",
    "ws/src/loop": "loop",
    "ws/src/sublink": "{root}/outside/sub",
    "ws/keylink": "secrets/key.pem",
    "ws/sec": "secrets",
    "ws/hooks": ".git/hooks",
    "ws/gitcfg": ".git/config",
    "ws/out/esc.txt": "{root}/outside/out.txt",
    "ws/out/escdir": "{root}/outside",
    "ws/out/in.txt": "real.txt",
    "ws/out/running": "/proc",
}
FILES = (
    "ws/src/a.py",
    "ws/secrets/key.pem",
    "ws/conf/app.toml",
    "ws/README.md",
    "ws/.git/config",
    "outside/secret.txt",
)
DIRECTORIES = ("ws/src/lib", "ws/out", "ws/.git/hooks", "ws/app", "ws/app-2", "outside/sub", "home/.ssh")


def load_cases(file: Path) -> dict[int, dict[str, Any]]:
    """The asserted cases of one file, by line."""
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    cases = {number: json.loads(line) for number, line in lines}
    return {number: case for number, case in cases.items() if not case.get("contested")}


def fill_root(value: Any, root: str) -> Any:
    if isinstance(value, str):
        return value.replace("{root}", root)
    if isinstance(value, list):
        return [fill_root(item, root) for item in value]
    if isinstance(value, dict):
        return {key: fill_root(item, root) for key, item in value.items()}
    return value


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("tree").resolve()
    for directory in DIRECTORIES:
        (root / directory).mkdir(parents=True, exist_ok=True)
    for file in FILES:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("content\n")
    for link, target in LINKS.items():
        (root / link).symlink_to(fill_root(target, str(root)))
    return str(root)


CASES = {file.stem: load_cases(file) for file in sorted(CORPUS.glob("*.jsonl"))}
ASSERTED = [case for cases in CASES.values() for case in cases.values()]


@pytest.mark.parametrize("file", CASES)
def test_the_evaluator_gives_the_known_answers(file: str, tree: str) -> None:
    wrong = [
        f"{file}.jsonl:{number}: {complaint}"
        for number, case in CASES[file].items()
        if (complaint := check_case(case, tree))
    ]
    assert not wrong, f"{len(wrong)} of {len(CASES[file])} answers are wrong:\n" + "\n".join(wrong)


def check_case(case: dict[str, Any], tree: str) -> str | None:
    """What is wrong with the answer to a case."""
    context = {"cwd": "{root}/ws", "home": "{root}/home"} | {k: case[k] for k in CONTEXT_FIELDS if k in case}
    context = fill_root(context, tree)
    tool_input = fill_root(case["input"], tree)
    accepted = case["expect"] if isinstance(case["expect"], list) else [case["expect"]]

    decision = evaluate_permission(case["tool"], tool_input, **context)
    explanation = explain_permission(case["tool"], tool_input, **context)

    if decision in accepted and explanation.decision == decision and explanation.reason:
        return None
    return (
        f"{case['why']}: expected {' or '.join(accepted)}, got {decision}\n"
        f"    {case['tool']} {tool_input!r} under {context!r}\n    explained by {explanation!r}"
    )


def test_the_corpus_covers_every_evaluator_requirement_in_both_directions() -> None:
    answers: dict[str, set[str]] = {}
    for case in ASSERTED:
        outcome = "auto" if case["expect"] == "auto" else "held"
        for requirement in re.findall(r"[PFN]-\d+", case["why"]):
            answers.setdefault(requirement, set()).add(outcome)
    required = [f"P-{n:02}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 23, 24)]
    required += [f"F-{n:02}" for n in (1, 2, 3, 5, 6, 8)]
    assert {r: answers.get(r) for r in required} == {r: {"auto", "held"} for r in required}


def test_the_corpus_is_large_and_holds_enough_benign_cases() -> None:
    counts = Counter(str(case["expect"]) for case in ASSERTED)
    assert counts.total() >= 2_800
    assert counts["auto"] >= 200
