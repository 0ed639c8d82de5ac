"""DeepSeek: hosted models that think before they call tools."""

from __future__ import annotations

from robota.core.provider_definition import ProviderConfig, SetupHelpLink
from robota.providers.definitions.catalog import shipped_catalog
from robota.providers.definitions.family import Family, define_hosted
from robota.providers.definitions.lists import openai_list_url, read_openai
from robota.providers.definitions.service import ModelService

SERVICE = ModelService(
    title="DeepSeek",
    defaults=ProviderConfig(
        model="deepseek-v4-flash", api_key="$ENV:DEEPSEEK_API_KEY", base_url="https://api.deepseek.com"
    ),
    list_url=openai_list_url,
    read=read_openai,
    needs_key=True,
    catalog=shipped_catalog("deepseek"),
)
DEFINITION = define_hosted(
    "deepseek",
    Family(place="robota.providers.families.deepseek:DeepSeekProvider", service=SERVICE),
    description="DeepSeek's own models, with their thinking.",
    links=(
        SetupHelpLink(kind="api-key", url="https://platform.deepseek.com/api_keys", label="Make an API key"),
        SetupHelpLink(kind="official", url="https://api-docs.deepseek.com", label="Documentation"),
    ),
)
