"""A key that is missing, and one that would be read by everybody on its way: told before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from robota import Robota
from robota.core.errors import AuthenticationError, ConfigurationError
from robota.providers.anthropic.provider import AnthropicProvider
from robota.providers.deepseek import DeepSeekProvider
from robota.providers.definitions import all_definitions
from robota.providers.gemini.provider import GeminiProvider
from robota.providers.openai import OpenAIProvider
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.wire.channel import KEY_VARIABLES
from robota.testing import ModelServer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("key", [None, "", "   "])
@pytest.mark.parametrize(
    ("kind", "variable"),
    [
        (AnthropicProvider, "ANTHROPIC_API_KEY"),
        (OpenAIProvider, "OPENAI_API_KEY"),
        (GeminiProvider, "GEMINI_API_KEY"),
        (DeepSeekProvider, "DEEPSEEK_API_KEY"),
    ],
)
async def test_a_missing_key_is_told_before_anything_is_sent(
    kind: Any, variable: str, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "  ")
    provider = kind(api_key=key)

    result = await Robota(provider, model="some-model", context_window=10_000).run("hello")

    assert isinstance(result.error, AuthenticationError)
    assert f"set {variable}" in str(result.error)
    assert "nothing was sent" in str(result.error)
    with pytest.raises(AuthenticationError):
        result.raise_for_error()
    await provider.aclose()


def test_the_variables_are_those_of_the_definitions() -> None:
    defaults = [one.defaults for one in all_definitions(lambda _: None)]
    known = {f"$ENV:{variable}" for variable in KEY_VARIABLES.values()}
    assert known <= {each.api_key for each in defaults if each.api_key} | {"$ENV:GEMINI_API_KEY"}


@pytest.mark.parametrize(
    "address", ["http://example.com/v1", "http://8.8.8.8:8000/v1", "http://[2606:4700::1]/v1"]
)
def test_a_key_does_not_go_to_a_public_address_without_encryption(address: str) -> None:
    with pytest.raises(ConfigurationError, match=r"without encryption: use https://.*ROBOTA_INSECURE_HOSTS"):
        OpenAICompatibleProvider("a-key", address, "m")
    with pytest.raises(ConfigurationError, match="without encryption"):
        OpenAICompatibleProvider(None, address, "m", headers={"Authorization": "Bearer x"})


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:8080/v1",
        "http://127.0.0.1/v1",
        "http://[::1]:8080/v1",
        "http://192.168.1.7:1234/v1",
        "http://10.0.0.3/v1",
        "http://ollama:11434/v1",
        "http://box.local/v1",
        "https://example.com/v1",
    ],
)
def test_a_key_may_go_to_a_near_or_an_encrypted_address(address: str) -> None:
    OpenAICompatibleProvider("a-key", address, "m")


def test_without_a_key_plain_http_is_nobodys_secret() -> None:
    OpenAICompatibleProvider(None, "http://example.com/v1", "m")


def test_a_host_that_was_named_may_get_a_key_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBOTA_INSECURE_HOSTS", "other.example, EXAMPLE.com")
    OpenAICompatibleProvider("a-key", "http://example.com/v1", "m")


async def test_a_local_server_needs_no_key() -> None:
    async with ModelServer("Hello.") as server:
        provider = OpenAICompatibleProvider(None, f"{server.url}/v1", "m")
        assert (await Robota(provider, context_window=10_000).run("hi")).text == "Hello."
        await provider.aclose()
