from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.plugins.office import ADDING, add, open_session

from robota.core.errors import ConfigurationError, PluginError
from robota.core.robota import Robota
from robota.plugins import ConversationHistoryPlugin
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


async def test_a_conversation_is_kept_by_the_id_of_its_session(tmp_path: Path) -> None:
    history = ConversationHistoryPlugin()
    async with open_session(tmp_path, ADDING, "Three.", plugins=[history]) as session:
        await session.submit("Add.")
        assert await history.conversations() == [session.session_id]
        assert await history.load(session.session_id) == session.session.messages
        assert await history.load("another") == []
        assert history.get_stats()["conversations"] == 1
        assert await history.delete(session.session_id) is True
        assert await history.delete(session.session_id) is False


@pytest.mark.parametrize("strategy", ["file", "sqlite", pytest.param("postgres", marks=pytest.mark.system)])
async def test_an_agent_goes_on_with_what_another_process_kept(
    request: pytest.FixtureRequest, tmp_path: Path, strategy: str
) -> None:
    where: Any = {"path": tmp_path / "kept"}
    if strategy == "postgres":
        where = {"url": request.getfixturevalue("postgres")}
    history = ConversationHistoryPlugin(strategy=strategy, **where)
    async with Robota(ScriptedProvider(ADDING, "Three."), tools=[add], plugins=[history]) as agent:
        await agent.run("Add.")
        name = agent.conversation_id
    later = ConversationHistoryPlugin(strategy=strategy, **where)
    assert await later.conversations() == [name]
    messages = await later.load(name)
    assert messages == agent.messages
    async with Robota(ScriptedProvider("As before."), messages=messages) as other:
        assert (await other.run("Again?")).text == "As before."
    assert await later.delete(name) is True
    assert await later.conversations() == []


async def test_a_subagent_has_a_conversation_of_its_own(tmp_path: Path) -> None:
    history = ConversationHistoryPlugin()
    replies = [[call("Agent", prompt="look", description="look")], "I saw it.", "Done."]
    async with open_session(tmp_path, *replies, plugins=[history]) as session:
        await session.submit("go")
    names = await history.conversations()
    assert len(names) == 2
    own = next(name for name in names if "/" in name)
    assert own.startswith(f"{session.session_id}/general-purpose-")
    assert [message.role for message in await history.load(own)] == ["system", "user", "assistant"]


async def test_only_the_latest_messages_and_conversations_are_kept() -> None:
    history = ConversationHistoryPlugin(max_conversations=2, max_messages=3)
    agent = Robota(ScriptedProvider(*["Hi."] * 8), plugins=[history])
    async with agent:
        for _ in range(3):
            await agent.run("a")
            await agent.run("b")
            agent.clear()
    assert [len(each["messages"]) for each in history.get_data()] == [3, 3]


async def test_without_auto_save_nothing_is_written_before_save(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    history = ConversationHistoryPlugin(strategy="file", path=path, auto_save=False)
    async with Robota(ScriptedProvider("One.", "Two."), plugins=[history]) as agent:
        await agent.run("a")
        await history.flush()
        assert not path.exists()
        await history.save()
        assert "One." in path.read_text()
        await agent.run("b")
    assert "Two." not in path.read_text()


async def test_a_save_that_fails_is_an_error(tmp_path: Path) -> None:
    history = ConversationHistoryPlugin(strategy="file", path=tmp_path)
    async with Robota(ScriptedProvider("One."), plugins=[history]) as agent:
        await agent.run("a")
        with pytest.raises(PluginError, match="cannot be used"):
            await history.save()


@pytest.mark.parametrize("options", [{"max_messages": 0}, {"strategy": "remote"}, {"save_interval": -1}])
def test_options_that_cannot_work_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError, match="'conversation-history'"):
        ConversationHistoryPlugin(**options)
