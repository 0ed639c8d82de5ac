from __future__ import annotations

import random
from contextlib import aclosing, suppress
from pathlib import Path

import httpx2
import pytest
from tests.remote.cutting_proxy import CuttingProxy
from tests.sessions.recorded_session import RecordedSession, assert_replays

from robota.core.errors import (
    AuthenticationError,
    ConfigurationError,
    NetworkError,
    ProviderError,
    RateLimitError,
    ValidationError,
)
from robota.core.messages import ReasoningBlock, TokenUsage
from robota.core.provider import ChatRequest, MetadataChunk, StopChunk, TextChunk
from robota.core.retry import RetryingProvider, RetryPolicy
from robota.core.robota import Robota
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.remote import RemoteProvider
from robota.sessions.replay.log_entries import validate_session_replay_log_entries
from robota.testing import Fail, ModelServer, ScriptedProvider, Stall, call
from robota.testing.remote_host import RemoteHost
from robota.testing.reply_conformance import Heard, ask, listen
from robota.tools import tool

pytestmark = pytest.mark.anyio
KEY = "key-of-the-client"


def remote(host: RemoteHost, key: str = KEY, **options: float) -> RemoteProvider:
    return RemoteProvider(host.url, key, "scripted", "m", **options)


async def test_an_agent_works_with_a_model_on_another_host() -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    model = ScriptedProvider([call("add", a=1, b=2)], ["It is ", "3."])
    async with RemoteHost(model, api_key=KEY) as host, remote(host) as provider:
        result = await Robota(provider, tools=[add]).run("What is 1 + 2?")
    assert (result.text, result.error) == ("It is 3.", None)
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "tool"]
    assert [asked.model for asked in host.requests] == ["m", "m"]


async def test_an_answer_can_be_had_in_one_piece() -> None:
    said = [
        ReasoningBlock("hm", "signed"), "It is ", "3.", call("add", a=1), TokenUsage(7, 2),
        MetadataChunk({"model": "big"}), StopChunk("tool_use"),
    ]  # fmt: skip
    async with RemoteHost(ScriptedProvider(said), api_key=KEY) as host, remote(host) as provider:
        message = await provider.chat(ask())
    assert (message.content, message.tool_calls) == ("It is 3.", (call("add", a=1),))
    assert message.reasoning == (ReasoningBlock("hm", "signed"),)
    assert message.metadata == {
        "model": "big", "inputTokens": 7, "outputTokens": 2, "stopReason": "tool_use",
    }  # fmt: skip


async def test_a_session_over_a_host_is_recorded_as_if_it_had_the_service_itself(tmp_path: Path) -> None:
    server = ModelServer(["Let me add.", call("add", a=1, b=2)], ["It is ", "3."])
    async with (
        server,
        OpenAICompatibleProvider("vendor-key", f"{server.url}/v1", name="upstream") as upstream,
        RemoteHost(upstream, api_key=KEY) as host,
        RemoteProvider(host.url, KEY, "upstream", "m") as provider,
    ):
        recorded = RecordedSession(tmp_path, provider)
        await recorded.run("What is 1 + 2?")
        await recorded.session.shutdown()
    assert recorded.session.messages[-1].content == "It is 3."
    await assert_replays(recorded)
    entries = recorded.log()
    assert validate_session_replay_log_entries(entries).ok
    natives = [entry for entry in entries if entry["event"] == "provider_native_raw_payload"]
    assert {entry["apiSurface"] for entry in natives} == {"openai-chat-completions"}
    assert "byteLength" in natives[0]["payload"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("", KEY, "p", "m"), "server_url"),
        (("http://x", " ", "p", "m"), "user_api_key"),
        (("http://x", KEY, "", "m"), "name of a provider"),
        (("http://x", KEY, "p", ""), "a model"),
        (("ftp://x", KEY, "p", "m"), "not a web address"),
        (("http://x", "kéy", "p", "m"), "HTTP does not allow"),
    ],
)
def test_what_is_missing_is_said_when_the_provider_is_made(
    given: tuple[str, str, str, str], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        RemoteProvider(*given)


async def test_a_request_without_messages_is_refused_before_anything_is_sent() -> None:
    provider = RemoteProvider("http://127.0.0.1:9", KEY, "p", "m")
    with pytest.raises(ValidationError, match="at least one message"):
        await listen(provider, ChatRequest(model="m", messages=()))


async def test_a_wrong_key_is_refused_and_shown_nowhere() -> None:
    model = ScriptedProvider("Never.")
    async with RemoteHost(model, api_key=KEY) as host, remote(host, "wrong-key-123") as provider:
        with pytest.raises(AuthenticationError, match="check user_api_key") as caught:
            await listen(provider)
        with pytest.raises(AuthenticationError):
            await provider.chat(ask())
    assert caught.value.status == 401
    assert "wrong-key-123" not in str(caught.value)
    assert KEY not in str(caught.value)
    assert (model.requests, host.requests) == ([], [])


async def test_a_host_says_which_providers_it_has() -> None:
    providers = {"small": ScriptedProvider("Small."), "large": ScriptedProvider("Large.")}
    async with RemoteHost(providers, api_key=KEY) as host:
        async with RemoteProvider(host.url, KEY, "large", "m") as large:
            assert (await listen(large)).text == "Large."
        async with RemoteProvider(host.url, KEY, "huge", "m") as unknown:
            with pytest.raises(ConfigurationError, match="no provider 'huge'; it has small, large"):
                await listen(unknown)


async def test_a_key_is_not_taken_to_another_host() -> None:
    asked: list[httpx2.Request] = []

    def move(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(307, headers={"location": "http://elsewhere.example/chat/stream"})

    transport = httpx2.MockTransport(move)
    async with RemoteProvider("http://here.example", KEY, "p", "m", transport=transport) as provider:
        with pytest.raises(ProviderError, match="moved to"):
            await listen(provider)
    assert [request.url.host for request in asked] == ["here.example"]


@pytest.mark.parametrize("begun", [[], ["Half "]], ids=["at once", "in the middle"])
async def test_the_vendors_failure_reaches_the_client_as_it_was(begun: list[str]) -> None:
    failure = RateLimitError(
        "The vendor asks for patience.", provider="vendor", status=429, request_id="r-1", retry_after=7
    )
    model = ScriptedProvider([*begun, Fail(failure)], [*begun, Fail(failure)])
    async with RemoteHost(model, api_key=KEY) as host, remote(host) as provider:
        heard = Heard()
        with pytest.raises(RateLimitError) as caught:
            await listen(provider, heard=heard)
        with pytest.raises(RateLimitError):
            await provider.chat(ask())
    assert heard.text == "".join(begun)
    assert (str(caught.value), vars(caught.value)) == (str(failure), vars(failure))


async def test_retries_happen_where_the_caller_wants_them() -> None:
    busy = ProviderError("Busy.", status=529)
    model = ScriptedProvider([Fail(busy)], "At last.")
    async with RemoteHost(model, api_key=KEY) as host, remote(host) as provider:
        patient = RetryingProvider(provider, policy=RetryPolicy(base_delay=0.0))
        assert (await listen(patient)).text == "At last."


async def test_a_bug_in_the_hosts_provider_is_not_quoted(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedProvider([Fail(RuntimeError("token=sk-12345678"))])
    async with RemoteHost(model, api_key=KEY) as host, remote(host) as provider:
        with pytest.raises(ProviderError, match="RuntimeError") as caught:
            await listen(provider)
    assert "sk-12345678" not in str(caught.value)
    assert "sk-12345678" in caplog.text  # the host's own log


@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
async def test_a_host_shows_signs_of_life_while_a_model_thinks(whole: bool) -> None:
    model = ScriptedProvider([Stall()])
    async with RemoteHost(model, api_key=KEY, sign_of_life=0.01) as host, httpx2.AsyncClient() as client:
        body = {"provider": "scripted", "model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        path, headers = "/chat" if whole else "/chat/stream", {"authorization": f"Bearer {KEY}"}
        async with client.stream("POST", host.url + path, json=body, headers=headers) as response:
            parts = [part async for _, part in _first(response, 3)]
    assert b"".join(parts).strip(b" ").split(b"\n\n")[0] == (b"" if whole else b": alive")


async def _first(response: httpx2.Response, count: int):  # type: ignore[no-untyped-def]
    number = 0
    async with aclosing(response.aiter_raw()) as parts:
        async for part in parts:
            yield number, part
            number += 1
            if number == count:
                return


async def test_a_host_that_says_nothing_at_all_is_given_up() -> None:
    model = ScriptedProvider(["Hi", Stall()])
    async with RemoteHost(model, api_key=KEY) as host, remote(host, timeout=2.0) as provider:
        heard = Heard()
        with pytest.raises(NetworkError, match="stopped answering"):
            await listen(provider, heard=heard)
    assert heard.text == "Hi"
    assert model.open_streams == 0


async def test_a_client_that_leaves_ends_the_call_on_the_host() -> None:
    model = ScriptedProvider(["Hi", Stall()])
    async with RemoteHost(model, api_key=KEY) as host:
        async with remote(host) as provider, aclosing(provider.stream(ask())) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    break
        await host.wait_until_quiet()
        assert model.open_streams == 0


async def test_a_connection_cut_at_any_byte_loses_no_text_and_makes_no_call() -> None:
    made = call("add", "c1", a=1, b=22)
    reply = ["Hi ", "żółw 🐢", made, TokenUsage(7, 2)]
    model = ScriptedProvider(reply, repeat=True)
    rng = random.Random(5)
    async with RemoteHost(model, api_key=KEY) as host, CuttingProxy(host.port) as proxy:
        async with RemoteProvider(proxy.url, KEY, "scripted", "m") as provider:
            await listen(provider)
        size = proxy.passed
        for after in sorted(rng.sample(range(size), 60)):
            proxy.after = after
            async with RemoteProvider(proxy.url, KEY, "scripted", "m") as provider:
                heard = Heard()
                with suppress(NetworkError):
                    await listen(provider, heard=heard)
                    assert (heard.text, heard.calls, heard.stops) == ("Hi żółw 🐢", [made], ["tool_use"])
            assert "Hi żółw 🐢".startswith(heard.text)
            assert heard.calls in ([], [made])
