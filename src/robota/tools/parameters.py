"""What a function takes: its parameters with their types, defaults and descriptions, ready to be bound."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from inspect import cleandoc
from types import UnionType
from typing import Any, Literal, NoReturn, Optional, TypeAlias, Union

from msgspec import UNSET, Struct

from robota.core.errors import ConfigurationError
from robota.core.messages import Json
from robota.core.structured import field_types, is_pydantic
from robota.core.tool import ToolContext

_GOOGLE_HEADER = re.compile(r"(?:keyword )?(?:args|arguments|parameters|params):\s*$", re.IGNORECASE)
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)")
_NUMPY_HEADER = re.compile(r"(?:other )?parameters\s*$", re.IGNORECASE)
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$()")
"""Its second group is what an entry says at once, which is nothing: behind the colon is the type."""
_SPHINX_ENTRY = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)"
)
_SPHINX_TYPE = re.compile(r":type\s+\w+\s*:")


def read_docstring(function: object) -> str | None:
    """The docstring of the function that is meant: a partial's own is that of its class."""
    meant = function.func if isinstance(function, partial) else function
    return getattr(meant, "__doc__", None)


def parse_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The text without its argument sections, and what they say about each argument."""
    lines = cleandoc(text or "").splitlines()
    kept: list[str] = []
    arguments: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        follower = lines[at + 1] if at + 1 < len(lines) else ""
        if _GOOGLE_HEADER.match(line) and follower[:1].isspace():
            end = _end_of_block(lines, at + 1)
            margin = min((_indent(line) for line in lines[at + 1 : end] if line.strip()), default=0)
            _read_entries(lines[at + 1 : end], _GOOGLE_ENTRY, margin, arguments)
        elif _NUMPY_HEADER.match(line) and _is_rule(follower):
            end = _end_of_section(lines, at + 2)
            _read_entries(lines[at + 2 : end], _NUMPY_ENTRY, 0, arguments)
        elif match := _SPHINX_ENTRY.match(line):
            end = _end_of_block(lines, at + 1, stop_at_blank=True)
            arguments[match[1]] = _join([match[2], *lines[at + 1 : end]])
        elif _SPHINX_TYPE.match(line):
            end = at + 1
        else:
            kept.append(line)
            end = at + 1
        at = end
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), arguments


def _read_entries(block: list[str], entry: re.Pattern[str], margin: int, arguments: dict[str, str]) -> None:
    """An entry begins at the margin with one name or several; other lines go on about these."""
    names: list[str] = []
    for line in block:
        match = entry.match(line[margin:]) if _indent(line) == margin else None
        if match:
            names = [name.strip(" *") for name in match[1].split(",")]
            arguments.update(dict.fromkeys(names, match[2].strip()))
        elif line.strip():
            arguments.update({name: _join([arguments[name], line]) for name in names})


def _end_of_block(lines: list[str], start: int, *, stop_at_blank: bool = False) -> int:
    """The first line at the margin again."""
    for at in range(start, len(lines)):
        line = lines[at]
        if (line.strip() and not line[:1].isspace()) or (stop_at_blank and not line.strip()):
            return at
    return len(lines)


def _end_of_section(lines: list[str], start: int) -> int:
    """The next underlined header."""
    for at in range(start, len(lines) - 1):
        if lines[at].strip() and _is_rule(lines[at + 1]):
            return at
    return len(lines)


def _is_rule(line: str) -> bool:
    return len(line.strip()) >= 3 and not line.strip().strip("-")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _join(lines: list[str]) -> str:
    return " ".join(stripped for line in lines if (stripped := line.strip()))


Function: TypeAlias = Callable[..., Any]


class Parameter(Struct, frozen=True, kw_only=True):
    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty
    """`UNSET` for one that may be left out and has no default."""
    description: str | None = None
    label: str
    """What the model calls it: the name, or the alias of a `Field`."""

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


class Signature(Struct, frozen=True, kw_only=True):
    parameters: list[Parameter]
    contexts: tuple[str, ...]
    others: Any = UNSET
    """The type of what `**kwargs` takes; `UNSET` for a function without."""


def read_signature(function: Function, tool_name: str, scope: Mapping[str, object]) -> Signature:
    try:
        given = inspect.signature(function)
    except (TypeError, ValueError, NameError) as error:
        refuse(tool_name, f"its signature cannot be read: {error}", "wrap it in a typed function.", error)
    described = parse_docstring(read_docstring(function))[1]
    fixed = function.keywords if isinstance(function, partial) else {}
    parameters: list[Parameter] = []
    contexts: list[str] = []
    others: Any = UNSET
    for name, one in given.parameters.items():
        if name in fixed:
            continue
        _refuse_what_has_no_name(one, tool_name)
        annotation = _resolve(one, function, tool_name, scope)
        if one.kind is one.VAR_KEYWORD:
            if typing.get_origin(annotation) is typing.Unpack:
                parameters += _unpack(typing.get_args(annotation)[0], described)
            else:
                others = annotation
            continue
        if ToolContext in (annotation, *typing.get_args(annotation)):
            contexts.append(name)
            continue
        if one.default is None and annotation is not Any:
            annotation = Optional[annotation]  # noqa: UP045 - the annotation is a value here
        parameters.append(_make_parameter(name, annotation, one.default, described))
    return Signature(parameters=parameters, contexts=tuple(contexts), others=others)


def _make_parameter(name: str, annotation: Any, default: Any, described: Mapping[str, str]) -> Parameter:
    said = _own_description(annotation, default) or described.get(name)
    return Parameter(
        name=name,
        annotation=annotation,
        default=default,
        description=said,
        label=_alias_of(annotation, default) or name,
    )


def _unpack(kind: Any, described: Mapping[str, str]) -> list[Parameter]:
    """The fields of a `TypedDict` that `**kwargs` is made of."""
    parameters = []
    for name, annotation in typing.get_type_hints(kind, include_extras=True).items():
        required = name in kind.__required_keys__
        if (said := typing.get_origin(annotation)) in (typing.Required, typing.NotRequired):
            # which Python itself overlooks where annotations are texts
            required, annotation = said is typing.Required, typing.get_args(annotation)[0]
        default = inspect.Parameter.empty if required else UNSET
        parameters.append(_make_parameter(name, annotation, default, described))
    return parameters


def _refuse_what_has_no_name(one: inspect.Parameter, tool_name: str) -> None:
    if one.kind is one.VAR_POSITIONAL:
        refuse(tool_name, f"models cannot fill *{one.name}", f"take a list: `{one.name}: list[str]`.")
    if one.kind is one.POSITIONAL_ONLY:
        refuse(tool_name, f"{one.name!r} is positional-only", "remove the `/`: arguments come by name.")
    if one.annotation is not one.empty:
        return
    if one.name == "self":
        refuse(tool_name, "it is a method without its object", "use the attribute of an instance.")
    if one.name == "cls":
        refuse(tool_name, "it is a method without its class", "put @tool above @classmethod.")
    if one.name == "ctx":
        why = "`ctx` has no annotation, so that the model would be asked for it"
        refuse(tool_name, why, "write `ctx: ToolContext`, or give it another name.")


def refuse(tool_name: str, why: str, fix: str, cause: Exception | None = None) -> NoReturn:
    raise ConfigurationError(f"Tool {tool_name!r} cannot be used: {why}. To fix it, {fix}") from cause


def _resolve(
    parameter: inspect.Parameter, function: Function, tool_name: str, scope: Mapping[str, object]
) -> Any:
    """The annotation as a type; parameters without one take any JSON value."""
    if parameter.annotation is parameter.empty:
        return Any

    def holder() -> None:
        """`get_type_hints` wants a function; this one carries a single annotation."""

    holder.__annotations__ = {"it": parameter.annotation}
    plain = inspect.unwrap(function.func if isinstance(function, partial) else function)
    names = getattr(plain, "__globals__", None) or getattr(type(plain).__call__, "__globals__", {})
    try:
        return typing.get_type_hints(holder, dict(names), dict(scope), include_extras=True)["it"]
    except Exception as error:  # noqa: BLE001 - an annotation is arbitrary code; the author is told what it said
        refuse(
            tool_name,
            f"the annotation {parameter.annotation!r} of {parameter.name!r} cannot be resolved ({error})",
            "import the name at module level, not only under TYPE_CHECKING.",
            error if isinstance(error, Exception) else None,
        )


def _notes(annotation: Any, default: object = None) -> list[Any]:
    """What `Annotated` holds, and a `Field` in the place of the default."""
    return [*getattr(annotation, "__metadata__", ()), *([default] if is_pydantic(type(default)) else [])]


def _alias_of(annotation: Any, default: object) -> str | None:
    names = [getattr(note, "validation_alias", None) for note in _notes(annotation, default)]
    return next((name for name in names if isinstance(name, str)), None)


def _own_description(annotation: Any, default: object = None) -> str | None:
    """What `Annotated` or a `Field` says: a plain text, or a `description` or `documentation`."""
    for note in _notes(annotation, default):
        for text in (note, getattr(note, "description", None), getattr(note, "documentation", None)):
            if isinstance(text, str):
                return text
    if typing.get_origin(annotation) in (Union, UnionType):
        return next(filter(None, map(_own_description, typing.get_args(annotation))), None)
    return None


def is_async_function(function: Function) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - the method itself is asked, not whether it exists
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def find_choices(kinds: Iterable[Any], seen: set[int]) -> Iterator[list[Json]]:
    for kind in kinds:
        if id(kind) in seen:
            continue
        seen.add(id(kind))
        if typing.get_origin(kind) is Literal:
            yield list(typing.get_args(kind))
        elif isinstance(kind, type) and issubclass(kind, Enum):
            yield [member.value for member in kind]
        else:
            fields = field_types(kind) if isinstance(kind, type) else []
            yield from find_choices([*typing.get_args(kind), *fields], seen)
