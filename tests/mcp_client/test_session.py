"""MCP servers through the front door: found in files, connected beside the session, called by the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_server import definition

from robota.core.events import ToolEnded
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "home" / ".robota"))
    monkeypatch.delenv("ENABLE_TOOL_SEARCH", raising=False)
    path = tmp_path / "project"
    path.mkdir()
    return path


def write_servers(project: Path, **servers: Any) -> None:
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


async def connected(session: InteractiveSession) -> InteractiveSession:
    await session.ready()
    await session.kit.servers.settle(60)
    return session


def ends(session: InteractiveSession) -> list[ToolEnded]:
    heard: list[ToolEnded] = []
    session.events.on(ToolEnded, heard.append)
    return heard


async def test_a_model_calls_a_tool_of_a_server_in_the_projects_file(project: Path) -> None:
    write_servers(project, stub=definition())
    provider = ScriptedProvider([call("mcp__stub__add", a=2, b=3)], "Five.")
    async with InteractiveSession(
        provider=provider, cwd=project, trust_project=True, permission_mode="bypassPermissions"
    ) as session:
        await connected(session)
        heard = ends(session)
        result = await session.submit("Add two and three.")
        assert result.text == "Five."
        assert [(each.error, each.content) for each in heard] == [(None, "5")]
        assert "mcp__stub__add" in [tool.name for tool in provider.requests[0].tools]
