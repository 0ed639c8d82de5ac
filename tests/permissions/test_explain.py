"""Why a call was decided as it was, and which rule would settle it."""

from __future__ import annotations

import logging

import pytest

from robota.core.permissions import PermissionExplanation, explain_permission, narrowest_rules


def explain(command: str, *, mode: str = "default", **rules: list[str]) -> PermissionExplanation:
    return explain_permission("Bash", {"command": command}, mode=mode, cwd="/w", home="/home/u", **rules)


def test_a_denial_names_the_rule_and_the_part() -> None:
    found = explain("ls && sudo rm x", deny=["Bash(rm *)"])
    assert found == PermissionExplanation("deny", "Bash(rm *)", "rm x", "The rule Bash(rm *) denies rm x.")


def test_an_ask_rule_names_the_part_it_asks_about() -> None:
    found = explain("git push origin", ask=["Bash(git push *)"])
    assert (found.decision, found.rule, found.part) == ("approve", "Bash(git push *)", "git push origin")


def test_the_part_that_no_rule_covers_is_named() -> None:
    found = explain("ls; make x; ls", allow=["Bash(ls)"])
    assert (found.decision, found.rule, found.part) == ("approve", None, "make x")
    assert found.reason == "No rule allows this part: make x."


def test_an_uncovered_redirection_is_named() -> None:
    found = explain("ls > out", allow=["Bash(ls)"])
    assert found.part == "ls >out"
    assert "writing" in found.reason


def test_an_allow_names_its_rule() -> None:
    assert explain("ls", allow=["Bash(make)", "Bash(ls)"]).rule == "Bash(ls)"


def test_a_deny_that_cannot_be_evaluated_says_why() -> None:
    found = explain("$X y", deny=["Bash(rm *)"])
    assert (found.decision, found.rule) == ("approve", "Bash(rm *)")
    assert "only known when it runs" in found.reason


def test_an_unusable_rule_is_explained() -> None:
    found = explain("ls", mode="bypassPermissions", deny=["Bash(rm"])
    assert (found.decision, found.rule) == ("approve", "Bash(rm")
    assert "parenthesis" in found.reason


def test_the_mode_explains_itself() -> None:
    assert explain("ls").reason == "No rule covers it, and the mode default asks before running programs."
    assert "'yolo'" in explain("ls", mode="yolo").reason


def test_accept_edits_says_why_it_asks() -> None:
    found = explain_permission("Write", {"file_path": ".git/config"}, mode="acceptEdits", cwd="/w")
    assert (found.decision, found.part) == ("approve", ".git/config")
    assert "protected" in found.reason
    outside = explain_permission("Write", {"file_path": "/etc/x"}, mode="acceptEdits", cwd="/w")
    assert "outside the workspace" in outside.reason


class Hostile(dict[str, object]):
    def get(self, key: str, default: object = None) -> object:
        raise RuntimeError("boom")


def test_a_fault_in_the_evaluator_refuses_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, logger="robota.permissions"):
        found = explain_permission("Bash", Hostile(), deny=["Bash(rm *)"])
    assert found.decision == "deny"
    assert "Bash" in caplog.text


@pytest.mark.parametrize("arguments", [None, 5, "ls", ["ls"]])
def test_arguments_of_any_type_get_an_answer(arguments: object) -> None:
    assert explain_permission("Bash", arguments, allow=["Bash"]).decision == "approve"  # type: ignore[arg-type]


# --- the narrowest rule ---


def offer(command: str, *, mode: str = "default", **rules: list[str]) -> tuple[str, ...]:
    return narrowest_rules("Bash", {"command": command}, mode=mode, cwd="/w", home="/home/u", **rules)


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("npm test", ("Bash(npm test)",)),
        ("npm test && make", ("Bash(npm test)", "Bash(make)")),
        ("git commit -m 'a b'", ("Bash(git commit -m 'a b')",)),
        ("sudo apt update", ("Bash(sudo apt update)",)),
        ("FOO=1 npm test", ("Bash(FOO=1 npm test)",)),
        ("echo a > out/x", ("Bash(echo a)", "Write(out/x)")),
        ("find . -name x -delete", ("Bash(find . -name x -delete)",)),
    ],
)
def test_always_allow_saves_one_exact_rule_for_each_part(command: str, rules: tuple[str, ...]) -> None:
    assert offer(command) == rules


def test_parts_that_are_already_allowed_need_no_rule() -> None:
    assert offer("ls; make; ls", allow=["Bash(ls)"]) == ("Bash(make)",)


@pytest.mark.parametrize(
    "command",
    [
        "$X",
        "echo 'x",
        "ls \x1b",
        "a; b; c; d; e; f",
        "python *",
        "echo a > /etc/x",
        "echo a > .git/config",
        "curl u | sh",
    ],
)
def test_nothing_is_offered_where_no_narrow_rule_is_safe(command: str) -> None:
    assert offer(command) == ()


def test_nothing_is_offered_when_a_rule_asks_or_denies() -> None:
    assert offer("git push", ask=["Bash(git push)"]) == ()
    assert offer("git push", deny=["Bash(git push)"]) == ()
    assert offer("ls", allow=["Bash(ls)"]) == ()


def test_other_tools_get_the_narrowest_rule_they_have() -> None:
    def offered(tool: str, arguments: dict[str, object]) -> tuple[str, ...]:
        return narrowest_rules(tool, arguments, cwd="/w", home="/home/u")

    assert offered("Edit", {"file_path": "src/a.py"}) == ("Edit(src/a.py)",)
    assert offered("Write", {"file_path": "/w/src/a.py"}) == ("Write(src/a.py)",)
    assert offered("Write", {"file_path": "/etc/x"}) == ("Write(/etc/x)",)
    assert offered("Write", {}) == ()
    assert offered("mcp__s__t", {"a": 1}) == ('mcp__s__t({"a":1})',)
    assert offered("Agent", {"subagent_type": "Explore"}) == ("Agent(Explore)",)


@pytest.mark.parametrize(
    ("command", "rule", "said"),
    [
        ("find . -name x -delete", "Bash(find *)", "-delete can start a program or write a file"),
        ("LD_PRELOAD=x pytest -q", "Bash(pytest *)", "does not cover a command that sets LD_PRELOAD"),
        ("env rm x", "Bash(env *)", "does not cover what this part runs"),
        ("npm test", "Bash(make *)", "No rule allows this part"),
    ],
)
def test_a_rule_that_seems_to_fit_is_named_with_what_it_does_not_cover(
    command: str, rule: str, said: str
) -> None:
    why = explain_permission("Bash", {"command": command}, allow=[rule], cwd="/w")
    assert why.decision == "approve"
    assert said in why.reason


def test_deleting_everything_is_not_called_showing_something() -> None:
    why = explain_permission("Bash", {"command": "rm -rf /"}, allow=["Bash(rm *)"])

    assert why.decision == "approve"
    assert "reaches /proc" in why.reason
    assert "would show" not in why.reason
