"""Any address that speaks Chat Completions: gateways, hosted services, servers at home."""

from __future__ import annotations

from robota.core.errors import ConfigurationError
from robota.core.provider import Provider
from robota.core.provider_definition import (
    CredentialRequirement,
    ProviderConfig,
    ProviderDefinition,
    SetupStep,
)
from robota.providers.definitions.configuration import USUAL_OPTIONS, make_provider, read_options, settle
from robota.providers.definitions.lists import openai_list_url, read_openai
from robota.providers.definitions.service import ModelService

TITLE = "The OpenAI-compatible service"
OPTIONS = {**USUAL_OPTIONS, "reasoning_field": str, "max_tokens_field": str}
DEFAULTS = ProviderConfig()


def create(config: ProviderConfig) -> Provider:
    from robota.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415 - see others

    settled = settle(config, DEFAULTS, TITLE)
    if not settled.base_url:
        raise ConfigurationError(f"{TITLE} needs a base URL, such as http://localhost:8080/v1.")
    return make_provider(OpenAICompatibleProvider, settled, read_options(settled, TITLE, OPTIONS))


SERVICE = ModelService(title=TITLE, defaults=DEFAULTS, list_url=openai_list_url, read=read_openai)
DEFINITION = ProviderDefinition(
    type="openai-compatible",
    create=create,
    display_name="OpenAI-compatible",
    description="Any address that speaks Chat Completions; function tools only.",
    defaults=DEFAULTS,
    setup_steps=(
        SetupStep(key="base_url", title="Base URL, usually with /v1 at the end", required=True),
        SetupStep(key="api_key", title="API key, if the service wants one", masked=True),
        SetupStep(key="model", title="Model", required=True),
    ),
    credential_requirement=CredentialRequirement(("base_url",)),
    refresh=SERVICE.refresh,
    probe=SERVICE.probe,
)
