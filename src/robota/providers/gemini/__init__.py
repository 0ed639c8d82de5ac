"""Gemini: Google's models over `generateContent`. The adapter is loaded with the first provider."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota._lazy import lazy_names
from robota.core.errors import RobotaError
from robota.core.messages import Json, JsonObject
from robota.core.provider import Provider

if TYPE_CHECKING:
    from robota.core.provider_definition import ProviderConfig, ProviderDefinition
    from robota.providers.gemini.provider import GeminiProvider, GoogleProvider
    from robota.providers.wire.errors import Refusal

__all__ = ["BASE_URL", "GeminiProvider", "GoogleProvider"]
__getattr__, __dir__ = lazy_names(
    __name__,
    dict.fromkeys(("GeminiProvider", "GoogleProvider"), "robota.providers.gemini.provider"),
    globals(),
)
BASE_URL = "https://generativelanguage.googleapis.com"
API_VERSION = "v1beta"
"""It serves every model; `v1` has no previews and no aliases such as `gemini-flash-latest`."""
OTHER_VARIABLE = "GOOGLE_API_KEY"
"""Google's own client reads it as well."""


def _make(*given: Json, **options: Json) -> Provider:
    from robota.providers.gemini.provider import GeminiProvider  # noqa: PLC0415 - see the docstring

    return GeminiProvider(*given, **options)


def _find_defaults(config: ProviderConfig, defaults: ProviderConfig) -> ProviderConfig:
    if os.environ.get("GEMINI_API_KEY") or not os.environ.get(OTHER_VARIABLE):
        return defaults
    return replace(defaults, api_key=f"$ENV:{OTHER_VARIABLE}")


def _list_url(base_url: str) -> str:
    from robota.providers.service import base_path  # noqa: PLC0415 - a provider needs none

    path, _ = base_path(base_url)
    last = path.rpartition("/")[2]
    versioned = last[:1] == "v" and last[1:2].isdecimal()
    return f"{path if versioned else f'{path}/{API_VERSION}'}/models?pageSize=1000"


def _read_model(model: JsonObject) -> JsonObject | None:
    methods = model.get("supportedGenerationMethods")
    if isinstance(methods, list) and "generateContent" not in methods:
        return None
    id = str(model["name"]).removeprefix("models/")
    return {
        "id": id,
        "display_name": model.get("displayName"),
        "description": model.get("description"),
        "lifecycle": "preview" if "preview" in id else "active",
        "context_window": model.get("inputTokenLimit"),
        "max_output": model.get("outputTokenLimit"),
    }


def _sign(key: str) -> Mapping[str, str]:
    return {"x-goog-api-key": key}


def _describe(refusal: Refusal, provider: str, secrets: Sequence[str]) -> RobotaError:
    from robota.providers.gemini.errors import describe_google_refusal  # noqa: PLC0415 - see the docstring

    return describe_google_refusal(refusal, provider, secrets)


def define() -> ProviderDefinition:
    from robota.core.provider_definition import ProviderConfig  # noqa: PLC0415 - a provider needs none
    from robota.providers.catalog import shipped_catalog  # noqa: PLC0415
    from robota.providers.service import ModelService, define_service  # noqa: PLC0415

    service = ModelService(
        title="Gemini",
        make=_make,
        options={"api_version": str},
        defaults=ProviderConfig(
            model="gemini-3-flash-preview", api_key="$ENV:GEMINI_API_KEY", base_url=BASE_URL
        ),
        find_defaults=_find_defaults,
        list_url=_list_url,
        entries="models",
        key="name",
        read=_read_model,
        sign=_sign,
        needs_key=True,
        catalog=shipped_catalog("gemini"),
        describe=_describe,
    )
    return define_service(
        "gemini",
        service,
        description="Gemini models, with images, files and Google's own web tools.",
        key_page="https://aistudio.google.com/apikey",
        docs="https://ai.google.dev/gemini-api/docs",
        aliases=("google",),
    )
