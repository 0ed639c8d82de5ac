"""DeepSeek: its models think before they call tools and want to read their thinking again."""

from __future__ import annotations

from robota.providers.openai_compatible import Vendor, VendorProvider

SERVICE = Vendor(
    name="deepseek",
    title="DeepSeek",
    description="DeepSeek's own models, with their thinking.",
    base_url="https://api.deepseek.com",
    hosts=("api.deepseek.com",),
    model="deepseek-v4-flash",
    key_page="https://platform.deepseek.com/api_keys",
    key_variables=("DEEPSEEK_API_KEY",),
    docs="https://api-docs.deepseek.com",
    catalog="deepseek",
    # answers of other models must have thinking too, and not an empty text
    habits={"reasoning_field": "reasoning_content", "reasoning_placeholder": " "},
)


class DeepSeekProvider(VendorProvider):
    """A model of DeepSeek. Thinking is on by default; `ModelSettings.extra` can turn it off
    (`{"thinking": {"type": "disabled"}}`).
    """

    vendor = SERVICE
