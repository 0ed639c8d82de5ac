"""Tool calls as models write them into their text: JSON in several spellings, Python, tags for each parameter,
or Gemma's notation.

Each reader takes a text and gives the calls that it consists of. Only tools that were offered count, and only
calls that are whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from robota._lazy_pattern import lazy_pattern
from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject, ToolCall
from robota.core.provider import ToolSchema

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
    beginning = text.lstrip()[: len(FUNCTION_TAG)]
    return may_be_json_call(text) or FUNCTION_TAG.startswith(beginning)


FUNCTION_TAG = "<function="


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
