"""Qwen on DashScope: an address and a key for each region, and hosted web tools on demand."""

from __future__ import annotations

from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.core.messages import Json
from robota.core.provider import NativeWebTools, Provider
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
from robota.providers.definitions.configuration import (
    USUAL_OPTIONS,
    is_same_host,
    make_provider,
    read_options,
    settle,
)
from robota.providers.definitions.lists import openai_list_url, read_openai
from robota.providers.definitions.service import ModelService

TITLE = "Qwen"
OPTIONS = {**USUAL_OPTIONS, "region": str, "built_in_web_tools": dict}
DEFAULTS = ProviderConfig(
    model="qwen-plus",
    api_key="$ENV:DASHSCOPE_API_KEY",
    base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
)
_WEB_TOOLS = {"webSearch": "web_search", "webFetch": "web_fetch"}


def create(config: ProviderConfig) -> Provider:
    from robota.providers.families.qwen import QwenProvider  # noqa: PLC0415 - definitions load no adapter

    settled = settle(config, _at_home(config), TITLE, needs_key=True)
    options = read_options(settled, TITLE, OPTIONS)
    options.pop("region", None)  # it is in the address now
    if "built_in_web_tools" in options:
        options["built_in_web_tools"] = _read_web_tools(options["built_in_web_tools"])
    return make_provider(QwenProvider, settled, options)


async def refresh(config: ProviderConfig) -> ModelCatalog:
    return await _service(config).refresh(config)


async def probe(config: ProviderConfig) -> ProbeResult:
    try:
        service = _service(config)
    except ConfigurationError as error:
        return ProbeResult(ok=False, message=str(error))
    return await service.probe(config)


def _service(config: ProviderConfig) -> ModelService:
    return ModelService(
        title=TITLE,
        defaults=_at_home(config),
        list_url=openai_list_url,
        read=read_openai,
        needs_key=True,
        catalog=DEFINITION.model_catalog,
    )


def _at_home(config: ProviderConfig) -> ProviderConfig:
    """The defaults of the region that the profile is about; each has a host of its own."""
    from robota.providers.families.qwen import REGIONS  # noqa: PLC0415 - definitions load no adapter

    region = config.options.get("region", "singapore")
    home = next((address for name, address in REGIONS.items() if name == region), None)
    if home is None:
        raise ConfigurationError(f"{TITLE} has no region {region!r}: use one of {', '.join(REGIONS)}.")
    if config.base_url:
        home = next((own for own in REGIONS.values() if is_same_host(config.base_url, own)), home)
    return replace(DEFAULTS, base_url=home)


def _read_web_tools(wanted: dict[str, Json]) -> NativeWebTools:
    read = {_WEB_TOOLS.get(name, name): value for name, value in wanted.items()}
    if not set(read) <= set(_WEB_TOOLS.values()) or not all(isinstance(on, bool) for on in read.values()):
        raise ConfigurationError(
            f"The option 'builtInWebTools' of {TITLE} has webSearch and webFetch, each true or false."
        )
    return NativeWebTools(**read)


DEFINITION = ProviderDefinition(
    type="qwen",
    create=create,
    aliases=("dashscope",),
    display_name=TITLE,
    description="Qwen models on DashScope; web search and a page reader can be enabled.",
    defaults=DEFAULTS,
    model_catalog=shipped_catalog("qwen"),
    setup_help_links=(
        SetupHelpLink(
            kind="api-key",
            url="https://www.alibabacloud.com/help/model-studio/get-api-key",
            label="Make an API key",
        ),
        SetupHelpLink(
            kind="official", url="https://www.alibabacloud.com/help/en/model-studio", label="Documentation"
        ),
    ),
    setup_steps=(
        SetupStep(key="api_key", title="API key", required=True, masked=True),
        SetupStep(key="base_url", title="Base URL of your region", default_value=DEFAULTS.base_url),
        SetupStep(key="model", title="Model", default_value=DEFAULTS.model),
    ),
    credential_requirement=CredentialRequirement(("api_key",)),
    refresh=refresh,
    probe=probe,
)
