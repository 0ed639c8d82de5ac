"""DeepSeek: its models think before they call tools and want to read their thinking again."""

from __future__ import annotations

from robota.providers.families.vendor import Vendor, VendorProvider


class DeepSeekProvider(VendorProvider):
    """A model of DeepSeek. Thinking is on by default; `ModelSettings.extra` can turn it off
    (`{"thinking": {"type": "disabled"}}`).
    """

    vendor = Vendor(
        name="deepseek",
        base_url="https://api.deepseek.com",
        model="deepseek-v4-flash",
        key_variable="DEEPSEEK_API_KEY",
        hosts=("api.deepseek.com",),
        reasoning_field="reasoning_content",
        reasoning_placeholder=" ",  # other models' answers must have thinking too, and not an empty text
    )
