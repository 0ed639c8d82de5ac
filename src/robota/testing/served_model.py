"""What `robota testing serve-model` reads and tells: scripts as YAML or JSON files, requests as lines.

A file is a list of replies, or a mapping with `replies` and, beside it, `repeat`, `strict` and `models`. A
reply is a text, one step, or a list of steps; `WORDS` has what steps are called, and one that says no more
than that is written `crlf: true`. A mistake is one `ConfigurationError` with the file, the line and the way
to put it right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import yaml
from msgspec import Struct, structs
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from robota.core.errors import ConfigurationError
from robota.core.messages import Json, JsonObject, StopReason, TokenUsage, ToolCall
from robota.core.plain_text import strip_controls
from robota.core.provider import ReasoningChunk, StopChunk
from robota.providers.scripted import Delay, Stall
from robota.sessions.redaction import Redactor
from robota.testing.dialect import UNREADABLE
from robota.testing.http_server import ReceivedRequest
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
    ModelReply,
    ModelStep,
    NoEndMark,
    RawBytes,
    UnknownEvent,
)

SETTINGS: dict[str, Any] = {"repeat": bool, "strict": bool, "models": list[str]}
LONGEST_FILE = 10_000_000
LONGEST_TEXT = 60
_SENT_BY_LIBRARIES = ("accept", "accept-encoding", "connection", "content-length", "host")


class Script(Struct, frozen=True):
    """What a file says."""

    replies: tuple[ModelReply, ...]
    repeat: bool = True
    strict: bool = True
    models: tuple[str, ...] = ("scripted",)


def read_script(path: Path) -> Script:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"The script {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"The script {path} is not UTF-8 text; save it as UTF-8.") from error
    if len(text) > LONGEST_FILE:
        raise ConfigurationError(f"The script {path} is longer than {LONGEST_FILE} characters; split it.")
    if text.lstrip().startswith(("{", "[")):
        text = text.replace("\t", " ")  # JSON may be indented with tabs, and has them nowhere else
    return _Reader(path, text).read()


class _Reader:
    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._loader = yaml.SafeLoader(text)

    def read(self) -> Script:
        try:
            root = self._loader.get_single_node()
        except yaml.MarkedYAMLError as error:
            raise self._syntax_error(error) from error
        except (yaml.YAMLError, RecursionError) as error:
            reason = " ".join(str(error).split()) or "it is nested too deeply"
            raise ConfigurationError(f"{self._path} is neither YAML nor JSON: {reason}.") from error
        finally:
            self._loader.dispose()
        settings: dict[str, Any] = {}
        if isinstance(root, MappingNode):
            settings, root = self._settings(root)
        if not isinstance(root, SequenceNode) or not root.value:
            raise self._error(root, "a script is a list of replies", "begin each with a dash: `- Hello!`")
        return Script(tuple(self._reply(node) for node in root.value), **settings)

    def _settings(self, root: MappingNode) -> tuple[dict[str, Any], Node]:
        head = self._pairs(root)
        if "replies" not in head:
            raise self._error(root, "there are no `replies`; write the list of them under that name")
        self._check_names(root, {"replies": None, **SETTINGS}, "a script")
        values = {name: self._convert(head[name], name, SETTINGS[name]) for name in head if name in SETTINGS}
        if "models" in values:
            values["models"] = tuple(values["models"])
        return values, head["replies"]

    # --- replies -----------------------------------------------------------------------------------------

    def _reply(self, node: Node) -> ModelReply:
        steps = [self._step(each) for each in (node.value if isinstance(node, SequenceNode) else [node])]
        if any(isinstance(step, Echo) for step in steps):
            return lambda request: [_echo(step, request) for step in steps]
        return [step for step in steps if not isinstance(step, Echo)]

    def _step(self, node: Node) -> WrittenStep:
        if isinstance(node, MappingNode):
            return self._mapped_step(node)
        value = self._value(node)
        if isinstance(value, str):
            return value
        if isinstance(node, ScalarNode):
            raise self._error(node, f"`{node.value}` is not text", "put quotes around it")
        raise self._error(node, "a list cannot be a step", "write a text, or a mapping such as `error: 429`")

    def _mapped_step(self, node: MappingNode) -> WrittenStep:
        pairs = self._pairs(node)
        # `delay` is a step, and stands beside `drip` too
        name = next((known for known in WORDS if known in pairs), None)
        if name is None:
            first = next(iter(pairs), "")
            raise self._error(node, f"`{first}` is not a step", _suggest(first, WORDS))
        word = WORDS[name]
        self._check_names(node, word.fields, f"`{name}`")
        given = {key: self._convert(value, key, word.fields[key]) for key, value in pairs.items()}
        if given[name] is False:
            raise self._error(node, f"`{name}: false` does nothing", "leave it out, or write true")
        value = given.pop(name)
        return word.build(*(() if value is True else (value,)), **given)

    # --- values ------------------------------------------------------------------------------------------

    def _pairs(self, node: MappingNode) -> dict[str, Node]:
        pairs: dict[str, Node] = {}
        for key, value in node.value:
            if key.value in pairs:
                raise self._error(key, f"`{key.value}` stands there twice", "remove one of them")
            pairs[str(key.value)] = value
        return pairs

    def _check_names(self, node: MappingNode, known: Mapping[str, object], what: str) -> None:
        for key, _ in node.value:
            if key.value not in known:
                raise self._error(key, f"{what} has no `{key.value}`", _suggest(str(key.value), known))

    def _convert(self, node: Node, name: str, kind: Any) -> Any:
        try:
            return msgspec.convert(self._value(node), kind)
        except msgspec.ValidationError as error:
            expected = str(error).partition(" - at ")[0]
            reason = expected[:1].lower() + expected[1:]
            raise self._error(node, f"the value of `{name}` does not fit: {reason}") from error

    def _value(self, node: Node) -> Json:
        try:
            return self._loader.construct_object(node, deep=True)
        except yaml.MarkedYAMLError as error:
            raise self._syntax_error(error) from error
        except ValueError as error:  # such as the 31st of February
            raise self._error(node, f"the value is not possible: {error}") from error

    def _error(self, node: Node | None, problem: str, fix: str = "") -> ConfigurationError:
        line = node.start_mark.line + 1 if node else 1
        said = f"{problem}; {fix}" if fix else problem
        return ConfigurationError(f"{self._path}, line {line}: {said}{'' if said.endswith('?') else '.'}")

    def _syntax_error(self, error: yaml.MarkedYAMLError) -> ConfigurationError:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = " ".join((error.problem or "this cannot be read").split())
        return ConfigurationError(
            f"{self._path}, line {line}: {problem}; check the indentation, quotes and brackets around it."
        )


def _echo(step: WrittenStep, request: ReceivedRequest) -> ModelStep:
    if not isinstance(step, Echo):
        return step
    return next(reversed(request.conversation.texts("user")), "")


def _suggest(name: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"


# --- the words -------------------------------------------------------------------------------------------


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
    """One word: the types of its value and of what may stand beside it, and the step they make.

    It is made of the value, which `true` leaves out, and of the others by their names.
    """

    fields: Fields
    build: Callable[..., WrittenStep]


def _call(name: str, arguments: JsonObject | str = "{}", id: str | None = None) -> ToolCall:
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return ToolCall(f"call_{name}" if id is None else id, name, text)


WORDS: dict[str, Word] = {
    "say": Word({"say": str}, str),
    "echo": Word({"echo": bool}, Echo),
    "think": Word({"think": str}, ReasoningChunk),
    "call": Word({"call": str, "arguments": dict[str, Any] | str, "id": str}, _call),
    "usage": Word({"usage": Usage}, lambda usage: TokenUsage(**structs.asdict(usage))),
    "stop": Word({"stop": StopReason, "detail": str}, StopChunk),
    "error": Word({"error": int, "body": Any, "headers": dict[str, str], "retry_after": Moment}, HttpError),
    "page": Word({"page": int}, HttpError.html),
    "cut": Word(
        {"cut": bool | int, "clean": bool}, lambda at=None, clean=False: Cut(after_bytes=at, clean=clean)
    ),
    "malformed": Word({"malformed": bool | str}, Malformed),
    "raw": Word({"raw": str}, lambda raw: RawBytes(raw.encode())),
    "error_event": Word({"error_event": bool | str, "kind": str}, ErrorEvent),
    "unknown_event": Word({"unknown_event": bool | str, "fields": dict[str, Any]}, UnknownEvent),
    "keep_alive": Word({"keep_alive": bool | str, "every": float}, KeepAlive),
    "forever": Word({"forever": str, "every": float}, Forever),
    "drip": Word({"drip": int, "delay": float}, Drip),
    "delay": Word({"delay": float}, Delay),
    "stall": Word({"stall": bool}, Stall),
    "content_type": Word({"content_type": str}, ContentType),
    "crlf": Word({"crlf": bool}, Crlf),
    "no_end_mark": Word({"no_end_mark": bool}, NoEndMark),
    "call_ids": Word({"call_ids": str}, CallIds),
}


# --- what came --------------------------------------------------------------------------------------------


class RequestLog:
    """One line per request: what came, what was answered, and no secret of the client.

    `verbose` adds headers and body.
    """

    def __init__(self, *, verbose: bool = False) -> None:
        self._verbose = verbose
        self._redactor = Redactor()

    def lines(self, request: ReceivedRequest) -> list[str]:
        lines = [f"#{request.number} {request.method} {self._target(request)}{self._facts(request)}"]
        if request.problem:
            lines.append(f"  {self._redactor.text(request.problem)}")
        if self._verbose:
            headers = {
                name: value for name, value in request.headers.items() if name not in _SENT_BY_LIBRARIES
            }
            shown: JsonObject = self._redactor.value(headers)
            lines += [f"  {name}: {value}" for name, value in shown.items()]
            lines += [f"  {line}" for line in self._body(request).splitlines()]
        return [strip_controls(line).replace("\n", " ") for line in lines]

    def _target(self, request: ReceivedRequest) -> str:
        target = f"{request.path}?{request.query}" if request.query else request.path
        return self._redactor.text(target)

    def _facts(self, request: ReceivedRequest) -> str:
        answer = f"{request.status}, {request.reply_size} bytes" if request.status else "no answer"
        if request.dialect is None:
            return f" -> {answer}"
        stream = "streamed" if request.dialect.wants_stream(request.path, request.json) else "whole"
        said = "" if request.problem else self._last_words(request)
        return f" ({request.dialect.name}, {stream}){said} -> {answer}"

    def _last_words(self, request: ReceivedRequest) -> str:
        """What the model was told last, by the user or by a tool."""
        try:
            turns = [turn for turn in request.conversation.turns if turn.role in ("user", "tool")]
        except UNREADABLE:
            return " (unreadable)"
        if not turns:
            return ""
        text = " ".join(self._redactor.text(turns[-1].text).split())
        shown = text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
        return f' {turns[-1].role} "{shown}"'

    def _body(self, request: ReceivedRequest) -> str:
        if request.body is None:
            return self._redactor.text(request.raw.decode("utf-8", "replace"))
        encoded = msgspec.json.encode(self._redactor.value(request.body))
        return msgspec.json.format(encoded, indent=2).decode()
