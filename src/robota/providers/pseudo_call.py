"""Tool calls that a model wrote into its text, taken out of it and made.

They are written as JSON in several spellings, in tags, fences or by themselves on a line, as Python, with
tags for each parameter, or in Gemma's notation. Only tools that were offered count, and only calls that are
whole. A server that makes calls by itself needs no second reading: as soon as one of its calls comes, what
was written stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject, ToolCall
from robota.core.provider import Chunk, StopChunk, TextChunk, ToolInputChunk, ToolSchema
from robota.providers.local.reply import ValueScanner
from robota.providers.local_server import count_overlap, keep_raw

Offered: TypeAlias = Mapping[str, ToolSchema]
ReadCalls: TypeAlias = Callable[[str, Offered], list[ToolCall]]
"""The calls a text consists of; none if it is anything else."""

_NAMES = ("name", "tool", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_FIRST_KEYS = frozenset({*_NAMES, *_ARGUMENTS, "id", "type", "function"})


# --- JSON --------------------------------------------------------------------------------------------


def read_json_calls(text: str, offered: Offered) -> list[ToolCall]:
    """One object, or a list of them: `{"name": …, "arguments": {…}}`."""
    try:
        value = decode(text)
    except ValueError:
        return []
    written = value if isinstance(value, list) else [value]
    calls = [call for item in written if (call := _read_object(item, offered)) is not None]
    return calls if len(calls) == len(written) else []


def may_be_json_call(text: str) -> bool:
    """Whether this beginning of a text can still become calls, as far as its first key tells."""
    rest = text.lstrip().removeprefix("[").lstrip()
    if not rest:
        return True
    if not rest.startswith("{"):
        return False
    rest = rest[1:].lstrip()
    if not rest:
        return True
    key, end, _ = rest[1:].partition('"')
    return rest.startswith('"') and (key in _FIRST_KEYS if end else len(key) <= len("tool_name"))


def _read_object(item: Json, offered: Offered) -> ToolCall | None:
    if not isinstance(item, dict):
        return None
    inner = item.get("function")
    if isinstance(inner, dict):
        item = inner
    elif isinstance(inner, str):
        item = {"name": inner, **item}
    name = next((item[key] for key in _NAMES if key in item), None)
    if not isinstance(name, str) or name not in offered:
        return None
    arguments: Json = next((item[key] for key in _ARGUMENTS if key in item), {})
    if isinstance(arguments, str):
        try:
            arguments = decode(arguments)
        except ValueError:
            return None
    return ToolCall("", name, encode(arguments).decode()) if isinstance(arguments, dict) else None


# --- tags: `<function=name>{…}</function>`, or with `<parameter=key>value</parameter>` in between -------

_FUNCTION = lazy_pattern(r"\s*(?:<function=)?([\w.-]+)>(.*?)(?:</function>)?\s*", re.DOTALL)
_PARAMETERS = lazy_pattern(r"\s*<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


def read_function_calls(text: str, offered: Offered) -> list[ToolCall]:
    """One call as tags, from the name on."""
    found = _FUNCTION.fullmatch(text)
    if found is None or found[1] not in offered:
        return []
    name, inside = found.groups()
    if inside.strip().startswith("{"):
        return read_json_calls(f'{{"name":"{name}","arguments":{inside}}}', offered)
    if _PARAMETERS.sub("", inside).strip():
        return []
    fields = offered[name].parameters.get("properties") or {}
    arguments = {key: _read_value(value, fields.get(key)) for key, value in _PARAMETERS.findall(inside)}
    return [ToolCall("", name, encode(arguments).decode())]


def _read_value(text: str, schema: Json) -> Json:
    """A value between tags: text is as it stands there, anything else is JSON."""
    if isinstance(schema, dict) and schema.get("type") == "string":
        return text
    try:
        return decode(text)
    except ValueError:
        return text


def read_tagged_calls(text: str, offered: Offered) -> list[ToolCall]:
    return read_json_calls(text, offered) or read_function_calls(text, offered)


def may_be_tagged_call(text: str) -> bool:
    beginning = text.lstrip()[: len(_FUNCTION_TAG)]
    return may_be_json_call(text) or _FUNCTION_TAG.startswith(beginning)


_FUNCTION_TAG = "<function="


# --- Python ------------------------------------------------------------------------------------------


def read_python_calls(text: str, offered: Offered) -> list[ToolCall]:
    """Lines such as `read_file(path="a.txt")`, also in `print(…)` or a list; arguments are literals."""
    import ast  # noqa: PLC0415 - few models write calls in Python

    try:
        module = ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    written: list[ast.expr] = []
    for statement in module.body:
        if not isinstance(statement, ast.Expr):
            return []
        value = statement.value
        written += value.elts if isinstance(value, ast.List) else [value]
    calls = []
    for expression in written:
        call = _read_expression(expression, offered)
        if call is None:
            return []
        calls.append(call)
    return calls


def _read_expression(expression: object, offered: Offered) -> ToolCall | None:
    import ast  # noqa: PLC0415 - see read_python_calls
    import json  # noqa: PLC0415 - refuses what JSON does not have

    if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Name):
        return None
    name = expression.func.id
    if name == "print" and name not in offered and len(expression.args) == 1 and not expression.keywords:
        return _read_expression(expression.args[0], offered)
    if name not in offered:
        return None
    fields = list(offered[name].parameters.get("properties", ()))
    if len(expression.args) > len(fields) or any(word.arg is None for word in expression.keywords):
        return None
    named = [*zip(fields, expression.args, strict=False)]
    named += [(word.arg, word.value) for word in expression.keywords if word.arg is not None]
    try:
        arguments = {field: ast.literal_eval(value) for field, value in named}
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return ToolCall("", name, text) if len(arguments) == len(named) else None


# --- Gemma: `call:name{key:<|"|>text<|"|>,n:1,tags:[a,b]}` -------------------------------------------

QUOTE = '<|"|>'
_DEEPEST = 50
_CALL = lazy_pattern(r"\s*call:\s*([\w.-]+)\s*(?=\{)")
_KEY = lazy_pattern(r"\s*(?:<\|\"\|>)?\"?([\w.$-]+)\"?(?:<\|\"\|>)?\s*:\s*")
_JSON_TEXT = lazy_pattern(r'"(?:[^"\\]|\\.)*"')
_BARE = lazy_pattern(r"[^,{}\[\]]*")


def read_gemma_calls(text: str, offered: Offered) -> list[ToolCall]:
    """The calls a text consists of; none if it is anything else."""
    reader = _Reader(text)
    calls = []
    while reader.at < len(text):
        name = reader.match(_CALL)
        if name is None or name not in offered:
            return []
        try:
            arguments = reader.read_object(0)
        except ValueError:
            return []
        calls.append(ToolCall("", name, encode(arguments).decode()))
        reader.skip_space()
    return calls


class _Reader:
    """Where we are in the notation. What does not fit raises `ValueError`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[1]

    def skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, mark: str) -> bool:
        self.skip_space()
        found = self.text.startswith(mark, self.at)
        self.at += len(mark) if found else 0
        return found

    def require(self, mark: str) -> None:
        if not self.take(mark):
            raise ValueError(f"There is no {mark} at {self.at}.")

    def read_object(self, depth: int) -> JsonObject:
        self.require("{")
        fields: JsonObject = {}
        while not self.take("}"):
            if fields:
                self.require(",")
            key = self.match(_KEY)
            if key is None:
                raise ValueError(f"There is no name at {self.at}.")
            fields[key] = self.read_value(depth)
        return fields

    def read_list(self, depth: int) -> list[Json]:
        self.require("[")
        items: list[Json] = []
        while not self.take("]"):
            if items:
                self.require(",")
            items.append(self.read_value(depth))
        return items

    def read_value(self, depth: int) -> Json:
        if depth > _DEEPEST:
            raise ValueError("It is nested too deeply.")
        if self.take(QUOTE):
            end = self.text.index(QUOTE, self.at)
            words, self.at = self.text[self.at : end], end + len(QUOTE)
            return words
        if self.text.startswith("{", self.at):
            return self.read_object(depth + 1)
        if self.text.startswith("[", self.at):
            return self.read_list(depth + 1)
        return self.read_bare()

    def read_bare(self) -> Json:
        """A number, `true`, `null`, or a text whose quotes were forgotten or are those of JSON."""
        found = _JSON_TEXT.match(self.text, self.at) or _BARE.match(self.text, self.at)
        words = "" if found is None else found[0]
        self.at += len(words)
        try:
            return decode(words)
        except ValueError:
            if not words.strip():
                raise
        return words.strip()


# --- out of a stream ---------------------------------------------------------------------------------

FENCE = "```"


class Frame(Struct, frozen=True):
    """What stands around calls, and how they are written inside."""

    begin: str
    end: str
    """Empty where the call ends with its JSON."""
    read: ReadCalls = read_json_calls
    may_be: Callable[[str], bool] = may_be_json_call
    """Whether this beginning of the inside can still become calls."""


def _anything(_: str) -> bool:
    return True


MISTRAL = Frame("[TOOL_CALLS]", "")
FRAMES = (
    Frame("<tool_call>", "</tool_call>", read_tagged_calls, may_be_tagged_call),
    Frame("<tools>", "</tools>"),
    Frame("<function_call>", "</function_call>"),
    Frame(_FUNCTION_TAG, "</function>", read_function_calls, _anything),
    Frame(f"{FENCE}json", FENCE),
    Frame(f"{FENCE}tool_call", FENCE),
    Frame(f"{FENCE}tool_code", FENCE, read_python_calls, _anything),
    Frame(f"{FENCE}\n", FENCE),
    MISTRAL,
    Frame("<|python_tag|>", ""),
    Frame("<|tool_call>", "<tool_call|>", read_gemma_calls, _anything),
)
BARE = Frame("", "", may_be=lambda text: may_be_json_call(text) or MISTRAL.begin.startswith(text))
"""JSON at the beginning of a line, or what begins like it."""
_BEGINNINGS = tuple(frame.begin for frame in FRAMES)
_LINE_OF_JSON = lazy_pattern(r"(?:^|(?<=\n))[ \t]*(?=[\[{])")


class PseudoCallProjector:
    __slots__ = ("_at_line", "_frame", "_held", "_made", "_offered", "_scanner", "_searched", "_trusting")

    def __init__(self, tools: Iterable[ToolSchema]) -> None:
        self._offered = {tool.name: tool for tool in tools}
        self._trusting = bool(self._offered)
        """No call of the server's own has come."""
        self._frame: Frame | None = None
        """The frame that the held text began."""
        self._held = ""
        self._searched = 0
        """How far the held text was searched for the frame's end."""
        self._scanner = ValueScanner()
        """Finds the end of JSON that has no other."""
        self._at_line = True
        """What was given out ends with a line, or nothing was."""
        self._made: list[tuple[str, list[ToolCall]]] = []
        """Calls that were written, with their text."""

    def take(self, chunk: Chunk) -> list[Chunk]:
        if isinstance(chunk, TextChunk):
            return self._read(chunk) if self._trusting else [chunk]
        if isinstance(chunk, (ToolInputChunk, ToolCall)) and self._trusting:
            return [*self.release(), chunk]
        if isinstance(chunk, StopChunk):
            return self._finish(chunk)
        return [chunk]

    def release(self) -> list[Chunk]:
        """All that is held back, as text; nothing will be held any more."""
        written = "".join(text for text, _ in self._made) + self._held
        self._held, self._frame, self._trusting = "", None, False
        self._made.clear()
        return [TextChunk(written)] if written else []

    def _finish(self, stop: StopChunk) -> list[Chunk]:
        if self._frame is not None and stop.reason == "end_turn":  # many forget the end of the frame
            unclosed = self._frame.read(self._held[len(self._frame.begin) :], self._offered)
            if unclosed:
                self._made.append((self._held, unclosed))
                self._held = ""
        calls: list[Chunk] = [call for _, calls in self._made for call in calls]
        self._made.clear()
        if calls and stop.reason == "end_turn":
            stop = StopChunk("tool_use", stop.detail)
        return [*self.release(), *calls, stop]

    def _read(self, chunk: TextChunk) -> list[Chunk]:
        rest, self._held = self._held + chunk.text, ""
        said: list[str] = []
        while rest:
            rest = self._look(rest, said) if self._frame is None else self._collect(rest, self._frame, said)
        text = "".join(said)
        if text == chunk.text:
            return [chunk]
        return [*keep_raw(chunk), TextChunk(text)] if text else keep_raw(chunk)

    def _look(self, text: str, said: list[str]) -> str:
        """Look for the beginning of a call; it and what is behind it is returned."""
        found = [(at, frame) for frame in FRAMES if (at := text.find(frame.begin)) >= 0]
        found += [
            (line.end(), BARE) for line in _LINE_OF_JSON.finditer(text) if line.start() or self._at_line
        ]
        if found:
            at, self._frame = min(found, key=lambda each: each[0])
            self._searched = len(self._frame.begin)
            self._scanner = ValueScanner()
            self._say(text[:at], said)
            return text[at:]
        sure = len(text) - count_overlap(text, _BEGINNINGS)
        self._say(text[:sure], said)
        self._held = text[sure:]
        return ""

    def _say(self, text: str, said: list[str]) -> None:
        said.append(text)
        last = text.rpartition("\n")
        if text.strip(" \t"):
            self._at_line = bool(last[1]) and not last[2].strip(" \t")

    def _collect(self, text: str, frame: Frame, said: list[str]) -> str:
        """Go on with what began like a call; what is behind it is returned."""
        if frame is BARE and text.startswith(MISTRAL.begin):
            frame = self._frame = MISTRAL
            self._searched, self._scanner = len(frame.begin), ValueScanner()
        start = len(frame.begin)
        if not frame.may_be(text[start:]):
            return self._let_go(text, start or 1, said)
        if not frame.end:
            return self._collect_json(text, frame, said)
        end = text.find(frame.end, self._searched)
        while end >= 0:
            behind = end + len(frame.end)
            calls = frame.read(text[start:end], self._offered)
            if calls:
                return self._make(text, behind, calls)
            if frame.end != FENCE or text[end - 1] == "\n":  # else it may stand in an argument
                return self._let_go(text, behind, said)
            self._searched = behind
            end = text.find(frame.end, behind)
        self._searched = max(self._searched, len(text) - len(frame.end) + 1)
        self._held = text
        return ""

    def _collect_json(self, text: str, frame: Frame, said: list[str]) -> str:
        self._searched += len(self._scanner.feed(text[self._searched :]))
        if not self._scanner.over:
            self._held = text
            return ""
        calls = frame.read(text[len(frame.begin) : self._searched], self._offered)
        if calls:
            return self._make(text, self._searched, calls)
        return self._let_go(text, self._searched, said)

    def _make(self, text: str, length: int, calls: list[ToolCall]) -> str:
        """So much of the text is these calls."""
        self._made.append((text[:length], calls))
        self._frame, self._at_line = None, True
        return text[length:]

    def _let_go(self, text: str, length: int, said: list[str]) -> str:
        """So much of the text is no call."""
        self._frame = None
        self._say(text[:length], said)
        return text[length:]
