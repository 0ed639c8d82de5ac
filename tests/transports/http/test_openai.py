"""`/v1/…` in front of an agent, used by the official client of that protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.support.lazy import openai
from tests.support.serving import TOKEN, Serving, serving

from robota.core.errors import ProviderError
from robota.core.events import RunInterrupted
from robota.core.messages import TokenUsage
from robota.testing import Fail, ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio
READ = call("Read", file_path="notes.txt")
WRITE = call("Write", file_path="a.txt", content="hello")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / "project"
    path.mkdir()
    (path / "notes.txt").write_text("buy milk")
    return path


@asynccontextmanager
async def client_of(
    provider: ScriptedProvider, project: Path, token: str = TOKEN
) -> AsyncIterator[tuple[openai.AsyncOpenAI, Serving]]:
    async with (
        serving(provider, project) as server,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=token, max_retries=0) as client,
    ):
        yield client, server


async def test_a_chat_completion_is_the_answer_of_an_agent_that_used_its_tools(project: Path) -> None:
    provider = ScriptedProvider([READ], ["You need ", "milk.", TokenUsage(120, 7)])
    async with client_of(provider, project) as (client, server):
        answer = await client.chat.completions.create(
            model="robota",
            messages=[
                {"role": "system", "content": "Answer like a pirate."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Ahoy"},
                {"role": "user", "content": [{"type": "text", "text": "What do I need?"}]},
            ],
            temperature=0.5,
        )
        open_now = list(server.host.sessions)

    assert answer.choices[0].message.content == "You need milk."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 7
    first = provider.requests[0]
    said = [(message.role, message.content) for message in first.messages]
    assert said[0][0] == "system"
    assert said[0][1].endswith("Answer like a pirate.")
    assert said[1:4] == [("user", "Hi"), ("assistant", "Ahoy"), ("user", "What do I need?")]
    assert first.settings.temperature == 0.5
    assert open_now == []


async def test_a_streamed_completion_comes_piece_by_piece_with_its_usage(project: Path) -> None:
    provider = ScriptedProvider(["Look.", READ], ["You need ", "milk.", TokenUsage(120, 7)])
    async with client_of(provider, project) as (client, _):
        stream = await client.chat.completions.create(
            model="robota",
            messages=[{"role": "user", "content": "What?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]

    text = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert "".join(filter(None, text)) == "Look.\n\nYou need milk."
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens >= 127
    assert all(not chunk.choices or not chunk.choices[0].delta.tool_calls for chunk in chunks)


async def test_an_answer_may_have_to_fit_a_schema(project: Path) -> None:
    class Shopping(BaseModel):
        items: list[str]

    async with client_of(ScriptedProvider('{"items": ["milk"]}'), project) as (client, _):
        answer = await client.chat.completions.parse(
            model="robota", messages=[{"role": "user", "content": "List"}], response_format=Shopping
        )

    assert answer.choices[0].message.parsed == Shopping(items=["milk"])


async def test_a_response_goes_on_from_the_one_before(project: Path) -> None:
    provider = ScriptedProvider("Milk.", "Two litres.", "Other.")
    async with client_of(provider, project) as (client, _):
        first = await client.responses.create(model="robota", input="What?", instructions="Be short.")
        second = await client.responses.create(
            model="robota", input="How much?", previous_response_id=first.id
        )
        with pytest.raises(openai.BadRequestError, match="gone on since"):
            await client.responses.create(model="robota", input="x", previous_response_id=first.id)
        with pytest.raises(openai.BadRequestError, match="no response"):
            await client.responses.create(model="robota", input="x", previous_response_id="resp_x_1")

    assert first.output_text == "Milk."
    assert second.output_text == "Two litres."
    assert [message.content for message in provider.requests[1].messages][-3:] == [
        "What?", "Milk.", "How much?",
    ]  # fmt: skip


async def test_a_streamed_response_has_the_events_of_the_protocol(project: Path) -> None:
    provider = ScriptedProvider([READ], ["Mi", "lk."])
    async with (
        client_of(provider, project) as (client, _),
        client.responses.stream(model="robota", input="What?") as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()

    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        *["response.output_text.delta"] * 2,
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert final.output_text == "Milk."


async def test_what_rules_do_not_allow_is_refused_and_named(project: Path) -> None:
    async with client_of(ScriptedProvider([WRITE], "I may not."), project) as (client, _):
        answer = await client.chat.completions.create(
            model="robota", messages=[{"role": "user", "content": "write"}]
        )

    assert not (project / "a.txt").exists()
    assert answer.model_extra is not None
    assert answer.model_extra["robota"]["denied"] == ["Write"]


async def test_mistakes_are_errors_of_the_protocol(project: Path) -> None:
    user: Any = [{"role": "user", "content": "hi"}]
    tool: Any = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    async with client_of(ScriptedProvider("Hi."), project) as (client, server):
        create = client.chat.completions.create
        with pytest.raises(openai.BadRequestError, match="tools of its own") as refused:
            await create(model="robota", messages=user, tools=tool)
        with pytest.raises(openai.BadRequestError, match="one answer"):
            await create(model="robota", messages=user, n=3)
        with pytest.raises(openai.BadRequestError, match="ends with a message of the user"):
            await create(model="robota", messages=[])
        with pytest.raises(openai.UnprocessableEntityError):
            await create(model="robota", messages="hi")  # type: ignore[call-overload]
        wrong = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0)
        with pytest.raises(openai.AuthenticationError):
            await wrong.models.list()
        await wrong.close()
        assert [model.id async for model in client.models.list()] == ["robota"]

    assert refused.value.param == "tools"
    assert refused.value.code == "unsupported_parameter"


async def test_a_failing_service_is_a_failing_request(project: Path) -> None:
    broken = [Fail(ProviderError("The service is on fire."))]
    user: Any = [{"role": "user", "content": "hi"}]
    async with client_of(ScriptedProvider(*[broken] * 20), project) as (client, _):
        with pytest.raises(openai.InternalServerError, match="on fire"):
            await client.chat.completions.create(model="robota", messages=user)
        stream = await client.chat.completions.create(model="robota", messages=user, stream=True)
        with pytest.raises(openai.APIError, match="on fire"):
            _ = [chunk async for chunk in stream]


async def test_a_client_that_leaves_stops_the_turn(project: Path) -> None:
    user: Any = [{"role": "user", "content": "hi"}]
    async with client_of(ScriptedProvider(["Well", Stall()]), project) as (client, server):
        stream = await client.chat.completions.create(model="robota", messages=user, stream=True)
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content == "Well":
                break
        (hosted,) = server.host.sessions.values()
        follower = hosted.session.events.open()
        await stream.close()
        async for event in follower:
            if isinstance(event, RunInterrupted):
                break
