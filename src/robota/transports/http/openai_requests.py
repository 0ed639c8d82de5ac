"""Requests of the OpenAI protocols, and what they mean for an agent.

An agent has tools of its own and runs them itself, so that a request which brings tools is refused: a client
that waits for calls of its functions would wait in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from robota.core.messages import ImagePart, ImageUriPart, Json, JsonObject, Part, Prompt, TextPart
from robota.core.provider import ModelSettings
from robota.transports.http.replies import HttpError

AGENT = "robota"
"""The name of the model that is the agent with whatever it was started with."""


class Said(Struct, frozen=True):
    """A message before the prompt."""

    role: Literal["user", "assistant"]
    text: str


class Task(Struct, frozen=True, kw_only=True):
    """What an agent is to do for a request."""

    prompt: Prompt
    before: tuple[Said, ...] = ()
    instructions: str = ""
    model: str | None = None
    settings: ModelSettings = ModelSettings()
    schema: JsonObject | None = None
    stream: bool = False
    include_usage: bool = False
    previous: str | None = None
    """The response that this one goes on from."""


class ChatBody(Struct, frozen=True, kw_only=True):
    """`POST /v1/chat/completions`. Fields that are not named here are ignored."""

    messages: list[dict[str, Any]]
    model: str = AGENT
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    reasoning_effort: str | None = None
    stop: str | list[str] | None = None
    n: int | None = 1
    response_format: dict[str, Any] | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None


class ResponsesBody(Struct, frozen=True, kw_only=True):
    """`POST /v1/responses`. Fields that are not named here are ignored."""

    input: str | list[dict[str, Any]]
    model: str = AGENT
    instructions: str | None = None
    stream: bool | None = False
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    reasoning: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    previous_response_id: str | None = None
    tools: list[Any] | None = None
    background: bool | None = False


def read_chat(body: ChatBody) -> Task:
    _refuse_tools(body.tools or body.functions)
    if (body.n or 1) != 1:
        raise refusal("An agent gives one answer: leave `n` out.", "n")
    schema = _read_format(body.response_format, "response_format")
    instructions, before, prompt = _split(body.messages, "messages")
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    return Task(
        prompt=prompt,
        before=before,
        instructions=instructions,
        model=_read_model(body.model),
        settings=ModelSettings(
            temperature=body.temperature,
            top_p=body.top_p,
            max_tokens=body.max_completion_tokens or body.max_tokens,
            effort=body.reasoning_effort,
            stop=stop,
        ),
        schema=schema,
        stream=bool(body.stream),
        include_usage=bool((body.stream_options or {}).get("include_usage")),
    )


def read_responses(body: ResponsesBody) -> Task:
    _refuse_tools(body.tools)
    if body.background:
        raise refusal("Responses in the background are not kept here: leave `background` out.", "background")
    items = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    instructions, before, prompt = _split(items, "input")
    effort = (body.reasoning or {}).get("effort")
    return Task(
        prompt=prompt,
        before=before,
        instructions="\n\n".join(filter(None, (body.instructions, instructions))),
        model=_read_model(body.model),
        settings=ModelSettings(
            temperature=body.temperature,
            top_p=body.top_p,
            max_tokens=body.max_output_tokens,
            effort=effort if isinstance(effort, str) else None,
        ),
        schema=_read_format((body.text or {}).get("format"), "text.format"),
        stream=bool(body.stream),
        previous=body.previous_response_id,
    )


class BadRequest(HttpError):
    """A request that cannot be served, with the field that is to blame."""

    def __init__(self, message: str, field: str | None, code: str) -> None:
        super().__init__(400, code, message)
        self.field = field


def refusal(words: str, field: str | None = None, code: str = "invalid_request") -> BadRequest:
    return BadRequest(words, field, code)


def _refuse_tools(tools: Sequence[Any] | None) -> None:
    if tools:
        raise refusal(
            "This is an agent with tools of its own, which it runs itself: leave `tools` out.",
            "tools",
            "unsupported_parameter",
        )


def _read_model(model: str) -> str | None:
    return None if model in (AGENT, "") else model


def _read_format(format: Json, field: str) -> JsonObject | None:
    """The schema that an answer must fit."""
    match format:
        case None | {"type": "text"}:
            return None
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return schema
        case {"type": "json_schema", "schema": dict(schema)}:
            return schema
    raise refusal(f"`{field}` is a text or has a JSON schema.", field)


def _split(items: Sequence[JsonObject], field: str) -> tuple[str, tuple[Said, ...], Prompt]:
    """Instructions, what was said before, and the last words of the user."""
    instructions: list[str] = []
    said: list[tuple[str, tuple[Part, ...]]] = []
    for at, item in enumerate(items):
        role, parts = item.get("role"), _read_content(item.get("content"), f"{field}[{at}]")
        if role in ("system", "developer"):
            instructions.append(_words(parts))
        elif role in ("user", "assistant"):
            said.append((role, parts))
        else:
            raise refusal(
                f"{field}[{at}] has the role {role!r}; there are system, developer, user and assistant.",
                field,
            )
    if not said or said[-1][0] != "user" or not said[-1][1]:
        raise refusal(f"`{field}` ends with a message of the user.", field)
    before = tuple(
        Said("user" if role == "user" else "assistant", _words(parts)) for role, parts in said[:-1]
    )
    last = said[-1][1]
    plain = all(isinstance(part, TextPart) for part in last)
    return "\n\n".join(instructions), before, _words(last) if plain else last


def _words(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def _read_content(content: Json, place: str) -> tuple[Part, ...]:
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (TextPart(content),)
    if not isinstance(content, list):
        raise refusal(f"The content of {place} is a text or a list of parts.")
    return tuple(_read_part(part, place) for part in content)


def _read_part(part: Json, place: str) -> Part:
    match part:
        case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            return TextPart(text)
        case {"type": "image_url", "image_url": {"url": str(url)}} | {
            "type": "input_image",
            "image_url": str(url),
        }:
            return _read_image(url)
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    raise refusal(f"{place} has a part of the type {kind!r}; texts and images are taken.")


def _read_image(url: str) -> Part:
    head, comma, data = url.partition(",")
    if url.startswith("data:") and comma and head.endswith(";base64"):
        return ImagePart(data, head[5 : -len(";base64")] or "image/png")
    return ImageUriPart(url)
