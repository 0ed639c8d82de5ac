"""A session on another host, used like a local one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.providers.loopback import Loopback, Reply
from tests.support.serving import TOKEN, Serving, serving

from robota.cli.attached import AttachedSession
from robota.client import RemoteSession
from robota.client.connection import RemoteSessionError
from robota.core import (
    AuthenticationError,
    ConfigurationError,
    NetworkError,
    Noticed,
    RunCompleted,
    SessionNotFoundError,
    TextDelta,
    TurnEvent,
)
from robota.core.messages import ImagePart, TextPart
from robota.testing import ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio
WRITE = call("Write", file_path="a.txt", content="hello")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / "project"
    path.mkdir()
    return path


def attach(server: Serving, session_id: str | None = None, **more: Any) -> RemoteSession:
    return RemoteSession(server.url, TOKEN, session_id, **more)


async def test_a_prompt_is_taken_to_its_end(project: Path) -> None:
    async with (
        serving(ScriptedProvider(["Hel", "lo."]), project) as server,
        attach(server, name="far away") as session,
    ):
        told: list[Any] = []
        for name in ("text_delta", "thinking", "complete"):
            session.on(name, lambda payload, name=name: told.append((name, payload)))
        result = await session.submit("hi", display_input="(hi)")

        assert result.text == "Hello."
        assert (result.rounds, result.stop_reason, result.success) == (1, "end_turn", True)
        assert [name for name, _ in told] == ["thinking", "text_delta", "text_delta", "complete", "thinking"]
        assert told[3][1] is result
        assert session.name == "far away"
        assert [message.content for message in session.messages] == ["(hi)", "Hello."]
        assert not session.is_executing
        assert session.context_state.max_tokens > 0


async def test_events_have_the_numbers_that_they_have_at_the_host(project: Path) -> None:
    async with serving(ScriptedProvider(["a", "b"], "c"), project) as server, attach(server) as session:
        await session.ready()
        heard: list[TurnEvent] = []
        session.events.subscribe(heard.append)
        await session.submit("one")
        await session.submit("two")
        local = server.host.sessions[session.session_id].session
        there = [event async for event in until_completed(local.session.follow(), 2)]

    numbers = sorted({event.seq for event in heard})
    assert numbers == [event.seq for event in there]
    assert [event for event in heard if isinstance(event, TextDelta)] == [
        event for event in there if isinstance(event, TextDelta)
    ]


async def until_completed(events: Any, times: int) -> Any:
    try:
        async for event in events:
            yield event
            times -= isinstance(event, RunCompleted)
            if not times:
                return
    finally:
        await events.aclose()


async def test_a_question_is_answered_from_here_and_others_see_it_closed(project: Path) -> None:
    async def yes(question: Any) -> bool:
        asked.append(question.tool_name)
        return True

    async def never(question: Any) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()

    asked: list[str] = []
    cancelled = asyncio.Event()
    async with serving(ScriptedProvider([WRITE], "Done."), project) as server, attach(server) as one:
        await one.ready()
        async with attach(server, one.session_id, client_name="watcher") as two:
            await two.ready()
            two.questions.attach(never)
            one.questions.attach(yes)
            result = await one.submit("write it")
            async with asyncio.timeout(30):
                await cancelled.wait()

    assert (result.text, asked) == ("Done.", ["Write"])
    assert (project / "a.txt").read_text() == "hello"
    assert [each.name for each in result.tool_summaries] == ["Write"]


async def test_who_comes_later_is_asked_what_is_open_and_sees_what_was_said(project: Path) -> None:
    async def no(question: Any) -> bool:
        return False

    async with (
        serving(ScriptedProvider(["I will.", WRITE], "Well."), project) as server,
        attach(server) as first,
    ):
        await first.ready()
        asked = asyncio.Event()
        first.events.subscribe(lambda event: event.name == "question_asked" and asked.set())
        turn = asyncio.create_task(first.submit("write it"))
        await asked.wait()
        async with attach(server, first.session_id) as second:
            await second.ready()
            assert second.is_executing
            assert [question.id for question in second.questions.open.values()]
            assert second.messages[0].content == "write it"
            second.questions.attach(no)
            result = await turn
    assert result.text == "Well."
    assert not (project / "a.txt").exists()


async def test_commands_run_at_the_host(project: Path) -> None:
    async with serving(ScriptedProvider(), project) as server, attach(server) as session:
        await session.ready()
        answer = await session.execute_command("mode", "plan")
        typed = await session.submit("/rename notes")

        assert answer is not None
        assert answer.data == {"mode": "plan"}
        assert await session.execute_command("nonsense") is None
        assert typed.command is not None
        assert typed.command.success
        assert "rename" in {command.name for command in session.list_commands()}


async def test_an_abort_ends_the_turn(project: Path) -> None:
    async with serving(ScriptedProvider(["begun", Stall()]), project) as server, attach(server) as session:
        session.on("text_delta", lambda text: session.abort())
        result = await session.submit("go")
    assert result.interrupted
    assert result.text == "begun"


async def test_words_in_between_reach_the_model(project: Path) -> None:
    async def steer_first(question: Any) -> bool:
        session.steer("the other one")
        await queued.wait()
        return True

    queued = asyncio.Event()
    async with (
        serving(ScriptedProvider([WRITE], "Done."), project) as server,
        attach(server) as session,
    ):
        session.on("prompt_queued", lambda event: queued.set())
        session.questions.attach(steer_first)
        await session.submit("write it")
        assert [message.content for message in session.messages] == ["write it", "the other one", "Done."]


async def test_images_go_along(project: Path) -> None:
    provider = ScriptedProvider("A dot.")
    async with serving(provider, project) as server, attach(server) as session:
        await session.submit((TextPart("What is it?"), ImagePart("aGVsbG8=")))
    sent = provider.requests[0].messages[-1]
    assert [type(part).__name__ for part in sent.parts] == ["TextPart", "ImagePart"]


async def test_an_attached_terminal_is_asked_whether_the_directory_is_trusted(project: Path) -> None:
    (project / ".claude").mkdir()
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    said: list[str] = []
    async with (
        serving(ScriptedProvider("Done."), project, setting_sources=None) as server,
        AttachedSession(server.url, TOKEN) as session,
    ):
        await session.ready()
        session.events.on(Noticed, lambda event: said.append(event.message))
        shown = session.describe_trust()
        await session.trust_project()
        await session.trust_project()
        await session.submit("hi")

    assert any("touch ran" in line for line in shown)
    assert (project / "ran").exists()
    assert len([words for words in said if "nothing to trust" in words]) == 1


async def test_sessions_are_listed(project: Path) -> None:
    async with serving(ScriptedProvider("An answer about bees."), project) as server:
        async with attach(server, name="bees") as session:
            await session.submit("Tell me about bees.")
        found = await RemoteSession.list(server.url, TOKEN)
        hits = await RemoteSession.list(f"{server.url}/#token={TOKEN}", query="bees")
        none = await RemoteSession.list(server.url, TOKEN, query="wasps")
    assert [(each.name, each.state) for each in found] == [("bees", "idle")]
    assert [each.id for each in hits] == [session.session_id]
    assert none == []


async def test_what_a_host_refuses_is_told_in_a_sentence(project: Path) -> None:
    with pytest.raises(ConfigurationError, match="A token is needed"):
        RemoteSession("http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match="not the address of a host"):
        RemoteSession("127.0.0.1:1", "x")
    async with RemoteSession("http://127.0.0.1:1", "x") as session:
        with pytest.raises(NetworkError, match="cannot be reached"):
            await session.ready()
    async with serving(ScriptedProvider(), project) as server:
        async with RemoteSession(server.url, "wrong") as session:
            with pytest.raises(AuthenticationError, match="robota serve"):
                await session.ready()
        async with attach(server, "00000000-0000-4000-8000-000000000000") as session:
            with pytest.raises(SessionNotFoundError):
                await session.ready()


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"id": 7}', b'{"id": "x", "sessions": 3}'])
async def test_something_that_is_no_host_is_one_sentence(body: bytes) -> None:
    async with Loopback(*[Reply([body])] * 4) as other, RemoteSession(other.origin, "x") as session:
        with pytest.raises(RemoteSessionError, match="is not `robota serve`: check the address"):
            await session.ready()
    async with Loopback(Reply([b"[]"])) as other:
        with pytest.raises(RemoteSessionError, match="is not `robota serve`"):
            await RemoteSession.list(other.origin, "x")


async def test_a_host_that_is_started_again_costs_nothing(project: Path) -> None:
    provider = ScriptedProvider("first", "second")
    port = 0
    async with serving(provider, project) as server:
        port = server.port
        session = attach(server)
        await session.submit("one")
        id, seen = session.session_id, session.events.seq
    heard: list[TurnEvent] = []
    session.events.subscribe(heard.append)
    async with serving(provider, project, port=port):
        result = await session.submit("two")
        assert result.text == "second"
        assert session.session_id == id
        told = [event.seq for event in heard if event.seq > seen]
        assert sorted(set(told)) == list(range(min(told), max(told) + 1))
        assert [message.content for message in session.messages] == ["one", "first", "two", "second"]
        await session.aclose()
