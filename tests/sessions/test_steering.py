"""Words that reach a model while it works, and prompts that are known by an id."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio
from tests.support.session_options import resume_session

from robota.core.errors import AbortError, SessionBusyError
from robota.core.events import (
    PromptQueued,
    PromptSteered,
    RunCompleted,
    RunStarted,
    TextDelta,
    ToolStarted,
    TurnEvent,
)
from robota.core.messages import Message, TextPart, UserMessage
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.session import Session
from robota.testing import Fail, ScriptedProvider, call
from robota.tools.function_tool import FunctionTool

pytestmark = pytest.mark.anyio

FREE = PermissionRules(mode="bypassPermissions")


def during(does: Any) -> FunctionTool:
    """A tool in the middle of whose call something happens."""

    async def work() -> str:
        does()
        return "worked"

    return FunctionTool("Work", "", {"type": "object", "properties": {}}, work, tool_class="execute")


def said(messages: list[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in messages if message.role != "system"]


async def test_the_model_hears_it_before_its_next_round(tmp_path: Path) -> None:
    tool = during(lambda: studio.session.steer("Use the other file."))
    studio = Studio(tmp_path, [call("Work")], "I did.", tools=[tool], rules=FREE)
    assert await studio.session.run("work") == "I did."

    assert said(studio.session.messages) == [
        ("user", "work"),
        ("assistant", ""),
        ("tool", "worked"),
        ("user", "Use the other file."),
        ("assistant", "I did."),
    ]
    steering = studio.session.messages[4]
    assert isinstance(steering, UserMessage)
    assert steering.metadata["origin"] == "steering"
    assert [event.prompt for event in studio.told(PromptQueued)] == ["Use the other file."]
    assert len(studio.told(RunStarted)) == len(studio.told(RunCompleted)) == 1
    await studio.session.shutdown()
    report = await replay_session(studio.path)
    assert report.divergence is None, str(report.divergence)
    assert list(report.messages) == studio.session.messages


async def test_whoever_joins_later_sees_what_was_typed_and_where_it_was_heard(tmp_path: Path) -> None:
    tool = during(lambda: studio.session.steer("Use the other file."))
    studio = Studio(tmp_path, [call("Work")], "I did.", tools=[tool], rules=FREE)
    live: list[TurnEvent] = []
    studio.session.events.subscribe(live.append)
    await studio.session.submit("Do all of the work.", display_input="/work")
    last = studio.session.events.seq
    read: list[TurnEvent] = []
    async with aclosing(studio.session.follow()) as events:
        async for event in events:
            read.append(event)
            if event.seq == last:
                break

    for told in (live, read):
        [began] = [event for event in told if isinstance(event, RunStarted)]
        assert (began.prompt, began.display) == ("Do all of the work.", "/work")
    [heard] = [event for event in live if isinstance(event, PromptSteered)]
    assert heard.prompt == "Use the other file."
    assert heard in read
    assert [event.seq for event in read] == list(range(1, last + 1))
    await studio.session.shutdown()


async def test_a_run_that_was_about_to_end_goes_on_for_it(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "First.", "Second.", rules=FREE)

    def listen(event: TextDelta) -> None:
        if event.text == "First.":
            studio.session.steer([TextPart("And "), TextPart("then?")])

    studio.session.events.on(TextDelta, listen)
    result = await studio.session.submit("go")
    assert (result.text, result.rounds) == ("Second.", 2)
    assert said(studio.session.messages)[2] == ("user", "And \nthen?")
    assert len(studio.told(RunCompleted)) == 1


async def test_what_comes_when_nothing_runs_goes_with_the_next_prompt(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "Aha.")
    first = studio.session.steer("By the way.")
    assert studio.session.steer("By the way.", id=first) == first  # known: it comes once
    await studio.session.run("hello")
    assert said(studio.session.messages) == [
        ("user", "hello"),
        ("user", "By the way."),
        ("assistant", "Aha."),
    ]


async def test_a_run_without_rounds_left_keeps_it_for_the_next_one(tmp_path: Path) -> None:
    tool = during(lambda: studio.session.steer("Wait."))
    studio = Studio(tmp_path, [call("Work")], "Out of rounds.", "I waited.", tools=[tool], rules=FREE)
    provider = studio.provider
    result = await studio.session.submit("work", max_rounds=1)
    assert result.stop_reason == "max_rounds"
    heard = [message.content for message in provider.requests[1].messages]
    assert "Wait." in heard  # with the summary that is asked for: that is a round, too
    assert await studio.session.run("go on") == "I waited."


async def test_what_a_crash_left_undelivered_is_offered_again(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "One.")
    await studio.session.run("first")
    studio.session.steer("Remember the milk.", id="m-1")
    await studio.session.log.aclose()  # the process ends here

    resumed = resume_session(studio.session.store, "s-1", provider=ScriptedProvider("Two."))  # type: ignore[arg-type]
    assert len(resumed.inbox) == 1
    await resumed.run("second")
    assert ("user", "Remember the milk.") in said(resumed.messages)
    await resumed.shutdown()
    again = resume_session(studio.session.store, "s-1", provider=ScriptedProvider("Three."))  # type: ignore[arg-type]
    assert len(again.inbox) == 0
    await again.shutdown()
    report = await replay_session(studio.path)
    assert report.divergence is None, str(report.divergence)


async def test_what_was_delivered_does_not_come_again(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "One.", "Two.")
    studio.session.steer("Remember the milk.", id="m-1")
    await studio.session.run("first")
    studio.session.steer("Remember the milk.", id="m-1")  # a client that did not hear of its success
    await studio.session.run("second")
    await studio.session.shutdown()
    resumed = resume_session(studio.session.store, "s-1", provider=ScriptedProvider("Three."))  # type: ignore[arg-type]
    resumed.steer("Remember the milk.", id="m-1")
    await resumed.run("third")
    await resumed.shutdown()
    assert [words for _, words in said(resumed.messages)].count("Remember the milk.") == 1


async def test_new_words_lift_what_a_guard_has_decided(tmp_path: Path) -> None:
    """The third failure in a row ends a run; not if the user has said what to do instead."""
    failures = 0

    async def fail() -> str:
        nonlocal failures
        failures += 1
        if failures == 3:
            studio.session.steer("Try the other one.")
        raise OSError("broken")

    tool = FunctionTool("Fail", "", {"type": "object", "properties": {}}, fail, tool_class="inspect")
    studio = Studio(tmp_path, *[[call("Fail")]] * 3, "I will.", tools=[tool])
    assert await studio.session.run("go") == "I will."
    assert [bool(request.tools) for request in studio.provider.requests] == [True] * 4
    await studio.session.shutdown()
    report = await replay_session(studio.path)
    assert report.divergence is None, str(report.divergence)


# --- prompts with ids -------------------------------------------------------------------------------------


async def test_a_prompt_that_is_submitted_twice_is_answered_once(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "Once.")
    first = await studio.session.submit("hello", id="p-1")
    assert await studio.session.submit("hello", id="p-1") is first
    await studio.session.shutdown()

    resumed = resume_session(studio.session.store, "s-1", provider=ScriptedProvider())  # type: ignore[arg-type]
    again = await resumed.submit("hello", id="p-1")
    assert again == first
    assert said(resumed.messages) == [("user", "hello"), ("assistant", "Once.")]
    await resumed.shutdown()


async def test_a_known_answer_has_its_type_again(tmp_path: Path) -> None:
    studio = Studio(tmp_path, '{"files": 3}')
    first = await studio.session.submit("count", id="p-1", output=dict[str, int])
    await studio.session.shutdown()
    resumed = resume_session(studio.session.store, "s-1", provider=ScriptedProvider())  # type: ignore[arg-type]
    again = await resumed.submit("count", id="p-1", output=dict[str, int])
    assert first.output == again.output == {"files": 3}
    await resumed.shutdown()
    with pytest.raises(SessionBusyError):
        resumed.steer("too late")


async def test_a_failure_is_known_by_its_id_too(tmp_path: Path) -> None:
    studio = Studio(tmp_path, Fail(RuntimeError("no network")))
    first = await studio.session.submit("hello", id="p-1")
    assert first.error is not None
    await studio.session.shutdown()
    resumed = resume_session(studio.session.store, "s-1", provider=ScriptedProvider())  # type: ignore[arg-type]
    again = await resumed.submit("hello", id="p-1")
    assert again.error is not None
    assert (str(again.error), again.error.code) == (str(first.error), first.error.code)
    await resumed.shutdown()


# --- streams ----------------------------------------------------------------------------------------------


async def test_a_prompt_as_the_events_of_its_run(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "Hello.")
    events = [event async for event in studio.session.stream("hi", display_input="(hi)")]
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunCompleted)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hello."
    assert events == [event for event in studio.events if isinstance(event, TurnEvent)]


async def test_a_stream_that_is_left_stops_its_run_and_lets_the_next_one_begin(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "A long answer.", "Short.")
    async for event in studio.session.stream("hi"):
        if isinstance(event, TextDelta):
            break
    assert await studio.session.run("again") == "Short."


async def test_a_session_that_is_streamed_from_is_busy(tmp_path: Path) -> None:
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    tool = FunctionTool("Wait", "", {"type": "object", "properties": {}}, wait, tool_class="inspect")
    studio = Studio(tmp_path, [call("Wait")], "Never.", tools=[tool])
    async for event in studio.session.stream("hi"):
        if isinstance(event, ToolStarted):
            with pytest.raises(SessionBusyError):
                await studio.session.run("too early")
            break


def test_a_session_works_without_a_loop(tmp_path: Path) -> None:
    session = Session(provider=ScriptedProvider("Hi.", "Ho."), model="m", cwd=str(tmp_path))
    assert session.run_sync("1") == "Hi."
    assert session.run_sync("2") == "Ho."


async def test_a_run_that_was_aborted_is_a_result_of_submit(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "x")
    studio.session.events.on(RunStarted, lambda _: studio.session.abort())
    result = await studio.session.submit("go", id="p-9")
    assert result.interrupted
    with pytest.raises(AbortError):
        await studio.session.run("go")
