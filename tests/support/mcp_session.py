"""Sessions with MCP servers, for tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from robota.core.events import Noticed, ToolEnded
from robota.core.provider import ChatRequest
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider


def write_servers(project: Path, **servers: Any) -> None:
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


@asynccontextmanager
async def opened(
    project: Path, provider: ScriptedProvider, **options: Any
) -> AsyncIterator[InteractiveSession]:
    """A session in a trusted project whose servers have connected, or have failed to."""
    wanted: dict[str, Any] = {"trust_project": True, "permission_mode": "bypassPermissions", **options}
    async with InteractiveSession(provider=provider, cwd=project, **wanted) as session:
        await session.ready()
        await session.kit.servers.settle(60)
        yield session


def ends(session: InteractiveSession) -> list[ToolEnded]:
    """How calls end, as they do."""
    heard: list[ToolEnded] = []
    session.events.on(ToolEnded, heard.append)
    return heard


def notices(session: InteractiveSession) -> list[str]:
    heard: list[str] = []
    session.events.on(Noticed, lambda event: heard.append(event.message))
    return heard


def offered(request: ChatRequest) -> list[str]:
    """The names of the tools of a request."""
    return [tool.name for tool in request.tools]
