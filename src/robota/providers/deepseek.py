"""DeepSeek: its models think before they call tools and want to read their thinking again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.providers.chat_vendor import Vendor, VendorProvider

if TYPE_CHECKING:
    from robota.core.provider_definition import ProviderDefinition


class DeepSeekProvider(VendorProvider):
    """A model of DeepSeek. Thinking is on by default; `ModelSettings.extra` can turn it off
    (`{"thinking": {"type": "disabled"}}`).
    """

    vendor = Vendor(
        name="deepseek",
        title="DeepSeek",
        base_url="https://api.deepseek.com",
        model="deepseek-v4-flash",
        key_variable="DEEPSEEK_API_KEY",
        hosts=("api.deepseek.com",),
        # answers of other models must have thinking too, and not an empty text
        habits={"reasoning_field": "reasoning_content", "reasoning_placeholder": " "},
    )


def define() -> ProviderDefinition:
    from robota.providers.catalog import shipped_catalog  # noqa: PLC0415 - a provider needs none
    from robota.providers.service import define_service, vendor_service  # noqa: PLC0415

    return define_service(
        "deepseek",
        vendor_service(DeepSeekProvider, catalog=shipped_catalog("deepseek")),
        description="DeepSeek's own models, with their thinking.",
        key_page="https://platform.deepseek.com/api_keys",
        docs="https://api-docs.deepseek.com",
    )
