"""An agent that a program starts, sends prompts to and stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from robota import create_project_session_store
from robota.core import RunCompleted
from robota.core.errors import ConfigurationError
from robota.core.transport import TransportAdapter
from robota.testing import ScriptedProvider
from robota.transports import ProgrammaticAgent, create_programmatic_agent

pytestmark = pytest.mark.anyio


async def test_it_is_started_sent_prompts_and_stopped(tmp_path: Path) -> None:
    store = create_project_session_store(str(tmp_path / "store"))
    provider = ScriptedProvider("One.", "Two.", "Three.")
    agent = create_programmatic_agent(provider=provider, cwd=tmp_path, session_store=store)
    await agent.start()
    first = await agent.send("a")
    second = await agent.send("b")
    last = [event async for event in agent.stream("c")][-1]
    await agent.stop()

    assert (first.text, second.text) == ("One.", "Two.")
    assert isinstance(last, RunCompleted)
    assert last.text == "Three."
    assert [each.id for each in store.list()] == [agent.session.session_id]


async def test_it_is_a_transport_that_says_what_it_lacks(tmp_path: Path) -> None:
    agent = ProgrammaticAgent()
    assert isinstance(agent, TransportAdapter)
    with pytest.raises(ConfigurationError, match="no session"):
        await agent.send("hi")
    async with create_programmatic_agent(provider=ScriptedProvider("Hi."), cwd=tmp_path) as made:
        assert (await made.send("hi")).text == "Hi."
