"""A project's `.claude/` directory, untouched: it behaves as the documentation of its own program says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from robota import InteractiveSession
from robota.core.messages import ToolMessage
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio

FILES = {
    "CLAUDE.md": "# Shop\n\nRead @docs/style.md before you write.\n",
    "docs/style.md": "Use tabs.",
    "src/app.py": "print('hello')\n",
    "src/secret.key": "k-123\n",
    ".claude/settings.json": json.dumps(
        {
            "$schema": "https://json.schemastore.org/claude-code-settings.json",
            "permissions": {
                "allow": ["Bash(echo:*)", "Edit(/src/**)", "WebFetch(domain:example.com)", "mcp__github__*"],
                "ask": ["Bash(git push:*)"],
                "deny": ["Read(./src/secret.key)", "Bash(curl:*)", "NotebookEdit"],
            },
            "env": {"SHOP_ENV": "test"},
            "hooks": {
                "PreToolUse": [
                    {
                        "matcher": "Bash",
                        "hooks": [
                            {"type": "command", "command": "sh $CLAUDE_PROJECT_DIR/.claude/hooks/block.sh"}
                        ],
                    },
                    {
                        "matcher": "Write|Edit|MultiEdit",
                        "hooks": [
                            {
                                "type": "command",
                                "command": '"$PYTHON" "$CLAUDE_PROJECT_DIR/.claude/hooks/rewrite.py"',
                            }
                        ],
                    },
                ],
                "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo The branch is main."}]}],
                "PreCommit": [{"hooks": [{"type": "command", "command": "true"}]}],
            },
            "statusLine": {"type": "command", "command": "touch status-ran"},
            "outputStyle": "Explanatory",
        }
    ),
    ".claude/hooks/block.sh": (
        'input=$(cat)\ncase "$input" in *"rm -rf"*) echo "not in this project" >&2; exit 2;; esac\nexit 0\n'
    ),
    ".claude/hooks/rewrite.py": (
        "import json, sys\n"
        "event = json.load(sys.stdin)\n"
        "given = event['tool_input']\n"
        "if 'content' in given:\n"
        "    given = {**given, 'content': given['content'].replace('    ', '\\t')}\n"
        "    print(json.dumps({'hookSpecificOutput': {'hookEventName': 'PreToolUse',\n"
        "        'permissionDecision': 'allow', 'updatedInput': given}}))\n"
    ),
    ".claude/skills/deploy/SKILL.md": (
        "---\nname: deploy\ndescription: Deploys the shop. Use when asked to ship.\n"
        "argument-hint: '[target]'\nallowed-tools: Bash(echo:*)\n---\n"
        "Deploy to $ARGUMENTS.\nThe version is: !`echo 1.2.3`\n"
    ),
    ".claude/commands/fix.md": "---\ndescription: Fixes an issue.\n---\nFix issue $0 with care.\n",
    ".claude/agents/reviewer.md": (
        "---\nname: reviewer\ndescription: Reviews code. Use after changes.\n"
        "tools: Read, Grep\nmodel: haiku\n---\nYou review code.\n"
    ),
    ".claude/rules/style.md": "Never use semicolons.",
    ".claude/rules/python.md": "---\npaths:\n  - 'src/**/*.py'\n---\nPython files need type hints.",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROBOTA_HOME", str(home / ".robota"))
    monkeypatch.setenv("PYTHON", sys.executable)
    root = tmp_path / "shop"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def results(session: InteractiveSession) -> list[str]:
    return [message.content for message in session.session.messages if isinstance(message, ToolMessage)]


def last_prompt(provider: ScriptedProvider) -> str:
    return next(
        message.content for message in reversed(provider.requests[-1].messages) if message.role == "user"
    )


async def test_rules_and_hooks_act_on_tools(project: Path) -> None:
    provider = ScriptedProvider(
        [call("Bash", command="echo $SHOP_ENV")],
        [call("Bash", command="echo rm -rf /tmp/x")],
        [call("Read", file_path="src/secret.key")],
        [call("Bash", command="curl https://example.com")],
        [call("Write", file_path="src/new.py", content="def f():\n    return 1\n")],
        "done",
    )
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        await session.submit("work")

        echo, removed, secret, curl, written = results(session)
        assert "test" in echo
        assert "not in this project" in removed
        assert "k-123" not in secret
        assert "denied" in secret.lower()
        assert "denied" in curl.lower()
        assert "Error" not in written, written
        assert (project / "src/new.py").read_text() == "def f():\n\treturn 1\n"
        assert "The branch is main." in provider.requests[0].messages[-1].content
        assert session.messages[0].content == "work"
        assert any("PreCommit" in str(problem) for problem in session.problems) or any(
            "PreCommit" in entry for entry in map(str, session.full_history)
        )
    assert not (project / "status-ran").exists()


async def test_instructions_rules_skills_and_agents_are_known(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="src/app.py")], "seen", "deployed", "fixed")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        await session.submit("look at the code")
        system = provider.requests[0].messages[0].content

        assert "Use tabs." in system
        assert "Never use semicolons." in system
        assert "Python files need type hints." not in system
        assert "deploy" in system
        assert "Deploys the shop" in system
        asked = "\n".join(message.content for message in provider.requests[1].messages)
        assert "Python files need type hints." in asked
        agent = next(tool for tool in session.session.agent.tools if tool.name == "Agent")
        assert "reviewer" in f"{agent.description}{system}"

        await session.submit("/deploy staging")
        assert "Deploy to staging." in last_prompt(provider)
        assert "The version is: 1.2.3" in last_prompt(provider)
        await session.submit("/fix 42")
        assert "Fix issue 42 with care." in last_prompt(provider)
        shown = [message.content for message in session.messages if message.role == "user"]
        assert shown == ["look at the code", "/deploy staging", "/fix 42"]


async def test_an_agent_of_the_project_works_with_its_own_tools(project: Path) -> None:
    provider = ScriptedProvider(
        [call("Agent", prompt="Review app.py", description="review", subagent_type="reviewer")],
        [call("Read", file_path="src/app.py")],
        "The code is fine.",
        "It is fine.",
    )
    async with InteractiveSession(
        cwd=project, provider=provider, trust_project=True, permission_mode="bypassPermissions"
    ) as session:
        result = await session.submit("have it reviewed")

        assert result.text == "It is fine."
        [answer] = results(session)
        assert "The code is fine." in answer
        offered = {tool.name for tool in provider.requests[1].tools}
        assert offered == {"Read", "Grep"}


async def test_before_trust_nothing_of_it_acts_but_its_denials(project: Path) -> None:
    provider = ScriptedProvider(
        [call("Bash", command="echo hi")],
        [call("Read", file_path="src/secret.key")],
        "done",
    )
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("work")

        echo, secret = results(session)
        assert "denied" in echo.lower()
        assert "k-123" not in secret
        assert "The branch is main." not in provider.requests[0].messages[-1].content
        told: list[Any] = [str(problem) for problem in session.problems]
        assert any("trust" in text for text in told)
