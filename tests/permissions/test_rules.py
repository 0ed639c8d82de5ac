"""What a rule says: its grammar, its patterns, and what happens to rules that say nothing usable."""

from __future__ import annotations

import pytest

from robota.core.permissions import Rule, RuleProblem, check_rules, evaluate_permission, parse_rule
from robota.core.permissions.globs import (
    ANY_NAME,
    ANY_TEXT,
    ANY_WORD,
    ONE_CHARACTER,
    Item,
    compile_glob,
    may_match,
)


def bash(command: str, *, mode: str = "default", **rules: list[object]) -> str:
    return evaluate_permission("Bash", {"command": command}, mode=mode, cwd="/w", **rules)  # type: ignore[arg-type]


def call(tool: str, arguments: dict[str, object], *, mode: str = "default", **rules: list[str]) -> str:
    return evaluate_permission(tool, arguments, mode=mode, cwd="/w", **rules)


# --- reading rules ---


@pytest.mark.parametrize(
    ("text", "tool", "pattern"),
    [
        ("Bash", "Bash", None),
        ("Bash(*)", "Bash", None),
        ("Bash(**)", "Bash", None),
        (" Bash(ls) ", "Bash", "ls"),
        ("Bash(echo (a) b)", "Bash", "echo (a) b"),
        ("mcp__server__*", "mcp__server__*", None),
        ("Read(/src/**)", "Read", "/src/**"),
    ],
)
def test_a_rule_is_a_name_and_perhaps_a_pattern(text: str, tool: str, pattern: str | None) -> None:
    assert parse_rule(text, kind="allow") == Rule(text, tool, pattern)


@pytest.mark.parametrize(
    "text", ["", "(x)", "Bash(", "Bash(ls", "Bash()", "Bash( )", "Bash(ls) x", "Ba sh(ls)", "Bash (ls)"]
)
def test_a_malformed_rule_is_reported_with_its_position_and_text(text: str) -> None:
    problem = check_rules(["Read", text])[0]
    assert (problem.position, problem.text) == (1, text)
    assert problem.reason


def test_a_rule_that_is_no_text_is_reported() -> None:
    assert [problem.position for problem in check_rules(["Read", 5, None])] == [1, 2]
    assert len(check_rules(7)) == 1
    assert check_rules(None) == ()


def test_a_pattern_that_names_the_field_it_is_compared_with_is_reported() -> None:
    assert isinstance(parse_rule("Bash(command:rm x)"), RuleProblem)
    assert isinstance(parse_rule("Read(file_path:x)"), RuleProblem)
    assert isinstance(parse_rule("WebFetch(url:x)"), RuleProblem)
    assert isinstance(parse_rule("Bash(command:*)"), Rule)  # the program `command`, in the prefix form


def test_an_unusable_deny_or_ask_rule_makes_its_tool_ask() -> None:
    assert bash("ls", mode="bypassPermissions", deny=["Bash(rm"]) == "approve"
    assert bash("ls", mode="bypassPermissions", ask=["Bash(rm"]) == "approve"
    assert bash("ls", mode="plan", deny=["Bash(rm"], allow=["Bash"]) == "deny"
    assert call("Read", {"file_path": "x"}, deny=["Bash(rm"]) == "auto"
    assert call("Read", {"file_path": "x"}, deny=[""]) == "approve"


def test_an_unusable_rule_leaves_the_others_in_force() -> None:
    assert bash("rm x", deny=["Bash(", "Bash(rm *)"]) == "deny"
    assert bash("ls", allow=["Bash(", "Bash(ls)"]) == "auto"


def test_an_unusable_allow_rule_grants_nothing() -> None:
    for rule in ["Bash(ls", "*", "B*", "Bash()", 5, None]:
        assert bash("ls", allow=[rule]) == "approve"


# --- names ---


def test_names_are_compared_whole_and_with_case() -> None:
    assert bash("ls", allow=["bash", "BASH(*)", "Bas", "Bashx"]) == "approve"
    assert call("bash", {"command": "ls"}, allow=["Bash"]) == "approve"
    assert bash("ls", deny=["bash"]) == "approve"


@pytest.mark.parametrize(
    ("rule", "tool", "covered"),
    [
        ("mcp__github__get", "mcp__github__get", True),
        ("mcp__github__get", "mcp__github__get2", False),
        ("mcp__github__get_*", "mcp__github__get_issue", True),
        ("mcp__github__get_*", "mcp__github__put_issue", False),
        ("mcp__github__*", "mcp__github__get", True),
        ("mcp__github__*", "mcp__github2__get", False),
        ("mcp__github", "mcp__github__get", True),
        ("mcp__github", "mcp__github2__get", False),
        ("mcp__github*", "mcp__github__get", False),
        ("mcp__*", "mcp__github__get", False),
        ("Read", "mcp__github__Read", False),
    ],
)
def test_an_allow_rule_for_mcp_covers_exactly_the_named_server(rule: str, tool: str, covered: bool) -> None:
    assert call(tool, {}, allow=[rule]) == ("auto" if covered else "approve")


def test_deny_and_ask_rules_take_any_wildcard_in_the_name() -> None:
    assert call("mcp__s__t", {}, mode="bypassPermissions", deny=["mcp__*"]) == "deny"
    assert call("mcp__s__t", {}, mode="bypassPermissions", deny=["mcp__s"]) == "deny"
    assert call("Anything", {}, mode="bypassPermissions", ask=["*"]) == "approve"
    assert bash("ls", mode="bypassPermissions", deny=["B*"]) == "deny"


# --- patterns ---


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("make *", ["make x", "make x y", "make  x"], ["make", "makefoo", "amake x", "./make x"]),
        ("make*", ["make", "makefoo", "make x"], ["cmake"]),
        ("npm run:*", ["npm run", "npm run x", "npm run x y"], ["npm runx", "npm"]),
        ("git * main", ["git push origin main"], ["git push origin dev", "git main"]),
        ("* --version", ["node --version"], ["node --versions", "--version"]),
        ("echo a.b", ["echo a.b"], ["echo aXb"]),
        ("echo a+", ["echo a+"], ["echo aa"]),
        ("echo [ab]", ["echo [ab]", "echo '[ab]'"], ["echo a"]),
        ("echo a|b", ["echo 'a|b'"], ["echo a", "echo a | b"]),
        ("echo ^a$", ["echo ^a$"], ["echo a"]),
        ("echo a:b*", ["echo a:bc"], ["echo a"]),
        ("git commit -m *", ["git commit -m 'a && b; c'", 'git commit -m "two\nlines"'], ["git commit"]),
        ('rm "a b"', ['rm "a b"', "rm 'a b'", "rm a\\ b"], ["rm a b"]),
        ("rm a b", ["rm a b", "rm 'a' \"b\""], ['rm "a b"', "rm a\\ b"]),
        ("rm '~'", ["rm '~'"], ["rm ~"]),
        ("grep '$x' f", ["grep '$x' f"], ["grep $x f"]),
        ("./run tests", ["./run tests"], ['"./run tests"', "./run\\ tests"]),
    ],
)
def test_a_pattern_is_anchored_literal_text_with_wildcards(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    assert {bash(command, allow=[f"Bash({pattern})"]) for command in matching} == {"auto"}
    assert {bash(command, allow=[f"Bash({pattern})"]) for command in others} == {"approve"}


def test_a_deny_pattern_also_matches_the_text_as_written() -> None:
    assert bash("ls && git push", mode="bypassPermissions", deny=["Bash(ls && *)"]) == "deny"
    assert bash('echo "rm -rf x"', mode="bypassPermissions", deny=["Bash(*rm -rf*)"]) == "deny"


def test_parameters_can_be_denied_by_name() -> None:
    background = {"command": "ls", "run_in_background": True}
    assert call("Bash", background, mode="bypassPermissions", deny=["Bash(run_in_background:true)"]) == "deny"
    assert bash("ls", mode="bypassPermissions", deny=["Bash(run_in_background:true)"]) == "auto"
    assert call("Agent", {"model": "opus"}, mode="bypassPermissions", deny=["Agent(model:op*)"]) == "deny"
    assert call("mcp__s__t", {"n": 5}, mode="bypassPermissions", deny=["mcp__s__t(n:5)"]) == "deny"
    assert call("mcp__s__t", {"n": [5]}, mode="bypassPermissions", deny=["mcp__s__t(n:5)"]) == "auto"


def test_agents_and_skills_are_named_in_the_pattern() -> None:
    assert call("Agent", {"subagent_type": "Explore"}, allow=["Agent(Explore)"]) == "auto"
    assert call("Agent", {"subagent_type": "Other"}, allow=["Agent(Explore)"]) == "approve"
    assert (
        call("Agent", {"subagent_type": "Explore"}, mode="bypassPermissions", deny=["Task(Explore)"])
        == "deny"
    )
    assert call("Skill", {"skill": "deploy"}, allow=["Skill(deploy)"]) == "auto"
    assert call("Skill", {"skill": "deploy", "args": "now"}, allow=["Skill(deploy *)"]) == "auto"


def test_a_deny_pattern_that_cannot_be_compared_asks() -> None:
    rules = {"deny": ["mcp__s__t(x*)"]}
    assert call("mcp__s__t", {"a": "x"}, mode="bypassPermissions", **rules) == "approve"
    assert call("mcp__s__t", {"a": "x"}, mode="plan", allow=["mcp__s__t"], **rules) == "deny"
    assert call("WebSearch", {}, deny=["WebSearch(foo*)"]) == "approve"


@pytest.mark.parametrize("arguments", [{}, {"command": None}, {"command": 5}, {"command": ["ls"]}])
def test_a_missing_or_odd_argument_is_never_covered(arguments: dict[str, object]) -> None:
    assert call("Bash", arguments, allow=["Bash"]) == "approve"
    assert call("Bash", arguments, mode="plan", allow=["Bash"]) == "deny"
    assert call("Bash", arguments, mode="bypassPermissions", deny=["Bash(rm *)"]) == "approve"
    assert call("Bash", arguments, mode="bypassPermissions") == "auto"
    assert call("Bash", arguments, deny=["Bash"]) == "deny"


# --- addresses ---


@pytest.mark.parametrize(
    ("url", "answer"),
    [
        ("https://example.com", "deny"),
        ("http://EXAMPLE.com./x", "deny"),
        ("https://user:secret@example.com:8443/", "deny"),
        ("https://sub.example.com", "deny"),
        ("example.com/x", "deny"),
        ("https://notexample.com", "auto"),
        ("https://example.com.evil.org", "auto"),
        ("https://example.com@evil.org/", "auto"),
        ("https://evil.org/example.com?example.com#example.com", "auto"),
        ("https://example.com\\@evil.org", "approve"),
        ("https://exa\0mple.com", "approve"),
        ("https://a b.com", "approve"),
        ("https://exam%70le.com", "approve"),
        ("https://[::1", "approve"),
        ("", "approve"),
    ],
)
def test_a_host_rule_compares_parsed_hosts_by_label(url: str, answer: str) -> None:
    assert call("WebFetch", {"url": url}, deny=["WebFetch(domain:example.com)"]) == answer


@pytest.mark.parametrize(
    ("rule", "url", "answer"),
    [
        ("WebFetch(domain:*.example.com)", "https://a.b.example.com", "deny"),
        ("WebFetch(domain:*.example.com)", "https://example.com", "auto"),
        ("WebFetch(domain:*)", "https://x.org", "deny"),
        ("WebFetch(domain:bücher.de)", "https://xn--bcher-kva.de", "deny"),
        ("WebFetch(domain:xn--bcher-kva.de)", "https://BÜCHER.de", "deny"),
        ("WebFetch(domain:127.0.0.1)", "http://2130706433/", "deny"),
        ("WebFetch(domain:127.0.0.1)", "http://0x7f.1/", "deny"),
        ("WebFetch(domain:127.0.0.1)", "http://[::ffff:7f00:1]/", "deny"),
        ("WebFetch(domain:[::1]:80)", "http://[0:0::1]/", "deny"),
        ("WebFetch(domain:straße.de)", "https://strasse.de", "approve"),
        ("WebFetch(domain:x.org)", "https://straße.de", "approve"),
        ("WebFetch(https://x.org/*)", "https://x.org/a", "deny"),
        ("WebFetch(https://x.org/*)", "HTTPS://X.org/a", "deny"),
        ("WebFetch(https://x.org/*)", "https://x.org.evil/a", "auto"),
    ],
)
def test_addresses_are_compared_in_a_canonical_form(rule: str, url: str, answer: str) -> None:
    assert call("WebFetch", {"url": url}, deny=[rule]) == answer


# --- patterns against text that is only partly known ---


@pytest.mark.parametrize(
    ("pattern", "items", "possible"),
    [
        ("git push *", ["git ", ANY_TEXT], True),
        ("git push *", ["git ", ANY_WORD], False),
        ("git push *", ["git ", ANY_WORD, " origin"], True),
        ("git push", ["git pus", ONE_CHARACTER], True),
        ("git push", ["git pu", ONE_CHARACTER], False),
        ("/w/.env", ["/w/", ANY_NAME], True),
        ("/w/a/.env", ["/w/", ANY_NAME], False),
        ("rm *", ["echo ", ANY_TEXT], False),
        ("*secret*", ["echo ", ANY_TEXT], True),
        ("ls", ["ls"], True),
    ],
)
def test_a_pattern_may_match_what_is_only_partly_known(
    pattern: str, items: list[Item], possible: bool
) -> None:
    assert may_match(compile_glob(pattern), items) is possible


def test_an_agent_is_compared_with_its_name_also_when_it_gets_a_path() -> None:
    call = {"subagent_type": "Explore", "path": "src"}
    denied = evaluate_permission("Agent", call, deny=["Agent(Explore)"], cwd="/w", tool_class="inspect")
    assert denied == "deny"
    assert (
        evaluate_permission("Agent", call, allow=["Agent(Explore)"], cwd="/w", tool_class="modify") == "auto"
    )


@pytest.mark.parametrize("tool", ["NotebookEdit", "MultiEdit"])
def test_a_rarer_tool_that_is_turned_off_leaves_the_others_alone(tool: str) -> None:
    def judge(called: str, *deny: str) -> str:
        written = {"file_path": "a.py", "content": "x"}
        return evaluate_permission(called, written, mode="acceptEdits", deny=deny, cwd="/w")

    assert judge(tool, tool) == "deny"
    assert judge("Write", tool) == "auto"
    assert judge("Write", f"{tool}(a.py)") == "deny"
