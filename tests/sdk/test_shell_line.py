from __future__ import annotations

from pathlib import Path

import pytest

from robota import InteractiveSession, tool
from robota.sdk.shell_line import run_shell_line
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio

HOOKS = ("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure")


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


async def test_a_session_with_commands_of_the_user_and_hooks_replays(tmp_path: Path) -> None:
    store = SessionStore(str(tmp_path / "sessions"))
    hooks = {event: [{"hooks": [{"type": "command", "command": "true"}]}] for event in HOOKS}
    meanwhile: list[str] = []

    @tool
    async def look() -> str:
        """Look around."""
        result = await run_shell_line(session, "echo meanwhile")
        meanwhile.append(result.content)
        return "seen"

    provider = ScriptedProvider([call("look")], "Fine.", "Good.")
    session = InteractiveSession(
        provider=provider, cwd=tmp_path, session_store=store, tools=[look],
        settings={"hooks": hooks, "sandbox": "off", "permissions": {"allow": ["look"]}},
    )  # fmt: skip
    async with session:
        await run_shell_line(session, "echo first")
        await session.submit("Look")
        await run_shell_line(session, "exit 3")
        await session.submit("And?")

    assert meanwhile == ["meanwhile"]
    report = await replay_session(str(tmp_path / "sessions" / f"{session.session_id}.jsonl"))
    assert report.divergence is None
    assert len(report.messages) == len(session.session.messages)
