"""What robota says about calls beside a session: why they run, and what today's rules make of past ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.command import model_requests, robota

from robota import InteractiveSession
from robota.core.permissions.modes import KNOWN_TOOLS
from robota.core.tool import tool_class
from robota.sdk.past_sessions import LOOKING
from robota.testing import ModelServer, ScriptedProvider, call


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".robota").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROBOTA_HOME", str(home / ".robota"))
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def newest(project: Path) -> str:
    return robota("sessions", "list", cwd=project).stdout.split()[0]


def test_a_replay_by_rules_that_ask_today_says_that_they_ask(project: Path) -> None:
    with ModelServer([call("Bash", command="echo hi")], "Done.").in_thread() as server:
        robota("-p", "go", "--allow", "Bash(echo *)", cwd=project, server=server)
    done = robota("replay", newest(project), "--against", "rules", cwd=project)

    said = "Step 3: permission_decided.decision was 'allow', now it is 'ask'.\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_session_without_a_tool_that_a_rule_denies_is_replayed(project: Path) -> None:
    calls = [call("Bash", command="ls"), call("Read", file_path="a.txt")]
    with ModelServer(calls, "No.", "Still no.").in_thread() as server:
        refused = robota("-p", "go", "--deny", "Bash", "--deny", "Read", cwd=project, server=server)
        robota("-p", "and now?", "-c", cwd=project, server=server)
        sent = [request.conversation.tools for request in server.requests if request.method == "POST"]
    same = robota("replay", newest(project), cwd=project)
    other = robota("replay", newest(project), "--against", "rules", cwd=project)

    assert refused.returncode == 3
    assert ["Bash" in tools for tools in sent] == [False, False, True]
    assert (same.returncode, same.stderr) == (0, "8 messages, as they were recorded.\n")
    assert other.stderr == "Step 3: permission_decided.decision was 'deny', now it is 'ask'.\n"


def test_why_tells_of_the_workspace_too(project: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    file = f"Read({away}/a.txt)"
    asks = robota("permissions", "why", file, cwd=project)
    free = robota("permissions", "why", file, "--permission-mode", "bypassPermissions", cwd=project)
    more = json.dumps({"permissions": {"additionalDirectories": [str(away)]}})
    wider = robota("permissions", "why", file, "--settings", more, cwd=project)

    said = f"asks\npart: {away}\n{away} is outside the working directory.\n"
    assert (asks.returncode, asks.stdout) == (3, said)
    assert (free.returncode, wider.returncode) == (0, 0)


def test_what_the_workspace_asked_about_is_no_change_of_rules(project: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    calls = [call("Read", file_path=f"{away}/a.txt"), call("TodoWrite", todos=[])]
    with ModelServer(calls, "Done.").in_thread() as server:
        done = robota("-p", "go", cwd=project, server=server)
        assert model_requests(server)
    again = robota("permissions", "replay", cwd=project)

    assert (done.returncode, again.stdout) == (3, "")
    assert "0 of 2 calls in 1 sessions" in again.stderr


def test_what_was_not_allowed_comes_with_the_option_that_lets_it(project: Path, tmp_path: Path) -> None:
    away = tmp_path / "a way"
    away.mkdir()
    (away / "a.txt").write_text("apples\n")
    calls = [call("Read", file_path=f"{away}/a.txt")], "Done."
    with ModelServer(*calls, *calls).in_thread() as server:
        refused = robota("-p", "go", cwd=project, server=server)
        allowed = robota("-p", "go", "--add-dir", str(away), cwd=project, server=server)

    assert refused.returncode == 3
    assert f"Not allowed: Read. To allow it: --add-dir '{away}'\n" in refused.stderr
    assert (allowed.returncode, "Not allowed" in allowed.stderr) == (0, False)


@pytest.mark.anyio
async def test_the_tools_that_only_look_are_known_without_a_session(project: Path) -> None:
    async with InteractiveSession(provider=ScriptedProvider("Hi."), model="m", cwd=project) as session:
        await session.submit("hi")
        tools = session.session.agent.tools
    found = {tool.name for tool in tools if tool_class(tool) == "inspect" and tool.name not in KNOWN_TOOLS}

    assert found | {"ToolSearch"} == LOOKING
