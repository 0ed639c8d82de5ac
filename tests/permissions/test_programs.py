"""Known programs: options that start a program or write a file are beyond a prefix rule, the others are not.

In `corpus/programs.txt` a line with `-` lists commands that ask under `Bash(program *)`, one with `+`
commands that run; `¦` separates commands and `⏎` is a line end.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from robota.core.permissions import evaluate_permission
from robota.core.shell.programs import load_options

TABLE = (Path(__file__).parent / "corpus" / "programs.txt").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    return [cell.strip().replace("⏎", "\n") for cell in text.split("¦")]


def read_table() -> dict[str, dict[str, list[str]]]:
    rows: dict[str, dict[str, list[str]]] = {}
    for line in TABLE.strip().splitlines():
        if not line.startswith(" "):
            row = rows[line] = {"-": [], "+": []}
        else:
            row[line[4]] += commands(line[6:])
    return rows


ROWS = read_table()


def decide(program: str, command: str) -> str:
    helpers = ["Bash(echo *)", "Bash(cat *)", "Bash(git *)"]
    return evaluate_permission("Bash", {"command": command}, allow=[f"Bash({program} *)", *helpers], cwd="/w")


def test_every_row_of_the_data_has_its_test() -> None:
    table = load_options()
    assert {*table.options} <= {*ROWS} <= {*table.options, *table.aliases}
    assert {*table.aliases.values()} <= {*table.options}


@pytest.mark.parametrize(("sign", "answer"), [("-", "approve"), ("+", "auto")])
def test_a_prefix_rule_covers_everyday_use_and_nothing_that_starts_a_program_or_writes_a_file(
    sign: str, answer: str
) -> None:
    wrong = [
        (program, command)
        for program, row in ROWS.items()
        for command in row[sign]
        if decide(program, command) != answer
    ]
    assert wrong == [], f"these do not give {answer}"


@pytest.mark.parametrize(
    ("rule", "command", "answer"),
    [
        ("Bash(sed -i s/a/b/ *)", "sed -i s/a/b/ f g", "auto"),
        ("Bash(sed -i s/a/b/ *)", "sed -i s/a/b/ -e 'w x' f", "approve"),
        ("Bash(find . -name x -delete)", "find . -name x -delete", "auto"),
        ("Bash(git -c color.ui=always log *)", "git -c color.ui=always log -5", "auto"),
        ("Bash(git -c *)", "git -c core.pager=x log", "approve"),
        ("Bash(/usr/bin/find *)", "/usr/bin/find . -delete", "approve"),
        ("Bash(find *)", "timeout 5 find . -delete", "approve"),
        ("Bash(tool *)", "tool -o x --exec y", "auto"),
    ],
)
def test_a_rule_covers_what_it_spells_out(rule: str, command: str, answer: str) -> None:
    assert evaluate_permission("Bash", {"command": command}, allow=[rule], cwd="/w") == answer


def rules_for(*programs: str) -> list[str]:
    return [f"Bash({program} *)" for program in programs]


@pytest.mark.parametrize(
    "command",
    commands(r"""read X; sort $X ¦ while read X; do sort $X; done ¦ set -- -o x; sort "$@" ¦ X=$Y; sort $X
        ¦ f() { sort "$@"; }; f -o x ¦ bash -c 'sort "$@"' _ -o x ¦ export X=-o; bash -c 'sort $X f'
        ¦ X=-o; bash -c 'sort $X f' ¦ bash -c 'X=-o; sort $X f'"""),
)
def test_a_value_produced_in_the_same_text_is_followed(command: str) -> None:
    allow = rules_for("sort", "read", "set", "bash", "export")
    assert evaluate_permission("Bash", {"command": command}, allow=allow, cwd="/w") == "approve"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        *((each, "approve") for each in commands(
            "sort $x-o f ¦ sort -${x}o f ¦ sort -${x:-o} f ¦ sort a${x:- -o} f ¦ sort a$IFS-o f"
            " ¦ sort a-$x ¦ sort \"$x-f\" ¦ sort -k$x f ¦ sort ${x:-a} f"
        )),
        *((each, "auto") for each in commands("sort a-\"$x\" ¦ sort -k\"$x\" f ¦ sort --key=\"$x\" f")),
    ],
)  # fmt: skip
def test_a_value_that_vanishes_or_splits_may_leave_an_option(command: str, answer: str) -> None:
    assert evaluate_permission("Bash", {"command": command}, allow=rules_for("sort"), cwd="/w") == answer


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        *((f"{setting}; ls -l", "approve") for setting in commands(
            "export PATH=/x ¦ declare -x PATH=/x ¦ declare -n r=PATH ¦ read PATH ¦ unset PATH"
            "¦ printf -v PATH x ¦ printf -vPATH x ¦ export $X=/y ¦ exec {PATH}>/dev/null"
            "¦ export FOO=$BAR ¦ export FOO=./x ¦ export FOO=-x ¦ X=./x; export X"
            "¦ declare -x FOO=/x ¦ export CFLAGS=x"
            "¦ export MAKEFILES=x ¦ export MY_PAGER=x ¦ export GIT_ALLOW_PROTOCOL=ext ¦ export FOO=file:///x"
            "¦ export LD_PRELOAD=x ¦ time PATH=/x ¦ time -p -- PATH=/x ¦ bash -c 'PATH=/x; ls -l'"
        )),
        *((f"{setting}; ls -l", "auto") for setting in commands(
            "export FOO=bar ¦ export API_URL=http://localhost:3000/v1 ¦ export VERSION=1.2"
            "¦ export GIT_TERMINAL_PROMPT=0 ¦ declare FOO=/x"
            "¦ read -r x ¦ printf '%s' $X ¦ export CI=1 ¦ unset FOO ¦ x=1"
        )),
    ],
)  # fmt: skip
def test_variables_that_steer_other_programs_are_not_set_unasked(command: str, answer: str) -> None:
    allow = rules_for("ls", "export", "declare", "read", "printf", "unset", "exec", "bash", "time")
    assert evaluate_permission("Bash", {"command": command}, allow=allow, cwd="/w") == answer
