from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.office import ADDING, Receiver, add, open_session

from robota.core.errors import ConfigurationError, ProviderError
from robota.core.events import TextDelta
from robota.core.robota import Robota
from robota.plugins import WebhookPlugin
from robota.testing import Fail, ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio
HERE = ("127.0.0.1",)
SECRET = "sk-ant-api03-" + "aB3dE6gH9jK2" * 7


def names(server: Receiver) -> list[str]:
    return [body["event"] for body in server.bodies]


async def test_a_run_is_told_by_signed_posts(tmp_path: Path) -> None:
    async with Receiver() as server:
        webhook = WebhookPlugin(url=f"{server.url}/hook", secret="s3cret", allowed_hosts=HERE)
        async with open_session(tmp_path, ADDING, "Three.", plugins=[webhook]) as session:
            await session.submit("Add.")
    assert sorted(names(server)) == ["conversation.complete", "execution.complete", "tool.executed"]
    for request in server.requests:
        digest = hmac.new(b"s3cret", request.raw, hashlib.sha256).hexdigest()
        assert request.headers["x-webhook-signature"] == f"sha256={digest}"
        assert request.headers["user-agent"] == "robota-webhook/1.0.0"
        assert request.body["sessionId"] == session.session_id
    told = next(body for body in server.bodies if body["event"] == "tool.executed")
    assert (told["data"]["tool"], told["data"]["outcome"]) == ("add", "success")
    assert [each["ownerType"] for each in told["ownerPath"]] == ["agent", "execution", "tool"]
    assert "content" not in told["data"]
    assert webhook.get_stats()["delivered"] == 3


async def test_errors_aborts_and_subagents_are_told(tmp_path: Path) -> None:
    async with Receiver() as server:
        webhook = WebhookPlugin(url=server.url, allowed_hosts=HERE, events=["*"])
        replies = [
            [call("Agent", prompt="look", description="look")],
            "I saw it.",
            [call("explode")],
            "Done.",
        ]
        async with open_session(tmp_path, *replies, plugins=[webhook]) as session:
            await session.submit("go")
        agent = Robota(
            ScriptedProvider([Fail(ProviderError("no"))], ["Hel", Stall()]),
            plugins=[WebhookPlugin(url=server.url, allowed_hosts=HERE)],
        )
        async with agent:
            await agent.run("a")
            agent.events.on(TextDelta, lambda _: agent.abort())
            await agent.run("b")
    told = names(server)
    assert {"user.input", "task.started", "task.completed", "tool.execute_error", "error.occurred"} <= set(
        told
    )
    ends = [body for body in server.bodies if body["event"] == "conversation.complete"]
    assert [each["data"]["interrupted"] for each in ends].count(True) == 1
    error = next(body for body in server.bodies if "ProviderError: no" in str(body["data"]))
    assert error["event"] == "error.occurred"


async def test_secrets_are_sent_nowhere_even_with_content(tmp_path: Path) -> None:
    async with Receiver() as server:
        webhook = WebhookPlugin(url=server.url, allowed_hosts=HERE, events=["*"], include_content=True)
        async with open_session(tmp_path, "Noted.", plugins=[webhook]) as session:
            await session.submit(f"My key is {SECRET}.")
    assert any(body["data"].get("text") == "Noted." for body in server.bodies)
    assert all(SECRET.encode() not in request.raw for request in server.requests)


async def test_batches_are_sent_when_they_are_full_and_when_the_session_ends(tmp_path: Path) -> None:
    async with Receiver() as server:
        webhook = WebhookPlugin(url=server.url, allowed_hosts=HERE, batching=True, batch_size=2)
        async with open_session(tmp_path, ADDING, "Three.", plugins=[webhook]) as session:
            await session.submit("Add.")
    sizes = sorted(len(body["events"]) for body in server.bodies)
    assert sizes == [1, 2]


async def test_an_incomplete_batch_is_sent_after_its_interval() -> None:
    async with Receiver() as server:
        webhook = WebhookPlugin(url=server.url, allowed_hosts=HERE, batching=True, batch_interval=0.001)
        agent = Robota(ScriptedProvider("Hi."), plugins=[webhook])
        await agent.run("go")
        await server.wait_for(1)
        await agent.aclose()
    assert sum(len(body["events"]) for body in server.bodies) == 2


async def test_a_weak_server_is_asked_again_and_a_dead_one_is_named_once(tmp_path: Path) -> None:
    notices: list[str] = []
    options: Any = {"allowed_hosts": HERE, "retry_delay": 0.001, "max_retries": 1, "max_concurrency": 1}
    async with Receiver(503, 200, 500, 500, 500, 500) as server:
        webhook = WebhookPlugin(url=server.url, **options)
        async with open_session(tmp_path, ADDING, "Three.", plugins=[webhook]) as session:
            session.on("notice", lambda text: notices.append(str(text)))
            assert (await session.submit("Add.")).text == "Three."
            await webhook.flush()
    stats = webhook.get_stats()
    assert (stats["delivered"], stats["failed"], stats["repeated"]) == (1, 2, 1)
    assert len([each for each in notices if "'webhook' could not deliver" in each]) == 1


async def test_three_posts_at_a_time_and_the_run_waits_for_none_of_them() -> None:
    async with Receiver(hold=True) as server:
        webhook = WebhookPlugin(url=server.url, allowed_hosts=HERE)
        agent = Robota(ScriptedProvider(ADDING, ADDING, ADDING, "Three."), tools=[add], plugins=[webhook])
        assert (await agent.run("go")).text == "Three."
        await server.wait_for(3)
        assert webhook.get_stats()["waiting"] == 2
        server.open.set()
        await agent.aclose()
    assert (server.most_at_once, len(server.requests)) == (3, 5)


async def test_an_address_inside_is_refused_unless_it_is_named() -> None:
    async with Receiver() as server:
        webhook = WebhookPlugin(url=server.url)
        async with Robota(ScriptedProvider("Hi."), plugins=[webhook]) as agent:
            await agent.run("go")
    assert server.requests == []
    assert "this machine" in webhook.get_stats()["trouble"]


async def test_endpoints_hear_what_each_of_them_wants_and_events_of_ones_own() -> None:
    async with Receiver() as first, Receiver() as second:
        webhook = WebhookPlugin(
            endpoints=[
                {"url": first.url, "events": ["execution.start"]},
                {"url": second.url, "events": ["*"], "headers": {"X-Team": "a"}},
            ],
            allowed_hosts=HERE,
        )
        async with Robota(ScriptedProvider("Hi."), plugins=[webhook]) as agent:
            await agent.run("go")
            webhook.send("deploy.done", {"version": 3})
    assert names(first) == ["execution.start"]
    assert "deploy.done" in names(second)
    assert second.requests[0].headers["x-team"] == "a"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs the option url"),
        ({"url": "ftp://x"}, "posted"),
        ({"url": "https://x.example", "events": ["tool.execute"]}, "knows no event 'tool.execute'"),
        ({"url": "https://x.example", "events": "*"}, "list of strings"),
        ({"url": "https://x.example", "timeout": 0}, "timeout"),
        ({"url": "https://x.example", "max_concurrency": 0}, "max_concurrency"),
        ({"endpoints": [{"adress": "x"}]}, "endpoint"),
        ({"url": "https://x.example", "headers": {"X-A": "a\nb"}}, "X-A"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        WebhookPlugin(**options)
