"""`robota mcp …` and `--mcp-config`, as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from tests.support.command import environment, model_requests, robota
from tests.support.mcp_server import PROGRAM, definition
from tests.support.oauth_server import login_server

from robota.testing import ModelServer, call


def test_servers_are_added_listed_shown_and_removed(project: Path, tmp_path: Path) -> None:
    nothing = robota("mcp", "list", cwd=project)
    assert (nothing.returncode, nothing.stdout) == (1, "")
    added = robota(
        "mcp", "add", "-s", "user", "-e", "A=b", "stub", "--", sys.executable, "-S", PROGRAM, cwd=project
    )
    assert added.returncode == 0, added.stderr
    settings = json.loads((tmp_path / "home" / ".robota" / "settings.json").read_text())
    assert settings["mcpServers"]["stub"]["args"] == ["-S", PROGRAM]
    assert settings["mcpServers"]["stub"]["env"] == {"A": "b"}
    listed = robota("mcp", "list", cwd=project)
    assert listed.stdout.startswith("stub  user  stdio")
    shown = robota("mcp", "get", "stub", cwd=project)
    assert shown.returncode == 0
    assert "stub: connected" in shown.stdout
    assert "mcp__stub__add" in shown.stdout
    removed = robota("mcp", "remove", "stub", cwd=project)
    assert "no longer in ~/.robota/settings.json" in removed.stdout
    assert robota("mcp", "remove", "stub", cwd=project).returncode == 1


def test_a_projects_server_is_written_to_its_file_and_counts_once_it_is_trusted(project: Path) -> None:
    added = robota("mcp", "add", "-s", "project", "-t", "http", "far", "https://far.example/mcp", cwd=project)
    assert json.loads((project / ".mcp.json").read_text()) == {
        "mcpServers": {"far": {"type": "http", "url": "https://far.example/mcp"}}
    }
    assert "once this directory is trusted" in added.stderr
    assert robota("mcp", "list", cwd=project).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "-t", "http", "x", "ftp://x"), "must begin with http:// or https://"),
        (("add", "-t", "sse", "x", "https://x", "y"), "one address, not 2"),
        (("add", "a/b", "cat"), "Its name must be one word"),
        (("add", "-e", "novalue", "x", "cat"), "'novalue' has no name and value"),
        (("get", "nobody"), "There is no MCP server 'nobody' here"),
        (("login", "nobody"), "There is no MCP server 'nobody' here"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(project: Path, arguments: tuple[str, ...], words: str) -> None:
    result = robota("mcp", *arguments, cwd=project)
    assert result.returncode != 0
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_print_mode_uses_the_servers_of_the_command_line(project: Path) -> None:
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"mine": definition(name="mine")}}))
    config = json.dumps({"mcpServers": {"stub": definition()}})
    found = [call("ToolSearch", query="add")]
    with ModelServer(found, [call("mcp__stub__add", a=2, b=2)], "Four.").in_thread() as server:
        result = robota(
            "-p", "add", "--mcp-config", config, "--allow", "mcp__stub", cwd=project, server=server
        )
        requests = [each.body for each in model_requests(server)]
    assert result.stdout.strip() == "Four.", result.stderr
    assert "4" in str(requests[-1]["messages"][-1])
    assert "mine" not in str(requests[0]["tools"])


@pytest.mark.slow
def test_a_login_opens_a_browser_and_keeps_the_tokens(project: Path, tmp_path: Path) -> None:
    visit = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"
    browser = tmp_path / "browser"
    browser.write_text(f"#!{sys.executable}\n{visit}\n")
    browser.chmod(0o755)

    async def log_in() -> tuple[str, str]:
        async with login_server() as server:
            robota("mcp", "add", "-s", "user", "-t", "http", "guarded", f"{server.url}/mcp", cwd=project)
            argv = [sys.executable, "-m", "robota", "mcp", "login", "guarded"]
            result = await anyio.run_process(
                argv,
                cwd=project,
                env=environment(BROWSER=str(browser)),
                check=False,
                stderr=subprocess.STDOUT,
            )
            shown = await anyio.run_process(
                [*argv[:4], "get", "guarded"], cwd=project, env=environment(), check=False
            )
            return result.stdout.decode(), shown.stdout.decode()

    said, shown = anyio.run(log_in)
    assert "You are logged in at guarded, which has 1 tools." in said
    assert "guarded: connected" in shown
