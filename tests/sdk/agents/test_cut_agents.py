"""Subagents that were at work when their process was killed."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.sdk.agents.cut_process import make_session
from tests.sdk.agents.workshop import Workshop, start

from robota.core.events import Noticed
from robota.core.messages import ToolMessage, UserMessage
from robota.sdk.agents.past import find_cut_agents
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio


async def kill_in_mid_task(home: Path) -> str:
    """The id of a session that was killed after its subagent had written a file."""
    (home / "project").mkdir()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.sdk.agents.cut_process", str(home)),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "HOME": str(home)},
    )
    assert process.stdout is not None
    line = await process.stdout.readline()
    process.kill()
    await process.wait()
    return line.decode().strip()


async def test_after_a_kill_a_resumed_session_tells_what_became_of_its_subagent(tmp_path: Path) -> None:
    session_id = await kill_in_mid_task(tmp_path)
    [agent] = find_cut_agents(SessionStore(tmp_path / "sessions"), session_id)
    assert (agent.agent_type, agent.finished) == ("general-purpose", False)
    assert agent.words in ("Writing now.", "Half")  # what was being said may not be on the disk yet

    provider = ScriptedProvider("I see.", "Again.")
    session = make_session(tmp_path, provider, resume_session_id=session_id)
    notices: list[str] = []
    session.events.on(Noticed, lambda event: notices.append(event.message))
    async with session:
        await session.submit("What happened?")
        messages = session.session.messages
        await session.submit("And now?")
    assert [notice for notice in notices if "cut in the middle of its task" in notice] == [
        f"{agent.summary} Its transcript is {agent.path}."
    ]
    [call] = [message for message in messages if isinstance(message, ToolMessage)]
    assert call.content.startswith("Error: interrupted; effects unknown.")
    told = [
        message.content
        for message in provider.requests[0].messages
        if isinstance(message, UserMessage) and message.metadata.get("origin") == "task"
    ]
    assert len(told) == 1
    assert agent.agent_id in told[0]
    assert told[0].endswith(f"Its last words:\n{agent.words}")
    assert (tmp_path / "project" / "made.txt").read_text() == "x"

    again = make_session(tmp_path, ScriptedProvider("Yes."), resume_session_id=session_id)
    later: list[str] = []
    again.events.on(Noticed, lambda event: later.append(event.message))
    async with again:
        await again.submit("Still there?")
    assert not [notice for notice in later if "cut in the middle" in notice]


async def test_a_subagent_that_ended_in_good_order_is_not_told_of(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [start()], "report", "done", rules=PermissionRules(mode="bypassPermissions"))
    await shop.session.submit("hi")
    store = shop.session.store
    assert isinstance(store, SessionStore)
    assert find_cut_agents(store, "s-1") == ()
    assert find_cut_agents(store, "never") == ()

    path = next(shop.kept.glob("s-1/subagents/*.jsonl"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"session_shutdown"' not in line))
    [agent] = find_cut_agents(store, "s-1")
    assert (agent.finished, agent.words) == (True, "report")
    assert "had completed its task" in agent.summary
