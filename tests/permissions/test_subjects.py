"""What calls touch, and what a tool that declares it may and may not gain by that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from robota.core.permissions import Touches, evaluate_permission, explain_permission, narrowest_rules
from robota.core.permissions.subjects import subjects

SAVE = (Touches("write", ("target", "copies")),)


class Declared:
    """A tool as a server or a plugin brings it."""

    tool_class = None
    touches = SAVE


class Classified:
    def __init__(self, tool_class: str) -> None:
        self.tool_class = tool_class


@pytest.mark.parametrize(
    ("tool", "arguments", "found"),
    [
        ("Bash", {"command": "ls", "path": "x"}, [("command", "ls")]),
        ("Read", {"filePath": "a", "limit": 3}, [("read", "a")]),
        ("Edit", {"file_path": "a", "notebook_path": "b"}, [("write", "a"), ("write", "b")]),
        ("Write", {"file_path": None}, []),
        ("Write", {"file_path": 5}, [("write", 5)]),
        ("Grep", {"pattern": "x"}, [("search", ".")]),
        ("Grep", {"pattern": "x", "path": "src", "glob": "a.py"}, [("search", "src/a.py")]),
        ("Grep", {"pattern": "x", "path": "src", "glob": "*.py"}, [("search", "src")]),
        ("Glob", {"pattern": "lib/*/a?.py", "path": "src"}, [("search", "src/lib")]),
        ("Glob", {"pattern": "/etc/**", "path": "src"}, [("search", "/etc")]),
        ("WebFetch", {"url": "https://example.org"}, [("url", "https://example.org")]),
        ("WebSearch", {"query": "q"}, [("query", "q")]),
        ("Agent", {"subagent_type": "Explore"}, [("agent", "Explore")]),
        ("Skill", {"skill": "pdf"}, [("skill", "pdf")]),
        ("Anything", {"file_path": "a"}, []),
    ],
)
def test_the_table_says_what_a_call_touches(
    tool: str, arguments: Mapping[str, object], found: list[tuple[str, object]]
) -> None:
    assert [(each.kind, each.value) for each in subjects(tool, arguments)] == found


@pytest.mark.parametrize(
    ("tool_class", "found"),
    [
        ("inspect", [("read", "a"), ("read", "b")]),
        ("modify", [("command", "ls"), ("write", "a"), ("write", "b")]),
        ("execute", [("command", "ls"), ("write", "a")]),
    ],
)
def test_other_tools_are_known_by_their_class_and_the_names_of_their_arguments(
    tool_class: str, found: list[tuple[str, str]]
) -> None:
    arguments = {"file_path": "a", "path": "b", "command": "ls", "target": "c"}
    touched = subjects("mine", arguments, Classified(tool_class))
    assert [(each.kind, each.value) for each in touched] == found


def test_a_declared_argument_may_be_a_list() -> None:
    touched = subjects("mcp__s__save", {"target": "a", "copies": ["b", 3]}, Declared())
    assert [(each.value, each.declared) for each in touched] == [("a", True), ("b", True), (3, True)]


def test_a_tool_of_the_table_cannot_declare_something_else() -> None:
    assert [each.kind for each in subjects("Bash", {"command": "ls", "target": "x"}, Declared())] == [
        "command"
    ]


def decide(arguments: Mapping[str, object], **terms: Any) -> str:
    return evaluate_permission(
        "mcp__files__save", arguments, **{"cwd": "/w", "home": "/h", "touches": SAVE, **terms}
    )


@pytest.mark.parametrize("rule", ["Write(conf/**)", "Edit(conf/**)", "Read(conf/**)", "Write", "mcp__files"])
def test_a_deny_rule_for_files_stops_a_tool_that_declares_its_path(rule: str) -> None:
    for mode in ("default", "acceptEdits", "bypassPermissions"):
        denied = decide(
            {"target": "src/../conf/app.toml"}, deny=[rule], allow=["mcp__files__save"], mode=mode
        )
        assert denied == "deny"


def test_every_declared_path_counts_and_the_strictest_answer_wins() -> None:
    rules = {"deny": ["Write(conf/**)"], "allow": ["mcp__files__save"]}
    assert decide({"target": "src/a", "copies": ["src/b", "conf/c"]}, **rules) == "deny"
    assert decide({"target": 7, "copies": ["conf/c"]}, **rules) == "deny"
    assert decide({"target": 7}, **rules) == "approve"
    assert decide({"target": "src/a", "copies": ["src/b"]}, **rules) == "auto"
    assert decide({"other": "conf/c"}, **rules) == "auto"


def test_a_rule_that_cannot_be_used_asks_about_declared_paths_too() -> None:
    assert decide({"target": "a"}, deny=["Write(src"], allow=["mcp__files__save"]) == "approve"


def test_an_ask_rule_asks_and_names_the_path() -> None:
    asked = explain_permission(
        "deploy",
        {"target": "conf/a"},
        ask=["Write(conf/**)"],
        mode="bypassPermissions",
        cwd="/w",
        touches=SAVE,
    )
    assert (asked.decision, asked.rule, asked.part) == ("approve", "Write(conf/**)", "conf/a")


@pytest.mark.parametrize(
    "rule", ["Write", "Write(/**)", "Write(src/**)", "Edit(src/a)", "mcp__files__save(src/**)"]
)
def test_what_a_tool_declares_never_makes_an_allow_rule_match(rule: str) -> None:
    for mode in ("default", "acceptEdits"):
        assert decide({"target": "src/a"}, allow=[rule], mode=mode) == "approve"
        assert decide({"target": "src/a"}, allow=[rule], mode=mode, tool_class="modify") == "approve"


def test_the_rule_to_save_names_the_tool_not_the_path() -> None:
    rules = narrowest_rules("mcp__files__save", {"target": "src/a"}, cwd="/w", home="/h", touches=SAVE)
    assert rules == ('mcp__files__save({"target":"src/a"})',)


@pytest.mark.parametrize(
    ("target", "answer"), [("src/a", "auto"), ("/etc/passwd", "approve"), (".git/config", "approve")]
)
def test_accept_edits_keeps_a_declared_path_in_the_workspace(target: str, answer: str) -> None:
    decided = evaluate_permission(
        "save", {"target": target}, mode="acceptEdits", tool_class="modify", cwd="/w", home="/h", touches=SAVE
    )
    assert decided == answer


@pytest.mark.parametrize(
    ("kind", "value", "rule"),
    [
        ("command", "ls; rm x", "Bash(rm *)"),
        ("search", ".", "Read(/w/**)"),
        ("url", "https://x.example.org/", "WebFetch(domain:example.org)"),
        ("query", "secret thing", "WebSearch(secret*)"),
        ("agent", "Explore", "Agent(Explore)"),
        ("skill", "pdf", "Skill(pdf)"),
    ],
)
def test_rules_for_every_kind_bind_what_is_declared(kind: Any, value: str, rule: str) -> None:
    terms: dict[str, Any] = {"touches": (Touches(kind, ("it",)),), "cwd": "/w", "mode": "bypassPermissions"}
    assert evaluate_permission("tool", {"it": value}, deny=[rule], **terms) == "deny"
    assert evaluate_permission("tool", {"it": value}, deny=["Bash(never)"], **terms) == "auto"


def test_a_declaration_that_is_none_refuses_the_call() -> None:
    assert decide({"target": "a"}, deny=["Write(conf/**)"], touches=("write",)) == "deny"
