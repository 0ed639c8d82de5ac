"""OpenRouter: many vendors' models behind one address, named like `vendor/model`."""

from __future__ import annotations

from robota.core.provider_definition import ProviderConfig, SetupHelpLink
from robota.providers.definitions.family import Family, define_hosted
from robota.providers.definitions.lists import base_path, openai_list_url, read_openrouter
from robota.providers.definitions.service import ModelService


def _key_url(base_url: str) -> str:
    path, _ = base_path(base_url, "/chat/completions")
    return f"{path}/key"


SERVICE = ModelService(
    title="OpenRouter",
    defaults=ProviderConfig(api_key="$ENV:OPENROUTER_API_KEY", base_url="https://openrouter.ai/api/v1"),
    list_url=openai_list_url,
    read=read_openrouter,
    key_url=_key_url,
    needs_key=True,
)
DEFINITION = define_hosted(
    "openrouter",
    Family(
        place="robota.providers.families.openrouter:OpenRouterProvider",
        service=SERVICE,
        options={"app_url": str, "app_title": str},
    ),
    description="Models of many vendors behind one key; name one like vendor/model.",
    links=(
        SetupHelpLink(kind="api-key", url="https://openrouter.ai/settings/keys", label="Make an API key"),
        SetupHelpLink(kind="official", url="https://openrouter.ai/docs", label="Documentation"),
    ),
)
