"""`robota plugin` as a process, and a session that uses what it installed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.sdk.bundle.workbench import marketplace, whole_plugin, write_files
from tests.support.fork_server import run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = marketplace(tmp_path / "market", "market", {"helper": {"category": "development"}})
    write_files(root / "plugins" / "helper", whole_plugin())
    project = tmp_path / "project"
    write_files(project, {"notes.txt": "milk\n", ".claude/commands/own.md": "Do it."})
    return tmp_path


def robota(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    home = {
        "HOME": str(place),
        "ROBOTA_HOME": str(place / ".robota"),
        "CLAUDE_CONFIG_DIR": str(place / ".claude"),
    }
    return run(arguments, cwd=place / "project", env={**os.environ, **home, "COLUMNS": "200"})


def test_a_plugin_is_found_shown_installed_used_turned_off_and_removed(place: Path) -> None:
    assert "offers 1 plugins" in robota(place, "plugin", "marketplace", "add", str(place / "market")).stdout
    assert robota(place, "plugin", "search", "helper").stdout.startswith("helper@market")

    refused = robota(place, "plugin", "install", "helper@market")
    assert refused.returncode == 1
    assert 'PreToolUse (Read): bash "${CLAUDE_PLUGIN_ROOT}/note.sh"' in refused.stdout
    assert "--yes agrees to the above" in refused.stderr
    assert robota(place, "plugin", "list").stdout == ""

    assert robota(place, "plugin", "install", "helper", "--yes").returncode == 0
    assert "enabled" in robota(place, "plugin", "list").stdout
    told = robota(place, "-p", "/helper:audit", "--output-format", "stream-json", "--verbose")
    frame = json.loads(told.stdout.splitlines()[0])
    assert [each["name"] for each in frame["plugins"]] == ["helper"]
    assert "helper:tidy" in frame["slash_commands"]
    assert "plugin__helper__count" in frame["tools"]
    assert "helper:scout" in frame["agents"]

    assert robota(place, "plugin", "disable", "helper").stdout == "helper@market is disabled.\n"
    assert "disabled" in robota(place, "plugin", "list").stdout
    assert "Hooks that run by themselves" in robota(place, "plugin", "show", "helper").stdout
    removed = robota(place, "plugin", "marketplace", "remove", "market")
    assert "helper@market is uninstalled." in removed.stdout
    assert "robota" in robota(place, "plugin", "marketplace", "list").stdout


def test_a_mistake_is_one_sentence(place: Path) -> None:
    for arguments, said in (
        (("install", "nothing"), "No marketplace has a plugin 'nothing'"),
        (("disable", "nothing"), "There is no plugin 'nothing' installed"),
        (("marketplace", "add", "no/where/at/all"), "is no source of plugins"),
        (("marketplace", "remove", "nothing"), "There is no marketplace 'nothing'"),
    ):
        done = robota(place, "plugin", *arguments)
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_validate_names_what_is_wrong(place: Path) -> None:
    assert "offers 1 plugins" in robota(place, "plugin", "validate", str(place / "market")).stdout
    write_files(place / "bad", {".claude-plugin/plugin.json": {"name": "bad", "tools": [{}]}})

    done = robota(place, "plugin", "validate", str(place / "bad"))

    assert done.returncode == 1
    assert "missing required field `name`" in done.stdout


def test_the_plugins_that_come_with_robota_are_in_order(place: Path) -> None:
    from robota.sdk.bundle.client import MarketplaceClient

    shipped = MarketplaceClient(place / "none").list()[0].location
    done = robota(place, "plugin", "validate", shipped)

    assert done.returncode == 0
    assert "offers 3 plugins" in done.stdout
