"""How the lists of models read that services answer with, each as catalogue entries.

A list that is not of the expected shape raises; a single odd entry in it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from robota.core.messages import Json, JsonObject
from robota.core.provider_definition import ModelCapability, ModelCatalogEntry, ModelLifecycle

_NO_CHAT = (
    "embedding", "whisper", "tts", "dall-e", "image", "moderation", "realtime", "audio", "transcribe", "sora",
    "davinci", "babbage",
)  # fmt: skip
_LIFECYCLES: dict[str, ModelLifecycle] = {"deprecated": "deprecated", "retired": "unavailable"}
_ANTHROPIC_WORDS: dict[str, ModelCapability] = {
    "image_input": "vision",
    "thinking": "reasoning",
    "structured_outputs": "json_schema",
    "server_tools": "native_web",
}


def base_path(base_url: str, *endings: str) -> tuple[str, str]:
    """The address without what adapters let people write behind it, and its query."""
    path, mark, query = base_url.strip().partition("?")
    path = path.rstrip("/")
    for ending in endings:
        path = path.removesuffix(ending)
    return path, f"{mark}{query}"


def openai_list_url(base_url: str) -> str:
    path, query = base_path(base_url, "/chat/completions", "/responses")
    return f"{path}/models{query}"


def read_openai(answer: Json) -> Iterator[ModelCatalogEntry]:
    """`{"data": [{"id": …}]}`, which most services imitate."""
    for model in _items(answer, "data"):
        window = model.get("context_length") or model.get("max_model_len") or model.get("context_window")
        yield ModelCatalogEntry(id=model["id"], context_window=window if isinstance(window, int) else None)


def read_openai_chat(answer: Json) -> Iterator[ModelCatalogEntry]:
    """OpenAI's own list, without what cannot hold a conversation."""
    for entry in read_openai(answer):
        if not any(word in entry.id for word in _NO_CHAT):
            yield entry


def read_anthropic(answer: Json) -> Iterator[ModelCatalogEntry]:
    for model in _items(answer, "data"):
        said = model.get("capabilities")
        able = said if isinstance(said, dict) else {}
        found = tuple(label for word, label in _ANTHROPIC_WORDS.items() if _is_supported(able.get(word)))
        yield ModelCatalogEntry(
            id=model["id"],
            display_name=_text(model.get("display_name")),
            lifecycle=_LIFECYCLES.get(str(model.get("lifecycle")), "active"),
            capabilities=("tools", *found, "streaming") if able else (),
            context_window=_count(model.get("max_input_tokens")),
            max_output=_count(model.get("max_tokens")),
        )


def read_gemini(answer: Json) -> Iterator[ModelCatalogEntry]:
    for model in _items(answer, "models", key="name"):
        methods = model.get("supportedGenerationMethods")
        if isinstance(methods, list) and "generateContent" not in methods:
            continue
        id = str(model["name"]).removeprefix("models/")
        yield ModelCatalogEntry(
            id=id,
            display_name=_text(model.get("displayName")),
            description=_text(model.get("description")),
            lifecycle="preview" if "preview" in id else "active",
            context_window=_count(model.get("inputTokenLimit")),
            max_output=_count(model.get("outputTokenLimit")),
        )


def read_openrouter(answer: Json) -> Iterator[ModelCatalogEntry]:
    for model in _items(answer, "data"):
        takes = model.get("supported_parameters") or ()
        shape = model.get("architecture")
        inputs = shape.get("input_modalities") if isinstance(shape, dict) else None
        able: list[ModelCapability] = ["streaming"]
        if "tools" in takes:
            able.append("tools")
        if "structured_outputs" in takes:
            able.append("json_schema")
        if "reasoning" in takes:
            able.append("reasoning")
        if isinstance(inputs, list) and "image" in inputs:
            able.append("vision")
        top = model.get("top_provider")
        yield ModelCatalogEntry(
            id=model["id"],
            display_name=_text(model.get("name")),
            capabilities=tuple(able),
            context_window=_count(model.get("context_length")),
            max_output=_count(top.get("max_completion_tokens")) if isinstance(top, dict) else None,
        )


def read_ollama(answer: Json) -> Iterator[ModelCatalogEntry]:
    for model in _items(answer, "models", key="name"):
        details = model.get("details")
        size = details.get("parameter_size") if isinstance(details, dict) else None
        yield ModelCatalogEntry(id=model["name"], description=_text(size))


def _items(answer: Json, field: str, key: str = "id") -> Iterator[JsonObject]:
    listed = answer[field]
    if not isinstance(listed, list):
        raise TypeError(f"{field} is no list")
    for item in listed:
        if isinstance(item, dict) and isinstance(item.get(key), str) and item[key]:
            yield item


def _is_supported(said: Json) -> bool:
    return isinstance(said, dict) and said.get("supported") is True


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
