"""A session over a WebSocket, with a real client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.serving import TOKEN, Serving, SseEvent, ended, numbers, read_events, serving, until
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from robota import InteractiveSession
from robota.testing import ScriptedProvider, Stall, call
from robota.transports import create_ws_handler
from robota.transports import ws as sockets

pytestmark = pytest.mark.anyio
WRITE = call("Write", file_path="a.txt", content="hello")
Message = dict[str, Any]


@asynccontextmanager
async def connected(
    server: Serving, id: str, query: str = "", **options: Any
) -> AsyncIterator[ClientConnection]:
    url = f"ws://127.0.0.1:{server.port}/sessions/{id}/ws?token={TOKEN}{query}"
    async with connect(url, max_size=None, **options) as socket:
        yield socket


async def say(socket: ClientConnection, **message: Any) -> None:
    await socket.send(json.dumps(message))


async def hear(socket: ClientConnection, *names: str) -> list[Message]:
    """What comes, to the first message of one of these types."""
    found: list[Message] = []
    while not found or found[-1]["type"] not in names:
        found.append(json.loads(await socket.recv()))
    return found


def events_of(messages: list[Message]) -> list[tuple[int, str]]:
    return [(each["seq"], each["type"]) for each in messages if "seq" in each and "transient" not in each]


async def test_a_prompt_streams_to_two_sockets_and_a_stream_with_the_same_numbers(project: Path) -> None:
    async with serving(ScriptedProvider(["Hel", "lo."]), project) as server:
        id = await server.new()
        async with connected(server, id, "&name=one") as one, connected(server, id, "&name=two") as two:
            await say(one, type="submit", prompt="hi")
            first, second = await asyncio.gather(hear(one, "submit_end"), hear(two, "submit_end"))
        stream = await server.read(id, ended)

    assert events_of(first) == events_of(second)
    assert [number for number, _ in events_of(first)][: len(numbers(stream))] == numbers(stream)
    assert any(each["type"] == "submitted" for each in first)
    assert not any(each["type"] == "submitted" for each in second)


async def test_a_socket_resumes_behind_the_last_number_it_saw(project: Path) -> None:
    async with serving(ScriptedProvider(["a", "b", "c"]), project) as server:
        id = await server.new()
        async with connected(server, id) as socket:
            await say(socket, type="submit", prompt="hi")
            whole = events_of(await hear(socket, "submit_end"))
        async with connected(server, id) as socket:
            await say(socket, type="resume", after=whole[2][0])
            rest = events_of(await hear(socket, "complete"))
        async with connected(server, id, f"&after={whole[0][0]}") as socket:
            others = events_of(await hear(socket, "complete"))

    to_the_end = [number for number, _ in whole].index(rest[-1][0]) + 1
    assert rest == whole[3:to_the_end]
    assert others == whole[1:to_the_end]


async def test_a_question_is_answered_over_the_socket_and_by_whom_is_told(project: Path) -> None:
    async with serving(ScriptedProvider([WRITE], "Done."), project) as server:
        id = await server.new()
        async with connected(server, id, "&name=anna") as socket, connected(server, id) as other:
            await say(socket, type="submit", prompt="write")
            asked = (await hear(other, "question_asked"))[-1]["question"]
            await say(socket, type="permission-response", id=asked["id"], answer="allow-session")
            closed = (await hear(other, "question_closed"))[-1]
            await say(other, type="permission-response", id=asked["id"], answer=False)
            refused = (await hear(other, "answer_result"))[-1]
            await hear(socket, "submit_end")

    assert (closed["by"], closed["answer"]) == ("anna", {"allow": True, "scope": "session"})
    assert refused["accepted"] is False
    assert (project / "a.txt").read_text() == "hello"


async def test_what_a_session_is_can_be_asked_and_commands_run(project: Path) -> None:
    async with serving(ScriptedProvider("Hello."), project) as server:
        id = await server.new()
        async with connected(server, id) as socket:
            for question in ("get-messages", "get-context", "get-executing", "get-pending"):
                await say(socket, type=question)
            await say(socket, type="command", name="help")
            heard = await hear(socket, "command_result")
            await say(socket, type="typing")
            presence = (await hear(socket, "presence"))[-1]

    assert {"messages", "context", "executing", "pending"} <= {each["type"] for each in heard}
    assert heard[-1]["name"] == "help"
    assert heard[-1]["success"] is True
    assert [each["typing"] for each in presence["clients"]] == [True]


async def test_those_who_read_events_are_shown_to_each_other_and_who_is_writing(project: Path) -> None:
    def watched(names: dict[str, bool]) -> Callable[[SseEvent], bool]:
        return lambda event: (
            event.name == "presence"
            and {each["name"]: each["typing"] for each in event.data["clients"]} == names
        )

    async with serving(ScriptedProvider("Hello."), project) as server:
        id = await server.new()
        path = f"/sessions/{id}/events?client="

        async def come(letter: str, name: str, names: dict[str, bool]) -> None:
            await read_events(server.client, path + letter, watched(names), **{"robota-client": name})

        async def write(client: str) -> bool:
            sent = await server.client.post(f"/sessions/{id}/typing", json={"client": client, "typing": True})
            return bool(sent.json()["accepted"])

        anna = asyncio.create_task(come("a", "Anna", {"Anna": False, "Bo": True}))
        await come("c", "Cy", {"Anna": False, "Cy": False})
        bo = asyncio.create_task(come("b", "Bo", {"Bo": True}))
        while not await write("b"):  # noqa: ASYNC110 - until it is there
            await asyncio.sleep(0.001)
        await asyncio.gather(anna, bo)
        assert not await write("nobody")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{nonsense", "not JSON"),
        ("[1]", "an object with a `type`"),
        ('{"type": "dance"}', "no message 'dance'"),
        ('{"type": "submit"}', "needs `prompt`"),
        ('{"type": "submit", "prompt": 7}', "needs `prompt`"),
        ('{"type": "command", "name": "nonsense"}', "no command 'nonsense'"),
        ('{"type": "resume", "after": -1}', "needs `after`"),
        ('{"type": "ack", "seq": "x"}', "needs `seq`"),
        ('{"type": "ask-response", "id": "x"}', "needs `answer`"),
    ],
)
async def test_what_is_not_understood_is_told_and_the_socket_goes_on(
    project: Path, text: str, words: str
) -> None:
    async with serving(ScriptedProvider(), project) as server:
        id = await server.new()
        async with connected(server, id) as socket:
            await socket.send(text)
            error = (await hear(socket, "protocol_error"))[-1]
            await say(socket, type="get-executing")
            answer = (await hear(socket, "executing"))[-1]

    assert words in error["message"]
    assert answer["executing"] is False


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/sessions/{id}/ws", {}, 401),
        ("/sessions/{id}/ws?token=wrong", {}, 401),
        ("/sessions/none/ws?token={token}", {}, 404),
        ("/sessions/{id}/ws?token={token}", {"origin": "http://evil.example"}, 403),
        ("/sessions/{id}/ws?token={token}", {"host": "evil.example"}, 403),
        ("/sessions/{id}/ws?token={token}&after=x", {}, 422),
    ],
)
async def test_a_socket_is_refused_before_it_is_one(
    project: Path, path: str, headers: dict[str, str], status: int
) -> None:
    async with serving(ScriptedProvider(), project) as server:
        id = await server.new()
        name, place = headers.get("host", "127.0.0.1"), path.format(id=id, token=TOKEN)
        with pytest.raises(InvalidStatus) as refused:
            async with connect(
                f"ws://{name}:{server.port}{place}",
                origin=headers.get("origin"),  # type: ignore[arg-type]
                host="127.0.0.1",
                port=server.port,
            ):
                pass

    assert refused.value.response.status_code == status


async def test_a_client_that_acknowledges_is_not_sent_more_than_it_can_take(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "WINDOW", 5)
    async with serving(ScriptedProvider(["x"] * 3_000), project) as server:
        id = await server.new()
        async with connected(server, id) as socket:
            await say(socket, type="ack", seq=0)
            await say(socket, type="submit", prompt="talk")
            await until(lambda: not server.host.sessions[id].session.is_executing and _used(server, id))
            heard: list[Message] = []
            while not heard or heard[-1]["type"] != "complete":
                heard.append(json.loads(await socket.recv()))
                if "seq" in heard[-1]:
                    await say(socket, type="ack", seq=heard[-1]["seq"])

    assert sum(each["type"] == "text_delta" for each in heard) == 3_000
    seen = [number for number, _ in events_of(heard)]
    assert seen == list(range(1, len(seen) + 1))


def _used(server: Serving, id: str) -> bool:
    return len(server.host.sessions[id].session.session.messages) > 1


async def test_a_second_client_may_abort_and_the_first_goes_on_using_the_session(project: Path) -> None:
    async with serving(ScriptedProvider(["Begun", Stall()], "Again."), project) as server:
        id = await server.new()
        async with connected(server, id) as one, connected(server, id) as two:
            await say(one, type="submit", prompt="hi")
            await hear(two, "text_delta")
            await say(two, type="abort")
            ended_with = (await hear(one, "interrupted", "complete"))[-1]
            await say(one, type="submit", prompt="again")
            answer = (await hear(one, "complete"))[-1]

    assert ended_with["type"] == "interrupted"
    assert answer["text"] == "Again."


async def test_sockets_are_told_that_the_session_was_deleted(project: Path) -> None:
    async with serving(ScriptedProvider("Hello."), project) as server:
        id = await server.new()
        async with connected(server, id) as socket:
            await server.client.delete(f"/sessions/{id}")
            await hear(socket, "end")
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1001


async def test_a_handler_works_without_a_server(project: Path) -> None:
    heard: list[Message] = []
    done = asyncio.Event()

    def send(text: str) -> None:
        heard.append(json.loads(text))
        if heard[-1]["type"] == "submit_end":
            done.set()

    provider = ScriptedProvider("Hello.")
    async with InteractiveSession(provider=provider, cwd=project, setting_sources=()) as session:
        await session.ready()
        handler = create_ws_handler(session, send)
        await handler.on_message('{"type": "submit", "prompt": "hi"}')
        await done.wait()
        await handler.cleanup()

    assert [each["text"] for each in heard if each["type"] == "text_delta"] == ["Hello."]
