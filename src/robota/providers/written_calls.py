"""Tool calls as models write them into their text: as JSON, as Python, in tags, behind their name.

Each reader takes a text and gives the calls that it consists of. Only tools that were offered count, and only
calls that are whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from robota._lazy_pattern import lazy_pattern
from robota.core.jsontext import decode, encode, list_of, object_of
from robota.core.messages import Json, JsonObject, ToolCall
from robota.core.provider import ToolSchema

Offered: TypeAlias = Mapping[str, ToolSchema]
ReadCalls: TypeAlias = Callable[[str, Offered], list[ToolCall]]
"""The calls a text consists of; none if it is anything else."""

_NAMES = ("name", "tool", "tool_name", "function_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_WRAPPERS = ("function", "function_call", "tool_call")
_LIST = "tool_calls"
_KEYS = frozenset({*_NAMES, *_ARGUMENTS, *_WRAPPERS, _LIST, "id", "type", "tool_call_id"})
"""What a call as JSON has; it begins with one of these."""
_SPACES = ("functions", "tools", "default_api")
"""What some models put in front of every name, with a dot."""
_BETWEEN = lazy_pattern(r"[\s;,}]*")
"""Braces too: small models close one too many."""


# --- JSON --------------------------------------------------------------------------------------------


def read_json_calls(text: str, offered: Offered) -> list[ToolCall]:
    """Objects, one behind the other or in a list: `{"name": …, "arguments": {…}}`."""
    written = _read_values(text)
    calls = [call for item in written if (call := _read_object(item, offered)) is not None]
    return calls if len(calls) == len(written) else []


def _read_values(text: str) -> list[Json]:
    try:
        values = [decode(text)]
    except ValueError:
        values = _read_several(text)
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return list_of(object_of(items[0]).get(_LIST)) or items if len(items) == 1 else items


def _read_several(text: str) -> list[Json]:
    """Values that stand side by side; lines may break inside of their texts, as small models write them."""
    import json  # noqa: PLC0415 - most calls are read without it

    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse)
    values: list[Json] = []
    at = 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, _skip(_BETWEEN, text, at))
        except (ValueError, RecursionError):
            return []
        values.append(value)
        at = _skip(_BETWEEN, text, at)
    return values


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not JSON.")


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


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
    return rest.startswith('"') and (key in _KEYS if end else any(known.startswith(key) for known in _KEYS))


def _read_object(item: Json, offered: Offered) -> ToolCall | None:
    if not isinstance(item, dict):
        return None
    inner = next((item[key] for key in _WRAPPERS if key in item), None)
    if isinstance(inner, dict):
        item = inner
    elif isinstance(inner, str):
        item = {"name": inner, **item}
    name = next((item[key] for key in _NAMES if key in item), None)
    name = _find_name(name, offered) if isinstance(name, str) else None
    if name is None or _is_description(item):
        return None
    arguments: Json = next((item[key] for key in _ARGUMENTS if key in item), {})
    if isinstance(arguments, str):
        try:
            arguments = decode(arguments)
        except ValueError:
            return None
    return _make(name, arguments) if isinstance(arguments, dict) else None


def _is_description(item: JsonObject) -> bool:
    """Whether this tells of something by that name, the tool itself perhaps, rather than calls it."""
    if not item.keys() & _ARGUMENTS:
        return not item.keys() <= _KEYS
    form = item.get("parameters")
    if "description" not in item or not isinstance(form, dict):
        return False
    return form.get("type") == "object" or all(isinstance(field, dict) for field in form.values())


def _find_name(written: str, offered: Offered) -> str | None:
    """The tool that is meant."""
    if written in offered:
        return written
    space, _, name = written.partition(".")
    return name if space in _SPACES and name in offered else None


def _make(name: str, arguments: JsonObject) -> ToolCall:
    return ToolCall("", name, encode(arguments).decode())


# --- tags ----------------------------------------------------------------------------------------------

FUNCTION_TAG = "<function="
_FUNCTION = lazy_pattern(r"\s*(?:<function=)?([\w.-]+)>(.*?)(?:</function>\s*|\Z)", re.DOTALL)
_PARAMETER = lazy_pattern(r"\s*<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>\s*", re.DOTALL)
_INVOKE = lazy_pattern(r"\s*<([^\s<>]*)invoke name=\"([\w.-]+)\">(.*?)</\1invoke>\s*", re.DOTALL)
_NAMED = lazy_pattern(r"\s*<([^\s<>]*)parameter name=\"([\w.-]+)\"[^<>]*>(.*?)</\1parameter>\s*", re.DOTALL)
_TAGGED = lazy_pattern(r"\s*<([\w.-]+)>(.*?)</\1>\s*", re.DOTALL)
_PAIRED = lazy_pattern(r"\s*([\w.-]+)\s*((?:<arg_key>.*</arg_value>)?)\s*", re.DOTALL)
_PAIR = lazy_pattern(r"\s*<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>\s*", re.DOTALL)


def read_function_calls(text: str, offered: Offered) -> list[ToolCall]:
    """`<function=name>{…}</function>`, or `<parameter=key>value</parameter>` in between; from the name on."""
    return _all(_read_function(name, inside, offered) for name, inside in _cover(_FUNCTION, text))


def _read_function(name: str, inside: str, offered: Offered) -> ToolCall | None:
    if not inside.strip().startswith("{"):
        return _read_fields(name, _cover(_PARAMETER, inside), inside, offered)
    found = read_json_calls(f'{{"name":"{name}","arguments":{inside}}}', offered)
    return found[0] if found else None


def read_invocations(text: str, offered: Offered) -> list[ToolCall]:
    """`<invoke name="…"><parameter name="key">value</parameter></invoke>`, also with a prefix, or with tags
    that have the name of their parameter.
    """
    return _all(
        _read_fields(name, _fields_of(inside), inside, offered) for _, name, inside in _cover(_INVOKE, text)
    )


def _fields_of(inside: str) -> list[tuple[str, ...]]:
    return [field[1:] for field in _cover(_NAMED, inside)] or _cover(_TAGGED, inside)


def read_paired_calls(text: str, offered: Offered) -> list[ToolCall]:
    """A name and `<arg_key>key</arg_key><arg_value>value</arg_value>` for each argument."""
    return _all(
        _read_fields(name, _cover(_PAIR, inside), inside, offered) for name, inside in _cover(_PAIRED, text)
    )


def _cover(pattern: re.Pattern[str], text: str) -> list[tuple[str, ...]]:
    """The groups of all matches if the text consists of them."""
    matches = []
    at = 0
    while at < len(text):
        found = pattern.match(text, at)
        if found is None or found.end() == at:
            return []
        matches.append(found.groups())
        at = found.end()
    return matches


def _read_fields(
    name: str, fields: Sequence[tuple[str, ...]], inside: str, offered: Offered
) -> ToolCall | None:
    """A call from the texts of its arguments."""
    found = _find_name(name, offered)
    if found is None or (inside.strip() and not fields):
        return None
    schemas = offered[found].parameters.get("properties") or {}
    return _make(found, {key: _read_value(value, schemas.get(key)) for key, value in fields})


def _all(calls: Iterable[ToolCall | None]) -> list[ToolCall]:
    """All of them, or none."""
    made = []
    for call in calls:
        if call is None:
            return []
        made.append(call)
    return made


def _read_value(text: str, schema: Json) -> Json:
    """A value between tags: text is as it stands there, anything else is JSON."""
    if isinstance(schema, dict) and schema.get("type") == "string":
        return text
    try:
        return decode(text)
    except ValueError:
        return text


# --- JSON behind a name --------------------------------------------------------------------------------

_MARK = r"(?:<[|｜][^<>]*?[|｜]>|\[TOOL_CALLS\]|\[ARGS\]|\[CALL_ID\]\w*|```(?:json)?|</?tool_call>|\s)"
_HEAD = lazy_pattern(
    rf"{_MARK}*+(?:function{_MARK}++)?(?:to=)?([\w.-]+?)(?::\d+)?{_MARK}*+(?:(?:json|analysis|commentary){_MARK}*+)*+(?=\{{)"
)
_TAIL = lazy_pattern(rf"{_MARK}*+")


def read_named_calls(text: str, offered: Offered) -> list[ToolCall]:
    """`name{…}`, with the marks around and in between that models have learned."""
    import json  # noqa: PLC0415 - see _read_several

    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse)
    calls = []
    at = 0
    while at < len(text):
        head = _HEAD.match(text, at)
        name = _find_name(head[1], offered) if head else None
        if head is None or name is None:
            return []
        try:
            arguments, at = decoder.raw_decode(text, head.end())
        except (ValueError, RecursionError):
            return []
        calls.append(_make(name, arguments))
        at = _skip(_TAIL, text, at)
    return calls


_JOINT = "]<]minimax[>["
"""What MiniMax puts before each tag."""


def read_marked_calls(text: str, offered: Offered) -> list[ToolCall]:
    """Calls between marks of a model's own, in whichever notation."""
    text = text.replace(_JOINT, "")
    text = text[_skip(_TAIL, text, 0) :]
    return next(filter(None, (read(text, offered) for read in _NOTATIONS)), [])


def may_be_marked_call(text: str) -> bool:
    """Whether this can become calls, as far as it does not read like a sentence."""
    return may_be_json_call(text) or _MAY_BE.match(text) is not None


_MAY_BE = lazy_pattern(r"\s*(?:[\w.-]*\Z|[\w.-]+\s*[({<\n`]|[<\[]|\{\s*')")


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

    if not isinstance(expression, ast.Call):
        return None
    place: ast.expr = expression.func
    steps = ""
    while isinstance(place, ast.Attribute):
        steps = f".{place.attr}{steps}"
        place = place.value
    written = place.id + steps if isinstance(place, ast.Name) else ""
    if (
        written == "print"
        and written not in offered
        and len(expression.args) == 1
        and not expression.keywords
    ):
        return _read_expression(expression.args[0], offered)
    name = _find_name(written.removesuffix(".call"), offered)
    if name is None:
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

QUOTES = ('<|"|>', "<escape>")
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
        for quote in QUOTES:
            if self.take(quote):
                end = self.text.index(quote, self.at)
                words, self.at = self.text[self.at : end], end + len(quote)
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


def read_python_values(text: str, offered: Offered) -> list[ToolCall]:
    """JSON as Python would show it: `{'name': …, 'arguments': {…}}`."""
    import ast  # noqa: PLC0415 - see read_python_calls

    try:
        written = encode(ast.literal_eval(text.strip())).decode()
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return []
    return read_json_calls(written, offered)


def read_keyed_calls(text: str, offered: Offered) -> list[ToolCall]:
    """`{"tool": {…}}`, which anywhere but between marks is any JSON."""
    pairs = [pair for item in _read_values(text) for pair in object_of(item).items()]
    return _all(
        _make(name, arguments) if name in offered and isinstance(arguments, dict) else None
        for name, arguments in pairs
    )


_NOTATIONS: tuple[ReadCalls, ...] = (
    read_json_calls, read_function_calls, read_invocations, read_paired_calls, read_named_calls,
    read_python_calls, read_python_values, read_keyed_calls,
)  # fmt: skip
