"""The evaluator compared with bash itself: what really starts must agree with what was decided.

Generated strings run under bash in a throw-away directory. PATH holds nothing but stubs that log their name
and arguments; runner stubs (sudo, env, sh …) go on to start their inner command, so a hidden program shows in
the log. Absolute paths and loops that may not end are left out of the strings.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from robota.core.permissions import evaluate_permission

pytestmark = pytest.mark.slow

BASH = shutil.which("bash")
ENV = shutil.which("env")
FUZZ = Path(__file__).parents[2] / "fuzz"
CORPUS = Path(__file__).parent / "corpus"
STRINGS = 400
RECORD = "\x1e"
PLAIN = (
    "ls",
    "cat",
    "git",
    "npm",
    "grep",
    "sed",
    "sort",
    "make",
    "lsof",
    "gitx",
    "rm",
    "curl",
    "echo",
    "true",
)
RUNNERS = {
    "sudo": 'case $1 in -u) shift 2;; esac; exec "$@"',
    "env": 'while case $1 in *=*) true;; *) false;; esac; do shift; done; exec "$@"',
    "timeout": 'shift; exec "$@"',
    "nice": 'case $1 in -n) shift 2;; esac; exec "$@"',
    "nohup": 'exec "$@"',
    "xargs": 'exec "$@"',
    "busybox": 'exec "$@"',
    "find": 'while [ $# -gt 0 ] && [ "$1" != -exec ]; do shift; done; [ $# -gt 0 ] && shift && exec "$@"',
    "sh": f'[ "$1" = -c ] && exec {BASH} --noprofile --norc -c "$2"',
    "bash": f'[ "$1" = -c ] && exec {BASH} --noprofile --norc -c "$2"',
}
STUB = (
    '#!/bin/sh\nline=${0##*/}\nfor word; do line="$line $word"; done\n'
    "printf '%s" + RECORD + '\' "$line" >> "$LOG"\n'
)
SOUP = (
    *(
        "rm -rf x",
        "ls -la",
        "echo a",
        "git status",
        "curl y",
        " ",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "'",
        '"',
    ),
    *(
        "$(",
        ")",
        "`",
        "( ",
        "{ ",
        "; }",
        "\\",
        "\\\n",
        "# ",
        "<<E\n",
        "\nE\n",
        "${x:-",
        "}",
        "if ",
        "; then ",
        "; fi",
    ),
    *(
        "for i in a; do ",
        "; done",
        "case a in a) ",
        ";; esac",
        ">f",
        "2>&1",
        "$'",
        "eval ",
        "sudo ",
        "<( ",
        "[[ ",
        " ]]",
    ),
)
EDITS = (
    *(
        "",
        "'",
        '"',
        "\\",
        "\\\n",
        "\n",
        " ",
        "\t",
        ";",
        "&&",
        "|",
        "&",
        "$",
        "$(",
        ")",
        "`",
        "(",
        "{ ",
        "; }",
        "}",
    ),
    *(
        "#",
        "$'",
        "<<E\n",
        "\nE\n",
        "<<<",
        "<(",
        "${x:-",
        "!",
        "=",
        "[",
        "]",
        "{",
        ",",
        "*",
        "a=",
        "rm",
        "-- ",
    ),
)


@pytest.fixture
def shell_text(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FUZZ))
    return importlib.import_module("shell_text")


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    directory = tmp_path / "stubs"
    directory.mkdir()
    for name in (*PLAIN, *RUNNERS):
        stub = directory / name
        stub.write_text(STUB + RUNNERS.get(name, "exit $(( ${#1} % 2 ))") + "\n")
        stub.chmod(0o755)
    (tmp_path / "prelude").write_text("enable -n echo true\n")
    return directory


def start_in_bash(text: str, stubs: Path, workspace: Path) -> list[str]:
    """The programs (name and arguments) that bash started for this text, background ones included."""
    log = stubs.parent / "log"
    log.write_text("")
    read_end, write_end = os.pipe()
    environment = [f"PATH={stubs}", f"LOG={log}", f"BASH_ENV={stubs.parent / 'prelude'}"]
    process = subprocess.Popen(
        [str(ENV), "-i", *environment, str(BASH), "--noprofile", "--norc", "-c", text],
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(write_end,),
        start_new_session=True,
    )
    os.close(write_end)
    ended, _, _ = select.select([read_end], [], [], 30)  # end of file: no descendant holds the pipe any more
    os.close(read_end)
    if not ended:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert ended, f"did not end: {text!r}"
    return [record for record in log.read_text(errors="replace").split(RECORD) if record]


def is_covered(started: str, rules: list[str]) -> bool:
    """An own, minimal reading of `Bash(pattern)`: `*` is any text, everything else is literal."""
    patterns = [rule.removeprefix("Bash(").removesuffix(")") for rule in rules]
    expressions = [".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns]
    return any(re.fullmatch(expression, started, re.DOTALL) for expression in expressions)


def load_corpus_strings() -> list[str]:
    """Commands of the corpus that name nothing outside the stubs."""
    files = [
        CORPUS / f"{name}.jsonl" for name in ("deny_inside", "deny_spelling", "runners", "benign_syntax")
    ]
    lines = [line for file in files for line in file.read_text().splitlines()]
    return sorted({json.loads(line)["input"]["command"] for line in lines})


def mutate(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(text) + 1)
        text = text[:start] + rng.choice(EDITS) + text[start + rng.choice((0, 0, 1, 2)) :]
    return text


def is_harmless(text: str) -> bool:
    """No path but /dev/null, no endless loop, no recursion, no program search outside PATH."""
    if re.search(r"\b(while|until|function|PATH|select)\b|\(\s*\)|for\s*\(\(|-p", text.replace("\\\n", "")):
        return False
    return "/" not in re.sub(r"/dev/null(?=[\s;&|)}]|$)|http://", "", text)


def generate_strings(rng: random.Random, shell_text: ModuleType) -> Iterator[str]:
    tables = ((), shell_text.NOT_ALLOWED, shell_text.WRITING, shell_text.DENIED, shell_text.COMPUTED)
    corpus = load_corpus_strings()
    for _ in range(STRINGS):
        makers = (
            lambda: shell_text.compose(rng, shell_text.pick_leaves(rng, rng.choice(tables))),
            lambda: mutate(rng, shell_text.compose(rng, shell_text.pick_leaves(rng, rng.choice(tables)))),
            lambda: "".join(rng.choices(SOUP, k=rng.randrange(2, 14))),
            lambda: mutate(rng, rng.choice(corpus)),
            lambda: mutate(rng, rng.choice(corpus) + rng.choice(("\n", " && ", "|")) + rng.choice(corpus)),
        )
        make = rng.choice(makers)
        yield next(text for text in iter(make, None) if is_harmless(text))


def test_what_bash_starts_agrees_with_the_decision(
    shell_text: ModuleType, stubs: Path, tmp_path: Path
) -> None:
    assert BASH, "bash is needed"
    assert ENV, "env is needed"
    rng = random.Random(4)
    decisions: dict[str, int] = {}
    wrong: list[str] = []
    for number, text in enumerate(generate_strings(rng, shell_text)):
        workspace = tmp_path / f"run{number}"
        workspace.mkdir()
        place = {"cwd": str(workspace), "home": str(tmp_path)}
        question = {"command": text}
        by_rules = evaluate_permission(
            "Bash", question, allow=shell_text.ALLOW, deny=shell_text.DENY, **place
        )
        by_deny_only = evaluate_permission("Bash", question, allow=["Bash"], deny=shell_text.DENY, **place)
        decisions[by_rules] = decisions.get(by_rules, 0) + 1

        started = start_in_bash(text, stubs, workspace)

        if by_rules == "auto":  # an argument may expand to nothing, so a missing one still counts as covered
            uncovered = [call for call in started if not is_covered(call, shell_text.ALLOW)]
            uncovered = [call for call in uncovered if not is_covered(call + " ", shell_text.ALLOW)]
            wrong += [f"auto for {text!r}, but bash started {uncovered}"] if uncovered else []
            wrong += [f"auto for {text!r}, but it wrote a file"] if list(workspace.iterdir()) else []
        denied = [call for call in started if is_covered(call, shell_text.DENY)]
        if denied and "auto" in (by_rules, by_deny_only):
            wrong.append(f"auto for {text!r}, but bash started {denied}, which is denied")
    assert not wrong, "\n".join(wrong)
    assert set(decisions) == {"auto", "approve", "deny"}
