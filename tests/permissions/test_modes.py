"""The table that decides when no rule does, and the order of the rules."""

from __future__ import annotations

import subprocess
import sys

import pytest

from robota.core.permissions import MODE_POLICY, TRUST_TO_MODE, UNKNOWN_TOOL_FALLBACK, evaluate_permission

MODES = ["plan", "default", "acceptEdits", "bypassPermissions"]
INSPECT = ["auto", "auto", "auto", "auto"]
MODIFY = ["deny", "approve", "auto", "auto"]
EXECUTE = ["deny", "approve", "approve", "auto"]
UNKNOWN = ["deny", "approve", "approve", "auto"]


@pytest.mark.parametrize(
    ("tool", "arguments", "tool_class", "answers"),
    [
        ("Read", {"file_path": "x"}, None, INSPECT),
        ("Glob", {"pattern": "*"}, None, INSPECT),
        ("Grep", {"pattern": "x"}, None, INSPECT),
        ("WebFetch", {"url": "https://example.org"}, None, INSPECT),
        ("WebSearch", {"query": "x"}, None, INSPECT),
        ("Write", {"file_path": "x"}, None, MODIFY),
        ("Edit", {"filePath": "x"}, None, MODIFY),
        ("Bash", {"command": "ls"}, None, EXECUTE),
        ("Agent", {"subagent_type": "x"}, "execute", EXECUTE),
        ("TodoWrite", {}, "inspect", INSPECT),
        ("Rename", {}, "modify", MODIFY),
        ("Anything", {}, None, UNKNOWN),
        ("mcp__server__tool", {}, None, UNKNOWN),
    ],
)
def test_the_mode_decides_when_no_rule_does(
    tool: str, arguments: dict[str, object], tool_class: str | None, answers: list[str]
) -> None:
    given = [
        evaluate_permission(tool, arguments, mode=mode, cwd="/w", tool_class=tool_class) for mode in MODES
    ]
    assert given == answers


def test_the_tables_have_the_eight_tools_of_the_seed() -> None:
    assert MODE_POLICY["acceptEdits"] == {
        "Read": "auto",
        "Glob": "auto",
        "Grep": "auto",
        "WebFetch": "auto",
        "WebSearch": "auto",
        "Write": "auto",
        "Edit": "auto",
        "Bash": "approve",
    }
    assert [UNKNOWN_TOOL_FALLBACK[mode] for mode in MODES] == UNKNOWN  # type: ignore[index]  # plain strings here
    assert TRUST_TO_MODE == {"safe": "plan", "moderate": "default", "full": "acceptEdits"}


def test_a_tool_cannot_lower_its_own_class() -> None:
    assert evaluate_permission("mcp__server__read", {}, tool_class="inspect") == "approve"
    assert evaluate_permission("Bash", {"command": "ls"}, tool_class="inspect") == "approve"


def test_an_unknown_mode_refuses() -> None:
    assert evaluate_permission("Read", {"file_path": "x"}, mode="yolo") == "deny"


def decide(mode: str, **rules: list[str]) -> str:
    return evaluate_permission("Bash", {"command": "git push"}, mode=mode, cwd="/w", **rules)


def test_deny_comes_before_ask_ask_before_allow_allow_before_the_mode() -> None:
    rule = ["Bash(git *)"]
    assert [decide(mode, deny=rule, ask=rule, allow=rule) for mode in MODES] == ["deny"] * 4
    assert [decide(mode, ask=rule, allow=rule) for mode in MODES] == ["deny", "approve", "approve", "approve"]
    assert [decide(mode, allow=rule) for mode in MODES] == ["auto"] * 4
    assert [decide(mode) for mode in MODES] == EXECUTE


def test_a_narrow_allow_rule_never_beats_a_broad_deny_or_ask() -> None:
    assert decide("default", deny=["Bash"], allow=["Bash(git push)"]) == "deny"
    assert decide("bypassPermissions", ask=["Bash"], allow=["Bash(git push)"]) == "approve"


def test_adding_rules_moves_the_answer_only_one_way() -> None:
    strictness = ["auto", "approve", "deny"]
    commands = ["ls", "ls; rm x", "$X", "echo 'x", "sudo rm x", "echo a > f", "cat .env", "git push"]
    allows = [[], ["Bash(ls)"], ["Bash(ls)", "Bash(git *)"], ["Bash(ls)", "Bash(git *)", "Bash"]]
    denies = [[], ["Bash(rm *)"], ["Bash(rm *)", "Read(.env)"], ["Bash(rm *)", "Read(.env)", "Bash(broken"]]
    for mode in MODES:
        for command in commands:
            for column in zip(*([ask(command, mode, a, d) for d in denies] for a in allows), strict=True):
                assert sorted(column, key=strictness.index, reverse=True) == list(column), (mode, command)
            for a in allows:
                row = [ask(command, mode, a, d) for d in denies]
                assert sorted(row, key=strictness.index) == row, (mode, command)


def ask(command: str, mode: str, allow: list[str], deny: list[str]) -> str:
    return evaluate_permission("Bash", {"command": command}, mode=mode, allow=allow, deny=deny, cwd="/w")


def test_judging_a_file_loads_no_shell_grammar_and_no_parser() -> None:
    program = (
        "import sys\n"
        "from robota.core.permissions import evaluate_permission\n"
        "evaluate_permission('Edit', {'file_path': 'x'}, allow=['Edit(src/**)'], deny=['Read(.env)'])\n"
        "heavy = ('tree_sitter', 'logging', 'urllib')\n"
        "print([m for m in sys.modules if 'core.shell' in m or 'permissions.shell' in m or m in heavy])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
