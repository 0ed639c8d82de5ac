"""DeepSeek: its models think before they call tools and want to read their thinking again."""

from __future__ import annotations

from robota.providers.chat_vendor import Vendor, VendorProvider, service_of


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


SERVICE = service_of(
    DeepSeekProvider,
    description="DeepSeek's own models, with their thinking.",
    key_page="https://platform.deepseek.com/api_keys",
    docs="https://api-docs.deepseek.com",
    catalog="deepseek",
)
