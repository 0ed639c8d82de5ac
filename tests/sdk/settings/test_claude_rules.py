"""Rules of `.claude` files mean here what they mean there, or it is said that they do not."""

from __future__ import annotations

import pytest
from tests.sdk.settings.conftest import House

from robota.core.permissions import evaluate_permission
from robota.sdk.settings import Settings


def load(house: House, kind: str, rule: str, layer: str = "claude") -> Settings:
    return house.write(**{layer: {"permissions": {kind: [rule]}}}).load()


def judge(house: House, settings: Settings, tool: str, **call: object) -> str:
    rules = settings.rules
    return evaluate_permission(
        tool,
        call,
        allow=rules.allow,
        deny=rules.deny,
        ask=rules.ask,
        cwd=str(house.cwd),
        home=str(house.root / "home"),
    )


@pytest.mark.parametrize(
    ("rule", "command", "runs"),
    [
        ("Bash(npm run build)", "npm run build", True),
        ("Bash(npm run build)", "npm run build --all", False),
        ("Bash(npm run *)", "npm run", True),
        ("Bash(npm run *)", "npm run x y", True),
        ("Bash(npm run *)", "npm runx", False),
        ("Bash(npm run:*)", "npm run x", True),
        ("Bash(npm run:*)", "npm run", True),
        ("Bash(npm run:*)", "npm runx", False),
        ("Bash(lsx*)", "lsxof", True),
        ("Bash(* install)", "npm install", True),
        ("Bash(*)", "anything at all", True),
        (r"Bash(python -c 'print\(1\)')", "python -c 'print(1)'", True),
        ("Bash(npm run *)", "npm run x && curl y", False),
    ],
)
def test_commands_that_are_allowed(house: House, rule: str, command: str, runs: bool) -> None:
    settings = load(house, "allow", rule)

    assert settings.problems == ()
    assert judge(house, settings, "Bash", command=command) == ("auto" if runs else "approve")


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("Bash(git push *)", "git push"),
        ("Bash(git push *)", "git push --force"),
        ("Bash(git push:*)", "git push"),
        ("Bash(rm -rf *)", "cd x; rm -rf /"),
        ("Bash(git * main)", "git merge main"),
    ],
)
def test_commands_that_are_denied(house: House, rule: str, command: str) -> None:
    assert judge(house, load(house, "deny", rule), "Bash", command=command) == "deny"


HOME, PROJECT = "HOME", "PROJECT"


@pytest.mark.parametrize(
    ("rule", "path", "denied"),
    [
        ("Read(.env)", ".env", True),
        ("Read(.env)", "packages/web/.env", True),
        ("Read(./.env)", ".env", True),
        ("Read(.env.*)", "a/.env.local", True),
        ("Read(**/.env)", "a/b/.env", True),
        ("Read(/secrets/**)", "secrets/a", True),
        ("Read(/secrets/**)", "deep/secrets/a", False),
        ("Read(secrets/**)", "secrets/a", True),
        ("Read(secrets/**)", "deep/secrets/a", True),
        ("Read(secrets/)", "deep/secrets/a", True),
        ("Read(src/secrets/**)", "src/secrets/a", True),
        ("Read(src/secrets/**)", "x/src/secrets/a", False),
        ("Read(//etc/passwd)", "/etc/passwd", True),
        ("Read(//etc/passwd)", "etc/passwd", False),
        ("Read(~/.ssh/**)", "HOME/.ssh/id", True),
        ("Read(.env.?)", ".env.1", True),
        ("Read(key[0-9].pem)", "key5.pem", True),
        ("Edit(/src/**)", "src/a.py", True),
        ("Write(/src/**)", "src/a.py", True),
    ],
)
def test_files_that_are_denied(house: House, rule: str, path: str, denied: bool) -> None:
    settings = load(house, "deny", rule)
    tool = "Read" if rule.startswith("Read") else "Write"

    decision = judge(house, settings, tool, file_path=path.replace("HOME", str(house.root / "home")))

    assert (decision == "deny") is denied


@pytest.mark.parametrize(
    ("layer", "path", "denied"),
    [
        ("claude", "PROJECT/x", True),
        ("claude_local", "PROJECT/x", True),
        ("claude_user", "HOME/.claude/x", True),
        ("claude_user", "PROJECT/x", False),
        ("user", "/x", True),
        ("project", "/x", True),
        ("project", "PROJECT/x", False),
    ],
)
def test_a_leading_slash_is_the_directory_of_those_settings_and_the_root_in_ours(
    house: House, layer: str, path: str, denied: bool
) -> None:
    settings = load(house, "deny", "Read(/x)", layer)
    real = path.replace("HOME", str(house.root / "home")).replace("PROJECT", str(house.cwd))

    assert (judge(house, settings, "Read", file_path=real) == "deny") is denied


@pytest.mark.parametrize(
    ("rule", "path", "runs"),
    [
        ("Edit(/src/**)", "src/a/b.py", True),
        ("Edit(src/**)", "src/a.py", True),
        ("Edit(src/**)", "x/src/a.py", False),
        ("Edit(package.json)", "package.json", True),
        ("Edit(package.json)", "packages/web/package.json", True),
        ("Edit(*.md)", "docs/deep/a.md", True),
        ("Edit(**/*.ts)", "a/b.ts", True),
        ("Edit(docs)", "docs/a.md", True),
        ("Edit(./docs/**)", "docs/a.md", True),
        ("Edit(./**)", "a/b", True),
        ("Edit(./**)", "../a", False),
        ("Edit(//tmp/x/**)", "/tmp/x/a", True),
        ("Edit(~/notes/*)", "HOME/notes/a", True),
        (r"Edit(app/\(shop\)/page.tsx)", "app/(shop)/page.tsx", True),
    ],
)
def test_files_that_may_be_edited_by_every_tool_that_edits(
    house: House, rule: str, path: str, runs: bool
) -> None:
    settings = load(house, "allow", rule)
    real = path.replace("HOME", str(house.root / "home"))

    assert settings.problems == ()
    for tool in ("Edit", "Write"):
        assert judge(house, settings, tool, file_path=real) == ("auto" if runs else "approve")


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("Edit(src/*.ts)", "a star that stays within one directory"),
        ("Edit(packages/*/src/**)", "a star that stays within one directory"),
        ("Edit(src/a?.ts)", "knows no wildcard but *"),
        ("Edit(src/[ab].ts)", "knows no wildcard but *"),
        ("Edit(!src/a.ts)", "begins with !"),
        ("Write(src/**)", "never consulted; write Edit(src/**)"),
        ("Glob(src/**)", "never consulted; write Read(src/**)"),
        ("WebFetch(https://example.com/*)", "names a host"),
        ("mcp__*", "after mcp__<server>__"),
        ("Bash(ls", "closing parenthesis"),
    ],
)
def test_an_allow_rule_that_cannot_be_said_grants_nothing_and_is_named(
    house: House, rule: str, reason: str
) -> None:
    settings = load(house, "allow", rule)

    assert settings.rules.allow == settings.rules.ask == ()
    (problem,) = settings.problems
    assert reason in problem.message
    assert rule in problem.message
    assert (problem.line, problem.subject) == (4, "permissions.allow[0]")


def test_a_deny_rule_that_cannot_be_said_makes_its_tool_ask(house: House) -> None:
    settings = load(house, "deny", "Read(!keep.txt)")

    assert settings.rules.ask == ("Read",)
    assert "Every call of Read is asked about" in settings.problems[0].message


def test_a_deny_rule_that_reaches_more_than_it_did_says_so(house: House) -> None:
    (problem,) = load(house, "deny", "Read(key?.pem)").problems

    assert "it is read as Read(key*.pem), which reaches more" in problem.message


@pytest.mark.parametrize(
    ("kind", "rule", "tool", "call", "decision"),
    [
        ("allow", "WebFetch(domain:example.com)", "WebFetch", {"url": "https://example.com/a"}, "auto"),
        ("deny", "WebFetch(domain:*.example.com)", "WebFetch", {"url": "https://a.b.example.com"}, "deny"),
        ("deny", "mcp__*", "mcp__github__push", {}, "deny"),
        ("deny", "mcp__github", "mcp__github__push", {}, "deny"),
        ("allow", "mcp__github__get_*", "mcp__github__get_issue", {}, "auto"),
        ("ask", "*", "Read", {"file_path": "a"}, "approve"),
        ("deny", "Agent(Explore)", "Agent", {"subagent_type": "Explore"}, "deny"),
        ("deny", "Task(Explore)", "Agent", {"subagent_type": "Explore"}, "deny"),
        ("deny", "Agent(model:opus)", "Agent", {"subagent_type": "x", "model": "opus"}, "deny"),
        (
            "ask",
            "Bash(run_in_background:true)",
            "Bash",
            {"command": "x", "run_in_background": True},
            "approve",
        ),
        ("allow", "Skill(deploy)", "Skill", {"skill": "deploy"}, "auto"),
        ("allow", "Skill(deploy *)", "Skill", {"skill": "deploy", "args": "prod"}, "auto"),
        ("allow", "Skill(deploy *)", "Skill", {"skill": "deploy"}, "auto"),
        ("deny", "Skill(deploy:*)", "Skill", {"skill": "deploy", "args": "prod"}, "deny"),
    ],
)
def test_every_other_form_of_rule(
    house: House, kind: str, rule: str, tool: str, call: dict[str, object], decision: str
) -> None:
    settings = load(house, kind, rule)

    assert settings.problems == ()
    assert judge(house, settings, tool, **call) == decision
