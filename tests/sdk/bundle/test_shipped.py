"""The plugins that come with robota, at work."""

from __future__ import annotations

from pathlib import Path

import pytest

from robota.core.messages import ToolMessage
from robota.sdk.bundle.desk import BundleDesk
from robota.sdk.interactive import InteractiveSession
from robota.sdk.places import Places
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


async def test_the_guard_refuses_keys_and_the_outline_lists_definitions(places: Places) -> None:
    desk = BundleDesk(places)
    for name in ("secrets-guard", "outline", "review"):
        desk.prepare_install(name).agree()
    Path(places.project("code.py")).write_text('class A:\n    def b(self) -> int:\n        """Bees."""\n')
    calls = [
        call("Write", file_path="a.txt", content="AKIA" + "A" * 16),
        call("Write", file_path=".env", content="x"),
        call("Write", file_path="b.txt", content="harmless"),
        call("plugin__outline__python", file_path="code.py"),
    ]
    provider = ScriptedProvider(calls, "Done.")
    async with InteractiveSession(
        cwd=places.cwd, provider=provider, permission_mode="bypassPermissions"
    ) as session:
        await session.submit("Go.")
        results = [each.content for each in session.session.messages if isinstance(each, ToolMessage)]

        assert "an AWS key" in results[0]
        assert "holds secrets" in results[1]
        assert "def b(self) -> int  # Bees." in results[3]
        assert "review:reviewer" in session.kit.subagents.agents
        assert session.commands.find("review:branch") is not None
    assert not Path(places.project("a.txt")).exists()
    assert Path(places.project("b.txt")).read_text() == "harmless"
