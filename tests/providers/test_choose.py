"""`choose_provider`: the provider that the command would take, for programs."""

from __future__ import annotations

import pytest

from robota import Robota, choose_provider
from robota.core import ConfigurationError
from robota.providers.choice import ADDRESSES, KEYS
from robota.testing import ModelServer

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, *ADDRESSES.values(), "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")  # no local models


async def test_a_key_of_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-1")
    chosen = await choose_provider()

    assert (chosen.provider.name, chosen.secrets) == ("anthropic", ("sk-ant-1",))
    assert chosen.model.startswith("claude-")
    assert "because ANTHROPIC_API_KEY is set" in (chosen.note or "")


async def test_an_address_is_enough_where_one_model_is_served() -> None:
    async with ModelServer("Hello.", models=("only",)) as server:
        chosen = await choose_provider(base_url=f"{server.url}/v1")
        result = await Robota(chosen.provider, model=chosen.model).run("Hi")

    assert (result.text, chosen.model) == ("Hello.", "only")


async def test_nothing_to_go_by_is_told_in_the_words_of_a_program() -> None:
    with pytest.raises(ConfigurationError) as caught:
        await choose_provider()

    assert "There is no model to ask. Set a key" in str(caught.value)
    assert "provider=… or base_url=…" in str(caught.value)


async def test_a_wrong_name_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="did you mean anthropic"):
        await choose_provider(provider="antropic")
