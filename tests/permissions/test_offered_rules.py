"""What "always allow" saves covers what was shown and nothing more."""

from __future__ import annotations

import pytest

from robota.core.permissions import evaluate_permission, narrowest_rules

PLACE = {"cwd": "/w", "home": "/home/u"}


def offer(command: str) -> tuple[str, ...]:
    return narrowest_rules("Bash", {"command": command}, **PLACE)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "make test",
            "npm run build",
            "python x.py --all",
            "FOO=1 npm test",
            "echo a > out.txt",
            "sudo ls -l",
        ),
        *(
            "git log --oneline | head -5",
            "cd sub && make",
            "ls a; ls b",
            "git commit -m 'a b'",
            "./run tests",
        ),
    ],
)
def test_the_rule_for_a_command_covers_it_and_nothing_with_more_operands(command: str) -> None:
    rules = offer(command)
    assert rules
    assert evaluate_permission("Bash", {"command": command}, allow=rules, **PLACE) == "auto"
    for more in (" more", " -rf /", " && rm x", "; id", " > x", " *"):
        assert evaluate_permission("Bash", {"command": command + more}, allow=rules, **PLACE) == "approve", (
            more
        )


@pytest.mark.parametrize(
    "command",
    [
        *("ls *.py", "rm *", "find . -name '*.py'", "grep -r x --include=*.c .", "echo a*b > out", "cat a:*"),
        *(
            'echo "a * b"',
            "sort $X",
            'sort "$X"',
            "rm -rf $(ls)",
            "for f in *; do rm $f; done",
            "echo a > 'x*'",
        ),
    ],
)
def test_a_star_or_an_unknown_word_never_becomes_a_rule(command: str) -> None:
    assert offer(command) == ()


@pytest.mark.parametrize(
    "command",
    [
        "docker exec -i c sh <<'EOF'\nls\nEOF",
        "sudo bash <<< ls",
        "timeout 5 bash <<< ls",
        "ssh h bash <<< ls",
        "ssh h <<< ls",
        "echo ls | kubectl exec -i p -- bash",
        "python3 - <<'EOF'\nprint(1)\nEOF",
        "cat x.py | uv run python",
        "make -f - <<< 'all:; ls'",
        "cat names | xargs rm",
        "xargs -I{} git add {} < names",
    ],
)
def test_what_a_command_is_given_to_run_never_becomes_a_rule(command: str) -> None:
    assert offer(command) == ()


@pytest.mark.parametrize(
    ("rule", "covered", "fed"),
    [
        ("Bash(sudo bash)", "sudo bash", "sudo bash <<< id"),
        ("Bash(docker exec -it c bash)", "docker exec -it c bash", "docker exec -it c bash <<< id"),
        ("Bash(ssh h bash)", "ssh h bash", "echo id | ssh h bash"),
    ],
)
def test_an_exact_rule_does_not_cover_what_a_shell_inside_is_fed(rule: str, covered: str, fed: str) -> None:
    allow = (rule, "Bash(echo *)")
    assert evaluate_permission("Bash", {"command": covered}, allow=allow, **PLACE) == "auto"
    assert evaluate_permission("Bash", {"command": fed}, allow=allow, **PLACE) == "approve"


def test_a_working_directory_is_part_of_what_is_saved() -> None:
    call = {"command": "make test", "working_directory": "sub"}
    rules = narrowest_rules("Bash", call, **PLACE)
    assert rules == ("Bash(cd sub)", "Bash(make test)")
    assert evaluate_permission("Bash", call, allow=rules, **PLACE) == "auto"
    assert (
        evaluate_permission("Bash", call | {"working_directory": "/tmp"}, allow=rules, **PLACE) == "approve"
    )


@pytest.mark.parametrize("tool", ["deploy", "mcp__cloud__deploy"])
def test_a_tool_of_a_user_gets_a_rule_for_exactly_these_arguments(tool: str) -> None:
    call = {"env": "prod", "replicas": 2}
    rules = narrowest_rules(tool, call)
    assert rules == (tool + '({"env":"prod","replicas":2})',)
    assert evaluate_permission(tool, {"replicas": 2, "env": "prod"}, allow=rules) == "auto"
    for other in (
        {"env": "prod"},
        call | {"force": True},
        call | {"env": "dev"},
        call | {"replicas": "2"},
        {},
    ):
        assert evaluate_permission(tool, other, allow=rules) == "approve"


def test_a_tool_whose_arguments_hold_a_star_gets_no_rule() -> None:
    assert narrowest_rules("deploy", {"env": "*"}) == ()
    assert narrowest_rules("deploy", {}) == ("deploy",)


def test_a_written_rule_may_leave_some_arguments_open() -> None:
    rule = ['deploy({"env":"staging"*)']
    assert evaluate_permission("deploy", {"env": "staging", "fast": True}, allow=rule) == "auto"
    assert evaluate_permission("deploy", {"env": "prod"}, allow=rule) == "approve"
    assert evaluate_permission("deploy", {"env": "staging"}, deny=rule) == "deny"
