from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from robota.core.errors import ConfigurationError, ProviderError, SessionBusyError, SessionNotFoundError
from robota.core.events import RunCompleted, TextDelta, ToolEnded
from robota.core.robota import Robota
from robota.sdk.execution import ExecutionResult
from robota.sdk.interactive import InteractiveSession
from robota.sdk.tool_states import ToolState, first_argument, subject
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.session import Session
from robota.sessions.store.session_store import SessionStore
from robota.testing import Fail, ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio

EVENTS = (
    "text_delta", "tool_start", "tool_end", "thinking", "complete", "error", "context_update", "interrupted",
)  # fmt: skip


def listen(session: InteractiveSession) -> list[tuple[str, Any]]:
    heard: list[tuple[str, Any]] = []
    for name in EVENTS:
        session.on(name, lambda payload, name=name: heard.append((name, payload)))
    return heard


def names(heard: list[tuple[str, Any]]) -> list[str]:
    return [name for name, _ in heard]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    path = tmp_path / "project"
    path.mkdir()
    path.joinpath("notes.txt").write_text("milk\n")
    return path


async def test_ten_lines_are_a_session(project: Path) -> None:
    session = InteractiveSession(cwd=project, provider=ScriptedProvider("Hello."))
    said: list[str] = []
    session.on("text_delta", said.append)

    result = await session.submit("Hi")

    assert result.text == result.response == "Hello."
    assert "".join(said) == "Hello."
    await session.shutdown()


async def test_a_session_without_a_provider_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="provider"):
        InteractiveSession()


async def test_a_turn_with_a_tool_is_told_from_beginning_to_end(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], "Milk.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = listen(session)

        result = await session.submit("What is in the notes?")

        told = names(heard)
        assert told[0] == "thinking"
        assert told[-1] == "thinking"
        assert [payload for name, payload in heard if name == "thinking"] == [True, False]
        assert told.count("complete") == 1
        assert "error" not in told
        assert "interrupted" not in told
        assert told.index("tool_start") < told.index("tool_end") < told.index("complete")
        assert dict(heard)["tool_end"] == ToolState(
            tool_name="Read", first_arg="notes.txt", is_running=False, result="success",
            call_id=dict(heard)["tool_end"].call_id,
        )  # fmt: skip
        assert dict(heard)["complete"] is result
        assert [each.name for each in result.tool_summaries] == ["Read"]
        assert [(entry.category, entry.type) for entry in session.full_history] == [
            ("chat", "user"),
            ("event", "tool-start"),
            ("event", "tool-end"),
            ("event", "tool-summary"),
            ("chat", "assistant"),
        ]
        assert list(result.history) == session.full_history
        assert [message.role for message in session.messages] == ["user", "assistant"]


async def test_a_failing_model_is_an_error_event_and_no_exception(project: Path) -> None:
    provider = ScriptedProvider(Fail(ProviderError("The service is down.")), "Better.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = listen(session)

        result = await session.submit("Hi")

        assert isinstance(result.error, ProviderError)
        assert [name for name in names(heard) if name in ("complete", "error", "interrupted")] == ["error"]
        assert dict(heard)["error"] is result.error
        assert session.messages[-1].content.startswith("Error: ")
        assert (await session.submit("Again")).text == "Better."


async def test_an_abort_is_told_when_it_has_ended(project: Path) -> None:
    provider = ScriptedProvider(["Once upon a time", call("Bash", command="sleep 100")])
    session = InteractiveSession(cwd=project, provider=provider, permission_mode="bypassPermissions")
    heard = listen(session)
    session.on("tool_start", lambda _: session.abort())

    result = await session.submit("Tell me a story")

    assert result.interrupted
    assert result.text == "Once upon a time"
    assert [name for name in names(heard) if name in ("complete", "error", "interrupted")] == ["interrupted"]
    assert names(heard).index("tool_end") < names(heard).index("interrupted")
    assert session.messages[-1].content == "Interrupted by user."
    await session.shutdown()


async def test_one_prompt_waits_and_a_third_is_refused(project: Path) -> None:
    provider = ScriptedProvider([call("Bash", command="read line < gate")], "first", "second")
    project.joinpath("gate").unlink(missing_ok=True)
    import os

    os.mkfifo(project / "gate")
    session = InteractiveSession(cwd=project, provider=provider, permission_mode="bypassPermissions")
    started = asyncio.Event()
    session.on("tool_start", lambda _: started.set())
    first = asyncio.create_task(session.submit("one"))
    await started.wait()
    second = asyncio.create_task(session.submit("two", "/two"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert session.is_executing
    assert session.pending_prompt == "/two"
    with pytest.raises(SessionBusyError):
        await session.submit("three")

    await asyncio.to_thread((project / "gate").write_text, "go\n")
    assert (await first).text == "first"
    assert (await second).text == "second"
    assert not session.is_executing
    assert session.pending_prompt is None
    await session.shutdown()


async def test_cancel_queue_leaves_the_turn_alone_and_abort_does_not(project: Path) -> None:
    provider = ScriptedProvider([call("Bash", command="sleep 100")], "unused")
    session = InteractiveSession(cwd=project, provider=provider, permission_mode="bypassPermissions")
    heard = listen(session)
    started = asyncio.Event()
    session.on("tool_start", lambda _: started.set())
    first = asyncio.create_task(session.submit("one"))
    await started.wait()
    second = asyncio.create_task(session.submit("two"))
    await asyncio.sleep(0)

    session.cancel_queue()

    taken_back = await second
    assert taken_back.interrupted
    assert session.is_executing
    third = asyncio.create_task(session.submit("three"))
    await asyncio.sleep(0)
    session.abort()
    assert (await third).interrupted
    assert (await first).interrupted
    assert [name for name in names(heard) if name in ("complete", "error", "interrupted")] == ["interrupted"]
    assert len(provider.requests) == 1
    await session.shutdown()


async def test_what_is_shown_and_what_the_model_gets_differ(project: Path) -> None:
    provider = ScriptedProvider("done")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("The whole text of the skill.", "/audit", "audit now")

        assert session.messages[0].content == "/audit"
        assert session.session.messages[1].content == "The whole text of the skill."


async def test_resume_keeps_what_was_shown_and_a_fork_leaves_the_original_alone(
    project: Path, tmp_path: Path
) -> None:
    store = SessionStore(str(tmp_path / "sessions"))
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], "Milk.")
    async with InteractiveSession(cwd=project, provider=provider, session_store=store) as session:
        await session.submit("the text", "/notes")
        session.name = "shopping"
        before = session.full_history
        original = session.session_id
    file = Path(store.journal_path(original)).read_bytes()

    fork = InteractiveSession(
        cwd=project,
        provider=ScriptedProvider("Bread."),
        session_store=store,
        resume_session_id=original,
        fork_session=True,
    )
    assert fork.session_id != original
    assert fork.full_history == before
    async with fork:
        await fork.submit("And?")
    assert Path(store.journal_path(original)).read_bytes() == file

    resumed = InteractiveSession(
        cwd=project, provider=ScriptedProvider("Eggs."), session_store=store, resume_session_id=original
    )
    assert resumed.session_id == original
    assert resumed.name == "shopping"
    assert resumed.full_history == before
    async with resumed:
        assert (await resumed.submit("And?")).text == "Eggs."
        assert [message.content for message in resumed.messages] == ["/notes", "Milk.", "And?", "Eggs."]


async def test_a_missing_session_is_named_when_it_is_asked_for(project: Path, tmp_path: Path) -> None:
    store = SessionStore(str(tmp_path / "sessions"))
    async with InteractiveSession(
        cwd=project, provider=ScriptedProvider("x"), session_store=store
    ) as session:
        await session.submit("hi")
        known = session.session_id

    with pytest.raises(SessionNotFoundError, match=known):
        InteractiveSession(
            cwd=project,
            provider=ScriptedProvider(),
            session_store=store,
            resume_session_id=known[:-1] + "0" if not known.endswith("0") else known[:-1] + "1",
        )


async def test_a_session_that_was_made_elsewhere_reads_no_file(tmp_path: Path) -> None:
    inner = Session(provider=ScriptedProvider("done"), cwd="/nowhere")
    session = InteractiveSession(session=inner)
    heard = listen(session)

    result = await session.submit("go")

    assert result.text == "done"
    assert session.session is inner
    assert names(heard).count("complete") == 1
    await session.shutdown()


async def test_stream_gives_typed_events(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], "Milk.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        events = [event async for event in session.stream("What?")]

        assert any(isinstance(event, ToolEnded) for event in events)
        assert isinstance(events[-1], RunCompleted)


async def test_a_stream_that_is_left_stops_the_turn(project: Path) -> None:
    provider = ScriptedProvider([call("Bash", command="sleep 100")], "again")
    session = InteractiveSession(cwd=project, provider=provider, permission_mode="bypassPermissions")
    stream = session.stream("go")
    async for event in stream:
        if event.name == "tool_start":
            break
    await stream.aclose()

    assert not session.is_executing
    assert (await session.submit("and now?")).text == "again"
    await session.shutdown()


async def test_a_prompt_behind_a_stream_that_was_left_by_break_is_answered(project: Path) -> None:
    provider = ScriptedProvider([call("Bash", command="sleep 100")], "again")
    session = InteractiveSession(cwd=project, provider=provider, permission_mode="bypassPermissions")
    async for event in session.stream("go"):
        if event.name == "tool_start":
            break

    assert (await session.submit("and now?")).text == "again"
    assert (await session.submit("and now?")).error is not None, "the script is over, so nothing ran twice"
    await session.shutdown()


async def test_streams_that_are_left_by_break_follow_each_other(project: Path) -> None:
    for make in (
        lambda provider: Robota(provider),
        lambda provider: Session(provider=provider),
        lambda provider: InteractiveSession(cwd=project, provider=provider),
    ):
        agent = make(ScriptedProvider(*[["one", Stall()]] * 3, "last"))
        for _ in range(3):
            async for event in agent.stream("go"):
                if isinstance(event, TextDelta):
                    break
        told = [event async for event in agent.stream("and now?")]
        assert isinstance(told[-1], RunCompleted)
        assert told[-1].text == "last"
        await agent.aclose()


async def test_a_stream_beside_one_that_is_read_is_refused(project: Path) -> None:
    provider = ScriptedProvider(["one", Stall()])
    async with InteractiveSession(cwd=project, provider=provider) as session:
        async for event in session.stream("go"):
            if isinstance(event, TextDelta):
                with pytest.raises(SessionBusyError):
                    await anext(session.stream("and this?"))
                break


async def test_a_question_is_answered_by_whoever_is_first(project: Path) -> None:
    provider = ScriptedProvider([call("Write", file_path="a.txt", content="x")], "written")
    session = InteractiveSession(cwd=project, provider=provider)
    closed: list[Any] = []
    session.on("question_closed", closed.append)
    slow = asyncio.Event()

    async def never(question: object) -> bool:
        await slow.wait()
        return False

    async def yes(question: object) -> bool:
        return True

    session.questions.attach(never)
    session.questions.attach(yes)

    assert (await session.submit("write it")).text == "written"
    assert project.joinpath("a.txt").read_text() == "x"
    assert len(closed) == 1
    await session.shutdown()


async def test_nobody_to_ask_is_a_no_and_a_finished_denied_state(project: Path) -> None:
    provider = ScriptedProvider([call("Write", file_path="a.txt", content="x")], "not written")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = listen(session)

        await session.submit("write it")

        ended = dict(heard)["tool_end"]
        assert (ended.result, ended.is_running) == ("denied", False)
        assert not project.joinpath("a.txt").exists()


async def test_the_state_before_and_after_it_is_ready(project: Path) -> None:
    session = InteractiveSession(cwd=project, provider=ScriptedProvider("x"))

    with pytest.raises(ConfigurationError, match="not initialized"):
        _ = session.context_state
    assert session.messages == []
    assert session.problems == ()
    await session.ready()
    assert session.context_state.used_tokens >= 0
    await session.shutdown()


async def test_a_transport_is_only_attached(project: Path) -> None:
    class Wire:
        name = "wire"
        attached: object = None

        def attach(self, session: object) -> None:
            self.attached = session

        async def start(self) -> None:
            raise AssertionError("starting is the caller's")

        async def stop(self) -> None: ...

    wire = Wire()
    session = InteractiveSession(cwd=project, provider=ScriptedProvider())
    session.attach_transport(wire)

    assert wire.attached is session


async def test_a_wrong_name_of_an_event_is_told(project: Path) -> None:
    session = InteractiveSession(cwd=project, provider=ScriptedProvider())
    with pytest.raises(ConfigurationError, match="text_delta"):
        session.on("textdelta", print)


async def test_a_listener_that_fails_costs_nobody_else_their_event(project: Path) -> None:
    async with InteractiveSession(cwd=project, provider=ScriptedProvider("x")) as session:
        session.on("complete", lambda _: 1 / 0)
        results: list[ExecutionResult[Any]] = []
        session.on("complete", results.append)

        await session.submit("go")

        assert len(results) == 1


def test_a_long_argument_keeps_its_end_in_sight() -> None:
    shown = first_argument({"file_path": "/a" * 60 + "/the_name_of_the_file.py"})

    assert len(shown) == 80
    assert shown.endswith("/the_name_of_the_file.py")
    assert "..." in shown
    assert first_argument({}) == ""
    assert first_argument({"items": [1, 2]}) == "[1, 2]"


def test_a_call_is_about_its_command_or_file_wherever_that_stands() -> None:
    assert subject({"description": "List", "command": "ls"}) == "ls"
    assert subject({"old_string": "a", "file_path": "a.py"}) == "a.py"
    assert subject({"questions": [{"question": "Which?", "options": []}]}) == "Which?"
    assert subject({"questions": []}) == "[]"
    assert subject({"depth": 3}) == "3"
    assert subject({}) == ""


async def test_what_a_front_end_did_is_replayed_exactly(project: Path, tmp_path: Path) -> None:
    store = SessionStore(str(tmp_path / "sessions"))
    provider = ScriptedProvider(
        [call("Read", file_path="notes.txt"), call("Write", file_path="b.txt", content="y")], "Milk.", "Eggs."
    )
    session = InteractiveSession(
        cwd=project, provider=provider, session_store=store, permission_mode="acceptEdits"
    )
    async with session:
        await session.submit("first", "/first")
        await session.submit("second")

    report = await replay_session(store.journal_path(session.session_id))

    assert report.identical, report
