"""The words of a script file: what each step is called, what may stand beside it, and what it does.

`robota.testing.script_file` reads the files. A step that has nothing more to say is written `crlf: true`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, structs

from robota.core.messages import Json, JsonObject, StopReason, TokenUsage, ToolCall
from robota.core.provider import ReasoningChunk, StopChunk
from robota.providers.scripted import Delay, Stall
from robota.testing.model_script import (
    CallIds,
    ContentType,
    Crlf,
    Cut,
    Drip,
    ErrorEvent,
    Forever,
    HttpError,
    KeepAlive,
    Malformed,
    ModelStep,
    NoEndMark,
    RawBytes,
    UnknownEvent,
)


class Echo(Struct, frozen=True):
    """Say what the user said last."""


class Usage(Struct, frozen=True, forbid_unknown_fields=True):
    """`TokenUsage`, with the names that Python has for its fields."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


WrittenStep: TypeAlias = ModelStep | Echo
Fields: TypeAlias = Mapping[str, Any]  # what `msgspec.convert` takes for a type
Moment: TypeAlias = float | datetime


class Word(Struct, frozen=True):
    """One word: the types of its value and of what may stand beside it, and the step they make."""

    fields: Fields
    build: Callable[..., WrittenStep]


def _call(call: str, arguments: JsonObject | str = "{}", id: str | None = None) -> ToolCall:
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return ToolCall(f"call_{call}" if id is None else id, call, text)


def _error(
    error: int, body: Json = None, headers: Mapping[str, str] | None = None, retry_after: Moment | None = None
) -> HttpError:
    return HttpError(error, body, headers or {}, retry_after)


def _error_event(error_event: bool | str, kind: str = "server_error") -> ErrorEvent:
    return ErrorEvent(error_event, kind) if isinstance(error_event, str) else ErrorEvent(kind=kind)


def _unknown_event(unknown_event: bool | str, fields: JsonObject | None = None) -> UnknownEvent:
    named = {"kind": unknown_event} if isinstance(unknown_event, str) else {}
    return UnknownEvent(**named, fields=fields or {})


def _keep_alive(keep_alive: bool | str, every: float | None = None) -> KeepAlive:
    text = {"text": keep_alive} if isinstance(keep_alive, str) else {}
    return KeepAlive(**text, every=every)


WORDS: dict[str, Word] = {
    "say": Word({"say": str}, lambda say: say),
    "echo": Word({"echo": bool}, lambda echo: Echo()),
    "think": Word({"think": str}, lambda think: ReasoningChunk(think)),
    "call": Word({"call": str, "arguments": dict[str, Any] | str, "id": str}, _call),
    "usage": Word({"usage": Usage}, lambda usage: TokenUsage(**structs.asdict(usage))),
    "stop": Word({"stop": StopReason, "detail": str}, lambda stop, detail=None: StopChunk(stop, detail)),
    "error": Word(
        {"error": int, "body": Any, "headers": dict[str, str], "retry_after": Moment},
        _error,
    ),
    "page": Word({"page": int}, lambda page: HttpError.html(page)),
    "cut": Word(
        {"cut": bool | int, "clean": bool},
        lambda cut, clean=False: Cut(after_bytes=None if cut is True else cut, clean=clean),
    ),
    "malformed": Word(
        {"malformed": bool | str},
        lambda malformed: Malformed(malformed) if isinstance(malformed, str) else Malformed(),
    ),
    "raw": Word({"raw": str}, lambda raw: RawBytes(raw.encode())),
    "error_event": Word({"error_event": bool | str, "kind": str}, _error_event),
    "unknown_event": Word({"unknown_event": bool | str, "fields": dict[str, Any]}, _unknown_event),
    "keep_alive": Word({"keep_alive": bool | str, "every": float}, _keep_alive),
    "forever": Word(
        {"forever": str, "every": float}, lambda forever, every=0.001: Forever(forever, every=every)
    ),
    "drip": Word({"drip": int, "delay": float}, lambda drip, delay=0.0: Drip(drip, delay)),
    "delay": Word({"delay": float}, lambda delay: Delay(delay)),
    "stall": Word({"stall": bool}, lambda stall: Stall()),
    "content_type": Word({"content_type": str}, lambda content_type: ContentType(content_type)),
    "crlf": Word({"crlf": bool}, lambda crlf: Crlf()),
    "no_end_mark": Word({"no_end_mark": bool}, lambda no_end_mark: NoEndMark()),
    "call_ids": Word({"call_ids": str}, lambda call_ids: CallIds(call_ids)),
}
