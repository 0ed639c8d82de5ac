"""Every hook that is declared fires in a real run, through the door that front ends use."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.test_plugins import Diary
from tests.plugins.office import ADDING, add, open_session

from robota.core.plugin import HOOKS, Plugin
from robota.core.robota import Robota
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


async def test_every_declared_hook_fires_in_a_run_of_an_interactive_session(tmp_path: Path) -> None:
    diary = Diary()
    async with open_session(tmp_path, [*ADDING, call("explode")], "Three.", plugins=[diary]) as session:
        result = await session.submit("Add.")
    assert result.text == "Three."
    assert {hook for hook, _ in diary.told} == {*HOOKS, "initialize", "dispose"}


async def test_a_plugin_knows_whom_it_works_for(tmp_path: Path) -> None:
    diary = Diary()
    async with open_session(tmp_path, "Hi.", plugins=[diary]) as session:
        await session.submit("Hello.")
        assert diary.context.session_id == session.session_id
        assert diary.context.provider() == "scripted"
        assert diary.get_status().initialized
    assert not diary.get_status().initialized


async def test_a_subagent_has_a_plugin_if_its_parents_gives_it_one(tmp_path: Path) -> None:
    class Parent(Diary):
        def __init__(self) -> None:
            super().__init__()
            self.children: list[tuple[str, Diary]] = []

        def for_child(self, agent_id: str) -> Plugin:
            child = Diary()
            self.children.append((agent_id, child))
            return child

    parent = Parent()
    replies = [[call("Agent", prompt="look", description="look")], "I saw it.", "Done."]
    async with open_session(tmp_path, *replies, plugins=[parent]) as session:
        await session.submit("go")
    [(agent_id, child)] = parent.children
    assert agent_id.startswith("general-purpose-")
    assert child.context.agent_id == agent_id
    assert child.of("before_run") == ["look"]
    assert child.hooks()[-1] == "dispose"


async def test_what_a_plugin_does_is_counted() -> None:
    diary = Diary()
    async with Robota(ScriptedProvider(ADDING, "Three."), tools=[add], plugins=[diary]) as agent:
        await agent.run("go")
    stats = diary.get_stats()
    assert stats["calls"] == len(diary.told)
    assert stats["eventsReceived"] == len(diary.of("on_event"))
    assert (stats["errors"], stats["lastActivity"] is None) == (0, False)
    assert diary.get_data() is None


async def test_disable_and_enable_switch_a_plugin(tmp_path: Path) -> None:
    diary = Diary()
    diary.disable()
    async with open_session(tmp_path, "One.", "Two.", plugins=[diary]) as session:
        await session.submit("a")
        assert diary.of("before_run") == []
        diary.enable()
        await session.submit("b")
    assert diary.of("before_run") == ["b"]
