"""OpenAI: the Responses API at its own address, Chat Completions elsewhere."""

from __future__ import annotations

from robota.core.errors import ConfigurationError
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
from robota.providers.definitions.lists import openai_list_url, read_openai_chat
from robota.providers.definitions.service import ModelService

TITLE = "OpenAI"
OPTIONS = {**USUAL_OPTIONS, "api": str, "strict_tools": bool, "reasoning_summary": str}
DEFAULTS = ProviderConfig(api_key="$ENV:OPENAI_API_KEY", base_url="https://api.openai.com/v1")


def create(config: ProviderConfig) -> Provider:
    from robota.providers.openai import OpenAIProvider  # noqa: PLC0415 - definitions load no adapter

    settled = settle(config, DEFAULTS, TITLE, needs_key=True)
    options = read_options(settled, TITLE, OPTIONS)
    if options.get("api", "chat") not in ("responses", "chat"):
        raise ConfigurationError(f"The option 'api' of {TITLE} must be 'responses' or 'chat'.")
    return make_provider(OpenAIProvider, settled, options)


SERVICE = ModelService(
    title=TITLE,
    defaults=DEFAULTS,
    list_url=openai_list_url,
    read=read_openai_chat,
    needs_key=True,
    catalog=shipped_catalog("openai"),
)
DEFINITION = ProviderDefinition(
    type="openai",
    create=create,
    display_name=TITLE,
    description="GPT models through the Responses API; there is no default model.",
    defaults=DEFAULTS,
    model_catalog=SERVICE.catalog,
    setup_help_links=(
        SetupHelpLink(kind="api-key", url="https://platform.openai.com/api-keys", label="Make an API key"),
        SetupHelpLink(kind="official", url="https://developers.openai.com/api/docs", label="Documentation"),
    ),
    setup_steps=(
        SetupStep(key="api_key", title="API key", required=True, masked=True),
        SetupStep(key="model", title="Model", required=True),
    ),
    credential_requirement=CredentialRequirement(("api_key",)),
    refresh=SERVICE.refresh,
    probe=SERVICE.probe,
)
