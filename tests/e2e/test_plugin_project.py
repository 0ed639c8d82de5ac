"""A whole `.claude` project with an installed plugin, as `robota -p` in a process of its own."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.bundle.workbench import marketplace, skill, whole_plugin, write_files
from tests.support import mcp_server
from tests.support.command import model_requests, robota

from robota.sdk.bundle.lock import Approval, BundleLock, hash_bundle
from robota.testing import ModelServer, call


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROBOTA_HOME", str(home / ".robota"))
    plugins = home / ".robota" / "plugins"
    root = write_files(plugins / "helper", whole_plugin())
    BundleLock(plugins).approve("helper", Approval(hash=hash_bundle(str(root), {})))
    hook = {"hooks": [{"type": "command", "command": "touch from_settings"}]}
    return write_files(
        tmp_path / "project",
        {
            "notes.txt": "milk\n",
            "CLAUDE.md": "Be brief.",
            ".claude/settings.json": {"hooks": {"PreToolUse": [{"matcher": "Read", **hook}]}},
            ".claude/commands/own.md": "---\ndescription: Own.\n---\nDo it.",
            ".claude/agents/writer.md": "---\nname: writer\ndescription: Writes.\n---\nWrite.",
        },
    )


def test_skill_tool_hooks_and_agents_of_a_plugin_work_beside_those_of_the_project(project: Path) -> None:
    calls = [call("Read", file_path="notes.txt"), call("plugin__helper__count", text="one")]
    agent = [call("Agent", prompt="Look.", description="look", subagent_type="helper:scout")]
    with ModelServer(calls, agent, "Scouted.", "Done.").in_thread() as server:
        mode = ("--trust", "--permission-mode", "bypassPermissions", "--output-format", "json")
        done = robota("-p", "/helper:tidy the desk", *mode, cwd=project, server=server)
        told = json.dumps([request.body for request in model_requests(server)])

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"] == "Done."
    assert (project / "from_settings").exists()
    data = Path(project.parent, "home", ".robota", "plugins", "data", "helper")
    assert (data / "noted").exists()
    assert json.loads((data / "asked.json").read_text()) == {"text": "one"}
    assert "Tidy the desk." in told
    assert "three of" in told
    assert "Count words with the tool of the plugin." in told
    assert "Scout with" in told


def served_plugin(log: Path) -> dict[str, Any]:
    """With a server of its own, a hook, a command and a skill."""
    server = {"command": sys.executable, "args": ["-S", "${CLAUDE_PLUGIN_ROOT}/server.py", logged(log)]}
    note = {"type": "command", "command": 'echo "$CLAUDE_PLUGIN_PATH" >> "$CLAUDE_PLUGIN_DATA/noted"'}
    return {
        ".claude-plugin/plugin.json": {"name": "desk", "version": "1.0.0", "description": "Keeps order."},
        ".mcp.json": {"words": server},
        "server.py": Path(mcp_server.PROGRAM).read_text(),
        "hooks/hooks.json": {"hooks": {"PreToolUse": [{"matcher": "mcp__.*", "hooks": [note]}]}},
        "commands/tidy.md": "---\ndescription: Tidy up.\n---\nTidy $ARGUMENTS.\n",
        "skills/sort/SKILL.md": skill("sort", body="Sort by colour."),
    }


def logged(log: Path) -> str:
    return json.dumps({"log": str(log)})


def test_a_project_with_servers_and_an_installed_plugin_runs_and_replays_without_the_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, log = tmp_path / "home", tmp_path / "log"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROBOTA_HOME", str(home / ".robota"))
    market = marketplace(tmp_path / "market", "market", {"desk": {}})
    write_files(market / "plugins" / "desk", served_plugin(log))
    note = {"type": "command", "command": "echo heard >> heard.txt"}
    project = write_files(
        tmp_path / "project",
        {
            "CLAUDE.md": "Answer in one word.",
            ".mcp.json": {
                "mcpServers": {
                    "stub": {"command": sys.executable, "args": ["-S", mcp_server.PROGRAM, logged(log)]}
                }
            },
            ".claude/settings.json": {
                "permissions": {"allow": ["mcp__stub__add", "mcp__plugin_desk_words"]},
                "hooks": {"PreToolUse": [{"matcher": "mcp__stub.*", "hooks": [note]}]},
            },
            ".claude/skills/count/SKILL.md": skill("count"),
        },
    )
    for words in (("marketplace", "add", str(market)), ("install", "desk@market", "--yes")):
        done = robota("plugin", *words, cwd=project)
        assert done.returncode == 0, done.stderr

    calls = [
        call("mcp__stub__add", a=2, b=3),
        call("mcp__stub__echo", text="not allowed"),
        call("mcp__plugin_desk_words__echo", text="hello"),
        call("Skill", skill="desk:sort"),
    ]
    find = [call("ToolSearch", query="select:add,echo")]
    with ModelServer(find, calls, "Done.").in_thread() as server:
        options = ("--trust", "--output-format", "json")
        done = robota("-p", "/desk:tidy the drawer", *options, cwd=project, server=server)
        told = json.dumps([request.body for request in model_requests(server)][-1])
    assert done.returncode == 3, done.stderr  # one call was denied
    answer = json.loads(done.stdout)
    assert answer["result"] == "Done."
    assert [each["tool_name"] for each in answer["permission_denials"]] == ["mcp__stub__echo"]
    for words in ("Tidy the drawer.", "Sort by colour.", "Answer in one word.", "echo: hello"):
        assert words in told
    assert (project / "heard.txt").read_text() == "heard\n" * 2
    assert (home / ".robota" / "plugins" / "data" / "desk-market" / "noted").read_text().count("desk") == 3

    before = log.read_text()
    assert before.count("tools/call") == 2
    (project / ".mcp.json").unlink()
    shutil.rmtree(home / ".robota" / "plugins")
    replayed = robota("replay", answer["session_id"], cwd=project)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert log.read_text() == before
