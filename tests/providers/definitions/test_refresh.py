from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.providers.loopback import Loopback, Reply

from robota.core.provider_definition import ModelCatalog, ModelCatalogEntry, ProviderConfig
from robota.providers.definitions import our_definitions

pytestmark = pytest.mark.anyio

DEFINITIONS = {definition.type: definition for definition in our_definitions()}


async def refreshed(type: str, body: Any) -> ModelCatalog:
    refresh = DEFINITIONS[type].refresh
    assert refresh is not None
    reply = Reply([json.dumps(body).encode()], 200, {"content-type": "application/json"})
    async with Loopback(reply) as server:
        return await refresh(ProviderConfig(api_key="key-for-the-test", base_url=server.url))


async def test_a_refreshed_catalogue_is_live_and_says_when_and_where() -> None:
    catalog = await refreshed("openai-compatible", {"data": [{"id": "m", "max_model_len": 4096}]})

    assert catalog.status == "live"
    assert catalog.last_verified_at == datetime.now(UTC).date().isoformat()
    assert catalog.source_url is not None
    assert catalog.source_url.endswith("/v1/models")
    assert catalog.entries == (ModelCatalogEntry(id="m", context_window=4096),)


async def test_anthropic_tells_lifecycle_limits_and_abilities() -> None:
    able = {"image_input": {"supported": True}, "thinking": {"supported": True}, "batch": {"supported": True}}
    model = {
        "id": "claude-new",
        "display_name": "Claude New",
        "lifecycle": "active",
        "max_input_tokens": 2_000_000,
        "max_tokens": 200_000,
        "capabilities": able,
    }
    old = {"id": "claude-old", "display_name": "Claude Old", "lifecycle": "retired"}

    catalog = await refreshed("anthropic", {"data": [model, old]})

    assert catalog.entries == (
        ModelCatalogEntry(
            id="claude-new",
            display_name="Claude New",
            capabilities=("tools", "vision", "reasoning", "streaming"),
            context_window=2_000_000,
            max_output=200_000,
        ),
        ModelCatalogEntry(id="claude-old", display_name="Claude Old", lifecycle="unavailable"),
    )


async def test_openai_lists_ids_and_the_rest_is_known_here() -> None:
    listed = {"data": [{"id": "gpt-4o"}, {"id": "text-embedding-3-large"}, {"id": "gpt-99"}, {"odd": 1}]}

    catalog = await refreshed("openai", listed)

    assert [entry.id for entry in catalog.entries] == ["gpt-4o", "gpt-99"]
    assert (catalog.entries[0].display_name, catalog.entries[0].lifecycle) == ("GPT-4o", "deprecated")
    assert catalog.entries[1] == ModelCatalogEntry(id="gpt-99")


async def test_gemini_lists_what_can_generate() -> None:
    model = {
        "name": "models/gemini-next-preview",
        "displayName": "Gemini Next",
        "description": "The next one.",
        "inputTokenLimit": 1_000_000,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
    other = {"name": "models/embedding", "supportedGenerationMethods": ["embedContent"]}

    catalog = await refreshed("gemini", {"models": [model, other]})

    assert catalog.entries == (
        ModelCatalogEntry(
            id="gemini-next-preview",
            display_name="Gemini Next",
            description="The next one.",
            lifecycle="preview",
            context_window=1_000_000,
            max_output=65_536,
        ),
    )


async def test_ollama_lists_what_is_pulled() -> None:
    pulled = {"name": "qwen3:8b", "model": "qwen3:8b", "details": {"parameter_size": "8.2B"}}

    catalog = await refreshed("ollama", {"models": [pulled]})

    assert catalog.entries == (ModelCatalogEntry(id="qwen3:8b", description="8.2B"),)


async def test_openrouter_tells_what_a_model_takes() -> None:
    model = {
        "id": "vendor/model",
        "name": "Vendor: Model",
        "context_length": 128_000,
        "architecture": {"input_modalities": ["text", "image"]},
        "supported_parameters": ["tools", "reasoning", "temperature"],
        "top_provider": {"max_completion_tokens": 8192},
    }

    catalog = await refreshed("openrouter", {"data": [model]})

    assert catalog.entries == (
        ModelCatalogEntry(
            id="vendor/model",
            display_name="Vendor: Model",
            capabilities=("streaming", "tools", "reasoning", "vision"),
            context_window=128_000,
            max_output=8192,
        ),
    )


async def test_the_scripted_model_needs_nobody() -> None:
    definition = DEFINITIONS["scripted"]
    assert definition.refresh is not None
    assert definition.probe is not None
    assert (await definition.refresh(ProviderConfig())).status == "live"
    assert (await definition.probe(ProviderConfig())).ok
