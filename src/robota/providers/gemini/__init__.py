"""Gemini: Google's models over `generateContent`. The adapter is loaded with the first provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from robota._lazy import lazy_names
from robota.core.errors import RobotaError
from robota.core.messages import JsonObject
from robota.providers.service import Service, base_path

if TYPE_CHECKING:
    from robota.providers.gemini.provider import GeminiProvider, GoogleProvider
    from robota.providers.wire.errors import Refusal

__all__ = ["BASE_URL", "GeminiProvider", "GoogleProvider"]
__getattr__, __dir__ = lazy_names(
    __name__,
    dict.fromkeys(("GeminiProvider", "GoogleProvider"), "robota.providers.gemini.provider"),
    globals(),
)
BASE_URL = "https://generativelanguage.googleapis.com"
KEY_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
"""Google's own client reads the second as well."""
API_VERSION = "v1beta"
"""It serves every model; `v1` has no previews and no aliases such as `gemini-flash-latest`."""


def _list_url(base_url: str) -> str:
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


def sign(key: str) -> Mapping[str, str]:
    return {"x-goog-api-key": key}


def _describe(refusal: Refusal, provider: str, secrets: Sequence[str]) -> RobotaError:
    from robota.providers.gemini.errors import describe_google_refusal  # noqa: PLC0415 - see the docstring

    return describe_google_refusal(refusal, provider, secrets)


SERVICE = Service(
    title="Gemini",
    description="Gemini models, with images, files and Google's own web tools.",
    options={"api_version": str},
    aliases=("google",),
    docs="https://ai.google.dev/gemini-api/docs",
    key_page="https://aistudio.google.com/apikey",
    key_variables=KEY_VARIABLES,
    base_url=BASE_URL,
    model="gemini-3-flash-preview",
    catalog="gemini",
    list_url=_list_url,
    entries="models",
    key="name",
    read=_read_model,
    sign=sign,
    describe=_describe,
)
