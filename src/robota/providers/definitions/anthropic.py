"""Anthropic: Claude through the Messages API."""

from __future__ import annotations

from robota.core.provider import Provider
from robota.core.provider_definition import (
    CredentialRequirement,
    ProviderConfig,
    ProviderDefinition,
    SetupHelpLink,
    SetupStep,
)
from robota.providers.definitions.catalog import shipped_catalog
from robota.providers.definitions.configuration import USUAL_OPTIONS, make_provider, read_options, settle
from robota.providers.definitions.lists import base_path, read_anthropic
from robota.providers.definitions.service import ModelService

TITLE = "Anthropic"
OPTIONS = {**USUAL_OPTIONS, "prompt_caching": bool}
DEFAULTS = ProviderConfig(
    model="claude-sonnet-4-6", api_key="$ENV:ANTHROPIC_API_KEY", base_url="https://api.anthropic.com"
)


def create(config: ProviderConfig) -> Provider:
    from robota.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - definitions load no adapter

    settled = settle(config, DEFAULTS, TITLE, needs_key=True)
    return make_provider(AnthropicProvider, settled, read_options(settled, TITLE, OPTIONS))


def _list_url(base_url: str) -> str:
    path, _ = base_path(base_url, "/messages", "/v1")
    return f"{path}/v1/models?limit=1000"


SERVICE = ModelService(
    title=TITLE,
    defaults=DEFAULTS,
    list_url=_list_url,
    read=read_anthropic,
    headers={"anthropic-version": "2026-10-21"},
    needs_key=True,
    catalog=shipped_catalog("anthropic"),
)
DEFINITION = ProviderDefinition(
    type="anthropic",
    create=create,
    aliases=("claude",),
    display_name=TITLE,
    description="Claude models, with thinking, web search and prompt caching.",
    defaults=DEFAULTS,
    model_catalog=SERVICE.catalog,
    setup_help_links=(
        SetupHelpLink(
            kind="api-key", url="https://platform.claude.com/settings/keys", label="Make an API key"
        ),
        SetupHelpLink(kind="official", url="https://platform.claude.com/docs", label="Documentation"),
    ),
    setup_steps=(
        SetupStep(key="api_key", title="API key", required=True, masked=True),
        SetupStep(key="model", title="Model", default_value=DEFAULTS.model),
    ),
    credential_requirement=CredentialRequirement(("api_key",)),
    refresh=SERVICE.refresh,
    probe=SERVICE.probe,
)
