"""The list of models as each protocol has it; which one is meant shows in the path and the headers."""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.messages import JsonObject
from robota.testing.http_request import ReceivedRequest

CREATED = 1_700_000_000
CREATED_AT = "2023-11-14T22:13:20Z"
TOKENS = 100_000


def list_models(request: ReceivedRequest, models: Sequence[str]) -> JsonObject | None:
    """The answer to a request for all models or for one of them; `None` when it asks something else."""
    if request.method != "GET":
        return None
    before, asked, name = request.path.partition("/models")
    if not asked or name not in ("", "/", *(f"/{known}" for known in models)):
        return None
    wanted = name.strip("/")
    if "/v1beta" in before or "x-goog-api-key" in request.headers:
        described = [_gemini(known) for known in models]
        return _gemini(wanted) if wanted else {"models": described}
    if "anthropic-version" in request.headers:
        return _anthropic(wanted) if wanted else _page([_anthropic(known) for known in models])
    return _openai(wanted) if wanted else {"object": "list", "data": [_openai(known) for known in models]}


def _openai(name: str) -> JsonObject:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "robota"}


def _anthropic(name: str) -> JsonObject:
    return {"type": "model", "id": name, "display_name": name, "created_at": CREATED_AT}


def _page(entries: list[JsonObject]) -> JsonObject:
    edges = {"first_id": entries[0]["id"], "last_id": entries[-1]["id"]} if entries else {}
    return {"data": entries, "has_more": False, **edges}


def _gemini(name: str) -> JsonObject:
    return {
        "name": f"models/{name}",
        "displayName": name,
        "inputTokenLimit": TOKENS,
        "outputTokenLimit": TOKENS,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
