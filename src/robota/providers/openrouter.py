"""OpenRouter: many vendors' models behind one address, named like `vendor/model`."""

from __future__ import annotations

from typing import Unpack

from robota.core.jsontext import list_of, object_of
from robota.core.messages import JsonObject
from robota.providers.openai_compatible import Vendor, VendorOptions, VendorProvider
from robota.providers.service import base_path


def _read_model(model: JsonObject) -> JsonObject:
    takes = model.get("supported_parameters") or ()
    inputs = list_of(object_of(model.get("architecture")).get("input_modalities"))
    able = {
        "streaming": True,
        "tools": "tools" in takes,
        "json_schema": "structured_outputs" in takes,
        "reasoning": "reasoning" in takes,
        "vision": "image" in inputs,
    }
    return {
        "display_name": model.get("name"),
        "capabilities": tuple(name for name, has in able.items() if has),
        "context_window": model.get("context_length"),
        "max_output": object_of(model.get("top_provider")).get("max_completion_tokens"),
    }


SERVICE = Vendor(
    name="openrouter",
    title="OpenRouter",
    description="Models of many vendors behind one key; name one like vendor/model.",
    options={"app_url": str, "app_title": str},
    base_url="https://openrouter.ai/api/v1",
    hosts=("openrouter.ai",),
    key_page="https://openrouter.ai/settings/keys",
    key_variables=("OPENROUTER_API_KEY",),
    docs="https://openrouter.ai/docs",
    read=_read_model,
    key_url=lambda base_url: f"{base_path(base_url, '/chat/completions')[0]}/key",
    habits={"reasoning_details": True},
)


class OpenRouterProvider(VendorProvider):
    """A model at OpenRouter, named like `vendor/model`. What it takes is for `capabilities` to say.

    `app_url` and `app_title` tell OpenRouter whose requests these are; without them it is not told.
    """

    vendor = SERVICE

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        *,
        app_url: str | None = None,
        app_title: str | None = None,
        **options: Unpack[VendorOptions],
    ) -> None:
        ours = {"HTTP-Referer": app_url, "X-Title": app_title}
        told = {header: value for header, value in ours.items() if value}
        options["headers"] = {**told, **(options.get("headers") or {})}
        super().__init__(api_key, base_url, model, **options)
