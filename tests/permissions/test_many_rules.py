"""Deny rules that are excluded together, since none of them touches the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robota.core.permissions import evaluate_permission
from robota.core.permissions.command_matcher import CommandMatcher
from robota.core.permissions.evaluate import make_call

CORPUS = Path(__file__).parent / "corpus"
RULES = (
    "Bash(rm *)", "Bash(rm -rf *)", "Bash(git push *)", "Bash(git push --force *)", "Bash(curl:*)",
    "Bash(sudo:*)", "Bash(npm publish)", "Bash(*secret*)", "Bash(docker * prune *)", "Bash(make deploy)",
    "Bash(python3 *)", "Bash(workdir:/etc*)", "Bash(./scripts/*)", "Bash(cat)", "Read(.env)",
    "WebFetch(domain:example.com)",
)  # fmt: skip
PROGRAMS = tuple(rule for rule in RULES if "(*" not in rule)
"""Each of these names a program, so that most commands need no closer look."""


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.glob("*.jsonl")))
@pytest.mark.parametrize("rules", [RULES, PROGRAMS], ids=["any", "programs"])
def test_a_rule_that_is_left_out_does_not_apply(name: str, rules: tuple[str, ...]) -> None:
    rows = [json.loads(line) for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()]
    inputs = [row["input"] for row in rows if row["tool"] == "Bash" and isinstance(row["input"], dict)]
    commands = {each["command"] for each in inputs if isinstance(each.get("command"), str)}
    for command in sorted(commands):
        call = make_call(
            "Bash", {"command": command}, {"deny": rules, "cwd": "/srv/project", "home": "/home/u"}
        )
        assert call is not None
        matcher = CommandMatcher(call)
        kept = matcher.relevant(call.deny)
        left_out = [rule for rule in call.deny.rules if rule not in kept]
        assert [rule.text for rule in left_out if matcher.hit(rule) is not None] == [], command


def test_an_argument_of_that_name_is_what_a_rule_may_be_about() -> None:
    terms = {"deny": ["Bash(workdir:/etc*)"], "cwd": "/srv/project"}
    call = make_call("Bash", {"command": "ls", "workdir": "/etc/ssh"}, terms)
    assert call is not None
    assert [rule.text for rule in CommandMatcher(call).relevant(call.deny)] == ["Bash(workdir:/etc*)"]


def test_a_rule_that_begins_with_a_star_is_compared_with_a_program_called_by_a_number() -> None:
    terms = {"deny": ["Bash(*secret*)"], "allow": ["Bash(7 *)"], "cwd": "/srv/project"}
    assert evaluate_permission("Bash", {"command": "7 files"}, **terms) == "auto"
    assert evaluate_permission("Bash", {"command": "7 secrets"}, **terms) == "deny"


def test_a_command_that_no_rule_touches_leaves_none_to_look_at() -> None:
    call = make_call("Bash", {"command": "ls -la"}, {"deny": ["Bash(rm *)", "Bash(sudo *)"], "cwd": "/"})
    assert call is not None
    assert list(CommandMatcher(call).relevant(call.deny)) == []
