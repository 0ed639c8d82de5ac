from __future__ import annotations

from pathlib import Path

import pytest

from robota import InteractiveSession
from robota.sdk.shell_line import run_shell_line
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio


async def test_a_command_of_the_user_runs_unasked_and_the_model_hears_of_it(tmp_path: Path) -> None:
    provider = ScriptedProvider("I see.")
    async with InteractiveSession(provider=provider, cwd=tmp_path, settings={"sandbox": "off"}) as session:
        heard: list[str] = []
        result = await run_shell_line(session, "echo there > one; cat one", heard.append)
        await session.submit("What did it print?")

    assert result.ok
    assert result.content.strip() == "there"
    assert (tmp_path / "one").exists()
    sent = [str(message.content) for message in provider.requests[0].messages if message.role == "user"]
    assert any("echo there > one" in words and "\nthere" in words for words in sent)


async def test_a_deny_rule_binds_the_user_too(tmp_path: Path) -> None:
    rules = {"permissions": {"deny": ["Bash(touch *)"]}, "sandbox": "off"}
    provider = ScriptedProvider("I see.")
    async with InteractiveSession(provider=provider, cwd=tmp_path, settings=rules) as session:
        result = await run_shell_line(session, "touch one")

    assert not result.ok
    assert not (tmp_path / "one").exists()
