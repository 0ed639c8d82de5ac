"""What events tell, of sessions and of their journals: the state of the window whenever it changes, and
everything that a front end needs to show a call, a summary or a refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio
from tests.sessions.test_event_numbers import numbered, read_back

from robota.core.events import Compacted, ContextUpdated, RunFailed, ToolEnded, ToolStarted
from robota.core.messages import SystemMessage, ToolCall
from robota.core.plugin import Plugin, Refusal
from robota.core.robota import Robota
from robota.sessions.replay.session_replay import replay_session
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio

LONG = "word " * 2_000


def windows(studio: Studio) -> list[int]:
    return [event.used_tokens for event in studio.told(ContextUpdated)]


async def test_the_window_is_told_after_a_compaction_a_clearing_and_a_swap(tmp_path: Path) -> None:
    studio = Studio(tmp_path, LONG, "The summary.", "Yes.")
    await studio.session.run("tell me a lot")
    full = windows(studio)[-1]

    await studio.session.compact()
    [compacted] = studio.told(Compacted)
    assert studio.events.index(compacted) < studio.events.index(studio.told(ContextUpdated)[-1])
    summarised = windows(studio)[-1]
    assert summarised < full / 10

    studio.session.clear_history()
    assert windows(studio)[-1] < summarised

    before = len(windows(studio))
    studio.session.set_model("another")
    assert len(windows(studio)) == before + 1
    await studio.session.run("there?")
    await studio.session.shutdown()
    assert numbered(studio.events) == read_back(studio.path)


async def test_an_automatic_compaction_tells_the_window_too(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "word " * 2_700, *["The summary."] * 6, context_window=4_000)
    await studio.session.run("tell me a lot")
    full = windows(studio)[-1]
    await studio.session.run("and now?")
    [compacted] = studio.told(Compacted)
    after = next(event for event in studio.events[studio.events.index(compacted) :]
                 if isinstance(event, ContextUpdated))  # fmt: skip
    assert after.used_tokens < full


async def test_a_summary_is_in_its_event_and_in_the_journal(tmp_path: Path) -> None:
    studio = Studio(tmp_path, LONG, "They spoke of words.", "Yes.")
    await studio.session.run("tell me a lot")
    summary = await studio.session.compact()
    [compacted] = studio.told(Compacted)
    assert compacted.summary == summary
    assert "They spoke of words." in compacted.summary
    await studio.session.shutdown()
    assert [event.summary for event in read_back(studio.path) if isinstance(event, Compacted)] == [summary]


async def test_the_arguments_of_a_call_are_in_both_of_its_events(tmp_path: Path) -> None:
    """Of a known tool, of one that does not exist, and of one whose arguments cannot be read."""
    unreadable = ToolCall("c4", "deploy", "{not json")
    studio = Studio(
        tmp_path,
        [call("add", "c1", a=1, b=2), call("deploy", "c2", target="prod"), call("add", "c3", a="x")],
        [unreadable],
        "done",
    )
    await studio.session.run("go")
    wanted = [{"a": 1, "b": 2}, {"target": "prod"}, {"a": "x"}, {}]
    assert [event.arguments for event in studio.told(ToolStarted)] == wanted
    ended = sorted(studio.told(ToolEnded), key=lambda event: event.tool_call_id)
    assert [event.arguments for event in ended] == wanted
    await studio.session.shutdown()
    assert numbered(studio.events) == read_back(studio.path)


@pytest.mark.parametrize("system", ["You are terse.", None])
@pytest.mark.parametrize("first", [True, False])
async def test_injected_words_of_the_system_reach_the_model(
    tmp_path: Path, system: str | None, first: bool
) -> None:
    studio = Studio(tmp_path, "one", "two", "three", system=system)
    session = studio.session
    if not first:
        await session.run("before")
    session.inject_message("system", "Speak French.")
    session.inject_message("system", "Use no commas.")
    await session.run("hello")
    await session.run("again")
    words = [part for part in (system, "Speak French.", "Use no commas.") if part]
    for request in studio.provider.requests[0 if first else 1 :]:
        told = [message.content for message in request.messages if isinstance(message, SystemMessage)]
        assert told == ["\n\n".join(words)]
    await session.shutdown()
    assert (await replay_session(studio.path)).divergence is None

    again = Studio(tmp_path, "four", system=system, session_id="s-2", conversation=session.agent.conversation)
    again.session.agent.system_message = "You are verbose."
    await again.session.run("and now?")
    [told] = [m.content for m in again.provider.requests[0].messages if isinstance(m, SystemMessage)]
    assert told == "You are verbose."


class Guard(Plugin):
    name = "guard"

    def __init__(self, hook: str) -> None:
        self._hook = hook

    async def before_run(self, prompt: Any) -> Any:
        return Refusal("not today") if self._hook == "before_run" else None

    async def before_provider_call(self, request: Any) -> Any:
        return Refusal("not today") if self._hook == "before_provider_call" else None


@pytest.mark.parametrize("hook", ["before_run", "before_provider_call"])
async def test_a_refusal_names_the_plugin_that_refused(hook: str) -> None:
    failed: list[RunFailed] = []
    agent = Robota(ScriptedProvider("never"), plugins=[Guard(hook)])
    agent.events.on(RunFailed, failed.append)
    result = await agent.run("hello")
    assert getattr(result.error, "plugin_name", None) == "guard"
