"""The provider of a server, for robotas elsewhere: `RemoteProvider` against the routes of `robota serve`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from anyio import to_thread
from tests.support.command import robota
from tests.support.serve_process import served
from tests.support.serving import TOKEN, Serving, serving, until

from robota.cli.provider_host import provider_routes
from robota.core.errors import AuthenticationError, ConfigurationError, ProviderError, RateLimitError
from robota.core.messages import TokenUsage
from robota.core.provider import TextChunk
from robota.core.provider_definition import ProviderConfig
from robota.providers.remote import RemoteProvider, define
from robota.testing import Fail, ScriptedProvider, Stall
from robota.testing.model_server import ModelServer
from robota.testing.reply_conformance import Heard, ask, listen

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def hosting(model: ScriptedProvider, project: Path, sign_of_life: float = 10) -> AsyncIterator[Serving]:
    routes = provider_routes({"scripted": model}, secrets=(TOKEN,), sign_of_life=sign_of_life)
    async with serving(ScriptedProvider(), project, routes=routes) as server:
        yield server


def remote(server: Serving, key: str = TOKEN, provider: str = "scripted") -> RemoteProvider:
    return RemoteProvider(server.url, key, provider, "m")


async def test_what_a_model_says_crosses_unchanged_streamed_and_whole(project: Path) -> None:
    model = ScriptedProvider(*[["It is ", "3.", TokenUsage(7, 2)]] * 2)
    async with hosting(model, project) as server, remote(server) as provider:
        heard = await listen(provider)
        whole = await provider.chat(ask())
        document = (await server.client.get("/openapi.json")).json()
    async with serving(ScriptedProvider(), project) as server:
        without = await server.client.get("/chat")

    assert {"200", "401", "413", "429", "502"} <= document["paths"]["/chat/stream"]["post"][
        "responses"
    ].keys()
    assert without.status_code == 404
    assert (heard.text, heard.usage) == ("It is 3.", TokenUsage(7, 2))
    assert whole.content == "It is 3."
    assert len(model.requests) == 2


async def test_whoever_has_the_wrong_token_or_names_nobody_is_told_so(project: Path) -> None:
    model = ScriptedProvider("Never.")
    async with hosting(model, project) as server:
        async with remote(server, "wrong-token-123") as provider:
            with pytest.raises(AuthenticationError):
                await listen(provider)
        async with remote(server, provider="huge") as provider:
            with pytest.raises(ConfigurationError, match="no provider 'huge'; it has scripted"):
                await listen(provider)
        bad = await server.client.post("/chat", content=b'{"provider": 1}')
        foreign = await server.client.post("/chat", json={}, headers={"origin": "http://evil.example"})

    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
    assert foreign.status_code == 403
    assert model.requests == []


@pytest.mark.parametrize("begun", [[], ["Half "]], ids=["at once", "in the middle"])
async def test_a_failure_reaches_the_client_as_it_was_and_without_secrets(
    project: Path, begun: list[str]
) -> None:
    failure = RateLimitError(f"Patience, {TOKEN}.", provider="vendor", status=429, retry_after=7)
    model = ScriptedProvider([*begun, Fail(failure)], [*begun, Fail(failure)], [Fail(RuntimeError("sk-123"))])
    async with hosting(model, project) as server, remote(server) as provider:
        heard = Heard()
        with pytest.raises(RateLimitError) as caught:
            await listen(provider, heard=heard)
        with pytest.raises(RateLimitError):
            await provider.chat(ask())
        with pytest.raises(ProviderError, match="RuntimeError") as bug:
            await provider.chat(ask())

    assert heard.text == "".join(begun)
    assert caught.value.retry_after == 7
    assert TOKEN not in str(caught.value)
    assert "sk-123" not in str(bug.value)


async def test_a_client_that_leaves_ends_the_call_which_showed_signs_of_life(project: Path) -> None:
    model = ScriptedProvider(["Hi", Stall()], [Stall()])
    body = {"provider": "scripted", "model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    async with hosting(model, project, sign_of_life=0.01) as server:
        async with remote(server) as provider, aclosing(provider.stream(ask())) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    break
        await until(lambda: model.open_streams == 0)
        async with server.client.stream("POST", "/chat/stream", json=body) as reply:
            first = await anext(reply.aiter_text())
        await until(lambda: model.open_streams == 0)

    assert first.startswith(": alive\n\n")


async def test_a_probe_knows_the_providers_of_the_host(project: Path) -> None:
    probe = define().probe
    assert probe is not None
    async with hosting(ScriptedProvider(), project) as server:
        found = [
            await probe(
                ProviderConfig(model="m", api_key=key, base_url=server.url, options={"provider": name})
            )
            for key, name in ((TOKEN, "scripted"), (TOKEN, "huge"), ("wrong-token-123", "scripted"))
        ]

    assert [each.ok for each in found] == [True, False, False]
    assert "it has scripted" in found[1].message


async def test_a_session_here_asks_the_provider_of_a_server_there(project: Path, tmp_path: Path) -> None:
    async with (
        ModelServer("From afar.", repeat=True, strict=False) as model,
        served(project, model, "--provider-host") as server,
    ):
        (name,) = (await server.client.get("/chat")).json()["providers"]
        profile = {
            "type": "remote",
            "model": "scripted",
            "apiKey": "$ENV:HOST_TOKEN",
            "baseURL": server.url,
            "options": {"provider": name},
        }
        home = tmp_path / "robota"
        home.mkdir()
        (home / "settings.json").write_text(json.dumps({"providers": {"office": profile}}))
        variables = {"ROBOTA_HOME": str(home), "HOST_TOKEN": server.token}
        there = await to_thread.run_sync(
            lambda: robota("-p", "hi", "--provider", "office", cwd=project, **variables)
        )

    assert (there.stdout.strip(), there.returncode) == ("From afar.", 0), there.stderr
