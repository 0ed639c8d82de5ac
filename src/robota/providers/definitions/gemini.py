"""Gemini: Google's models through the Gemini API."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from robota.core.errors import RobotaError
from robota.core.provider import Provider
from robota.core.provider_definition import (
    CredentialRequirement,
    ModelCatalog,
    ProbeResult,
    ProviderConfig,
    ProviderDefinition,
    SetupHelpLink,
    SetupStep,
)
from robota.providers.definitions.catalog import shipped_catalog
from robota.providers.definitions.configuration import USUAL_OPTIONS, make_provider, read_options, settle
from robota.providers.definitions.lists import base_path, read_gemini
from robota.providers.definitions.service import ModelService

if TYPE_CHECKING:
    from robota.providers.wire.errors import Refusal

TITLE = "Gemini"
OPTIONS = {**USUAL_OPTIONS, "api_version": str}
DEFAULTS = ProviderConfig(
    model="gemini-3-flash-preview",
    api_key="$ENV:GEMINI_API_KEY",
    base_url="https://generativelanguage.googleapis.com",
)
OTHER_VARIABLE = "GOOGLE_API_KEY"
"""Google's own client reads it as well."""


def create(config: ProviderConfig) -> Provider:
    from robota.providers.gemini import GeminiProvider  # noqa: PLC0415 - definitions load no adapter

    settled = settle(config, _defaults(), TITLE, needs_key=True)
    return make_provider(GeminiProvider, settled, read_options(settled, TITLE, OPTIONS))


async def refresh(config: ProviderConfig) -> ModelCatalog:
    return await _service().refresh(config)


async def probe(config: ProviderConfig) -> ProbeResult:
    return await _service().probe(config)


def _defaults() -> ProviderConfig:
    if os.environ.get("GEMINI_API_KEY") or not os.environ.get(OTHER_VARIABLE):
        return DEFAULTS
    return ProviderConfig(model=DEFAULTS.model, api_key=f"$ENV:{OTHER_VARIABLE}", base_url=DEFAULTS.base_url)


def _service() -> ModelService:
    return ModelService(
        title=TITLE,
        defaults=_defaults(),
        list_url=_list_url,
        read=read_gemini,
        sign=_sign,
        needs_key=True,
        catalog=DEFINITION.model_catalog,
        describe=_describe,
    )


def _list_url(base_url: str) -> str:
    path, _ = base_path(base_url)
    last = path.rpartition("/")[2]
    versioned = last[:1] == "v" and last[1:2].isdecimal()
    return f"{path if versioned else path + '/v1beta'}/models?pageSize=1000"


def _sign(key: str) -> Mapping[str, str]:
    return {"x-goog-api-key": key}


def _describe(refusal: Refusal, provider: str, secrets: Sequence[str]) -> RobotaError:
    from robota.providers.gemini.errors import describe_google_refusal  # noqa: PLC0415 - see create

    return describe_google_refusal(refusal, provider, secrets)


DEFINITION = ProviderDefinition(
    type="gemini",
    create=create,
    aliases=("google",),
    display_name=TITLE,
    description="Gemini models, with images, files and Google's own web tools.",
    defaults=DEFAULTS,
    model_catalog=shipped_catalog("gemini"),
    setup_help_links=(
        SetupHelpLink(kind="api-key", url="https://aistudio.google.com/apikey", label="Make an API key"),
        SetupHelpLink(kind="official", url="https://ai.google.dev/gemini-api/docs", label="Documentation"),
    ),
    setup_steps=(
        SetupStep(key="api_key", title="API key", required=True, masked=True),
        SetupStep(key="model", title="Model", default_value=DEFAULTS.model),
    ),
    credential_requirement=CredentialRequirement(("api_key",)),
    refresh=refresh,
    probe=probe,
)
