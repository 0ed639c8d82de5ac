"""A whole `.claude` project with an installed plugin, as `robota -p` in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sdk.bundle.workbench import whole_plugin, write_files
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
