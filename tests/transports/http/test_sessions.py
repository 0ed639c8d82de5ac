"""Sessions over HTTP: made, listed, used, followed, ended."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.serving import Serving, SseEvent, ended, numbers, parse_events, serving, until

from robota.testing import ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio
WRITE = call("Write", file_path="a.txt", content="hello")


async def test_a_prompt_is_accepted_at_once_and_its_events_come_through_the_stream(project: Path) -> None:
    async with serving(ScriptedProvider(["Hel", "lo."]), project) as server:
        id = await server.new(name="first")

        accepted = await server.submit(id, "hi")
        events = await server.read(id, ended)

    assert accepted.status_code == 202
    assert accepted.json()["submitId"]
    assert [event.data["text"] for event in events if event.name == "text_delta"] == ["Hel", "lo."]
    assert numbers(events) == list(range(1, len(numbers(events)) + 1))
    assert all(event.data["seq"] == event.id for event in events if event.id)


async def test_a_client_with_a_cursor_gets_exactly_what_it_missed(project: Path) -> None:
    async with serving(ScriptedProvider(["a", "b", "c"], "second"), project) as server:
        id = await server.new()
        await server.submit(id, "one")
        whole = await server.read(id, ended)

        for seen in range(len(numbers(whole))):
            rest = await server.read(id, ended, after=seen)
            assert numbers(rest) == numbers(whole)[seen:]
        again = await server.read(id, ended, **{"last-event-id": "3"})

    assert numbers(again) == numbers(whole)[3:]


async def test_two_clients_see_one_question_and_either_answers_it(project: Path) -> None:
    async with serving(ScriptedProvider([WRITE], "Done."), project) as server:
        id = await server.new()
        readers = [asyncio.create_task(server.read(id, ended)) for _ in range(2)]
        await server.submit(id, "write it")
        asked = await server.read(id, lambda event: event.name == "question_asked")
        question = asked[-1].data["question"]
        state = (await server.client.get(f"/sessions/{id}")).json()

        path = f"/sessions/{id}/questions/{question['id']}"
        headers = {"robota-client": "phone"}
        refused = await server.client.post(path, json={"answer": {"nonsense": 1}})
        first = await server.client.post(path, json={"answer": {"allow": True}}, headers=headers)
        second = await server.client.post(path, json={"answer": False})
        one, two = await asyncio.gather(*readers)

    assert (refused.status_code, first.status_code, second.status_code) == (422, 200, 409)
    assert second.json() == {"accepted": False}
    assert state["state"] == "asks"
    assert [each["id"] for each in state["questions"]] == [question["id"]]
    assert one == two
    closed = [event for event in one if event.name == "question_closed"]
    assert [(event.data["by"], event.data["reason"]) for event in closed] == [("phone", "answered")]
    assert (project / "a.txt").read_text() == "hello"


async def stream(server: Serving, id: str, prompt: str) -> list[SseEvent]:
    """A prompt, and all that its sender is told."""
    async with server.client.stream("POST", f"/sessions/{id}/submit", json={"prompt": prompt}) as reply:
        return [event async for event in parse_events(reply.aiter_lines())]


async def test_who_sent_a_prompt_is_told_nothing_of_the_one_that_waited_behind_it(project: Path) -> None:
    async with serving(ScriptedProvider([WRITE], "One.", "Two."), project) as server:
        id = await server.new()
        session = server.host.sessions[id].session
        first = asyncio.create_task(stream(server, id, "first"))
        asked = await server.read(id, lambda event: event.name == "question_asked")
        second = asyncio.create_task(stream(server, id, "second"))
        await until(lambda: session.pending_prompt)
        path = f"/sessions/{id}/questions/{asked[-1].data['question']['id']}"
        await server.client.post(path, json={"answer": True})
        told = [
            [event for event in each if event.name != "text_delta"]
            for each in await asyncio.gather(first, second)
        ]

    tools = ["tool_start", "tool_end"]
    assert [event.name for event in told[0]] == ["thinking", *tools, "complete", "thinking"]
    assert [event.name for event in told[1]] == ["thinking", "complete", "thinking"]
    assert [each[-1].data for each in told] == [{"isThinking": False}] * 2


async def test_a_third_prompt_is_refused_while_one_waits(project: Path) -> None:
    async with serving(ScriptedProvider(["a", Stall()], "next", "last"), project) as server:
        id = await server.new()
        statuses = [(await server.submit(id, text)).status_code for text in ("one", "two", "three")]
        shown = (await server.client.get(f"/sessions/{id}/pending")).json()
        await server.client.post(f"/sessions/{id}/cancel-queue")
        after = (await server.submit(id, "four")).status_code

        await server.client.post(f"/sessions/{id}/abort")
        events = await server.read(id, ended)

    assert statuses == [202, 202, 409]
    assert shown == {"pending": "two"}
    assert after == 202
    assert events[-1].name == "interrupted"


async def test_a_stored_session_is_read_without_opening_it_and_opened_by_a_prompt(project: Path) -> None:
    provider = ScriptedProvider("first answer", "second answer")
    async with serving(provider, project) as server:
        id = await server.new()
        await server.submit(id, "remember me")
        before = await server.read(id, ended)

    async with serving(provider, project) as server:
        shown = (await server.client.get(f"/sessions/{id}")).json()
        past = await server.read(id, lambda event: event.name == "end")
        listed = (await server.client.get("/sessions", params={"query": "remember"})).json()
        assert not server.host.sessions
        await server.submit(id, "go on")
        after = await server.read(id, ended, after=numbers(before)[-1])
        messages = (await server.client.get(f"/sessions/{id}/messages")).json()["messages"]

    assert shown["state"] == "stored"
    assert shown["lastEvent"] == numbers(past)[-1]
    assert past[-1].name == "end"
    assert [(event.id, event.name) for event in before] == [(event.id, event.name) for event in past][
        : len(before)
    ]
    assert [each["id"] for each in listed["sessions"]] == [id]
    assert numbers(after)[0] > numbers(before)[-1]
    assert [each["content"] for each in messages if each["role"] == "assistant"] == [
        "first answer",
        "second answer",
    ]


async def test_a_session_is_renamed_forked_exported_and_deleted(project: Path) -> None:
    async with serving(ScriptedProvider("an answer", "another"), project) as server:
        client = server.client
        id = await server.new()
        await server.submit(id, "a prompt")
        await server.read(id, ended)

        renamed = await client.patch(f"/sessions/{id}", json={"name": "notes", "permissionMode": "plan"})
        fork = await client.post("/sessions", json={"resume": id, "fork": True})
        middle = await client.post("/sessions", json={"resume": id, "fork": True, "at": 1})
        same = await client.post("/sessions", json={"resume": id})
        text = await client.get(f"/sessions/{id}/export")
        gone = await client.delete(f"/sessions/{id}")
        missing = await client.get(f"/sessions/{id}")
        forked = (await client.get(f"/sessions/{fork.json()['id']}/messages")).json()["messages"]

    assert (renamed.json()["name"], renamed.json()["permissionMode"]) == ("notes", "plan")
    assert (fork.status_code, middle.status_code, same.status_code) == (201, 201, 200)
    assert len({id, fork.json()["id"], middle.json()["id"]}) == 3
    assert [each["role"] for each in forked] == ["user", "assistant"]
    assert "an answer" in text.text
    assert (gone.status_code, missing.status_code) == (204, 404)


async def test_a_session_is_forked_at_a_moment_between_its_events(project: Path) -> None:
    async with serving(ScriptedProvider("first answer", "second answer"), project) as server:
        id = await server.new()
        await server.submit(id, "first prompt")
        first = await server.read(id, ended)
        await server.submit(id, "second prompt")
        await server.read(id, ended, after=numbers(first)[-1])

        body = {"resume": id, "fork": True, "event": numbers(first)[-1]}
        fork = (await server.client.post("/sessions", json=body)).json()
        said = (await server.client.get(f"/sessions/{fork['id']}/messages")).json()["messages"]
        context = (await server.client.get(f"/sessions/{id}/context")).json()

    assert [each["content"] for each in said] == ["first prompt", "first answer"]
    assert "Conversation" in [part["name"] for part in context["parts"]]


async def test_the_first_session_stands_at_the_root(project: Path) -> None:
    async with serving(ScriptedProvider(["A ", "stream."]), project) as server:
        id = await server.new()
        reply = await server.client.post("/submit", json={"prompt": "hi"})
        names = [line[7:] for line in reply.text.splitlines() if line.startswith("event: ")]
        root = (await server.client.get("/messages")).json()
        own = (await server.client.get(f"/sessions/{id}/messages")).json()

    assert reply.headers["content-type"].startswith("text/event-stream")
    assert names == ["thinking", "text_delta", "text_delta", "complete", "thinking"]
    assert root == own
    assert len(own["messages"]) == 2
