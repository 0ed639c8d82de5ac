"""From a function's signature to the JSON schema of its arguments and to checked keyword arguments.

msgspec does the work. pydantic is imported only when an annotation asks for it (a model, a `Field`) or is a
type that msgspec cannot express. Both are strict in the same way: the text `"1"` is not an integer, because
what the schema refuses the function must not get; `1.0` is one, as JSON Schema has it.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from functools import partial
from types import UnionType
from typing import Annotated, Any, NoReturn, Optional, TypeAlias, Union

import msgspec
from msgspec import UNSET, Struct

from robota.core.errors import ConfigurationError, ValidationError
from robota.core.messages import Json, JsonObject
from robota.core.schema import check
from robota.core.tool import ToolContext
from robota.tools.docstring import parse_docstring, read_docstring
from robota.tools.json_schema import tidy_schema

Function: TypeAlias = Callable[..., Any]
Binder: TypeAlias = Callable[[JsonObject], JsonObject]

REF_TEMPLATE = "#/$defs/{name}"


class Binding(Struct, frozen=True, kw_only=True):
    """All that a call needs to know of its function, worked out once."""

    parameters: JsonObject
    bind: Binder
    """Arguments to keyword arguments; raises `ValidationError`."""
    contexts: tuple[str, ...]
    """Parameters that take the `ToolContext`."""
    is_async: bool


class _Parameter(Struct, frozen=True, kw_only=True):
    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty
    description: str | None = None

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


class _Signature(Struct, frozen=True, kw_only=True):
    parameters: list[_Parameter]
    contexts: tuple[str, ...]
    open_ended: bool
    """The function takes `**kwargs`."""


def bind_signature(function: Function, tool_name: str, scope: Mapping[str, object]) -> Binding:
    """The binding of a function whose signature says what it takes; `scope` has names its annotations use."""
    signature = _read_signature(function, tool_name, scope)
    if _asks_for_pydantic(signature.parameters):
        schema, bind = _bind_with_pydantic(signature, tool_name)
    else:
        try:
            schema, bind = _bind_with_msgspec(signature)
        except TypeError:  # such as `datetime | str`, which msgspec does not tell apart
            schema, bind = _bind_with_pydantic(signature, tool_name)
        except (NameError, AttributeError, ValueError) as error:
            _refuse(
                tool_name, f"its types cannot be resolved: {error}", "import them at module level.", error
            )
    return Binding(parameters=schema, bind=bind, contexts=signature.contexts, is_async=_is_async(function))


def bind_schema(
    function: Function, tool_name: str, schema: JsonObject, scope: Mapping[str, object]
) -> Binding:
    """The binding of a function that comes with its schema.

    It is called with the arguments as keywords. If its only parameter is no property of the schema, it gets
    all arguments as one dict.
    """
    signature = _read_signature(function, tool_name, scope)
    properties: Json = schema.get("properties")
    known: Json = properties if isinstance(properties, dict) else {}
    strangers = [one.name for one in signature.parameters if one.required and one.name not in known]
    whole = strangers[0] if strangers and len(signature.parameters) == 1 else None
    if strangers and whole is None:
        _refuse(
            tool_name,
            f"its function needs {strangers[0]!r}, which its schema does not have",
            "add it to the properties, or take all arguments as one dict.",
        )

    names = [one.name for one in signature.parameters]

    def bind(arguments: JsonObject) -> JsonObject:
        _check(arguments, schema)
        if whole:
            return {whole: arguments}
        unknown = [] if signature.open_ended else [name for name in arguments if name not in names]
        if unknown:
            raise ValidationError(f"unknown field {unknown[0]!r}; allowed: {', '.join(map(repr, names))}")
        return dict(arguments)

    return Binding(parameters=schema, bind=bind, contexts=signature.contexts, is_async=_is_async(function))


# --- reading the function ------------------------------------------------------------------------------


def _read_signature(function: Function, tool_name: str, scope: Mapping[str, object]) -> _Signature:
    try:
        given = inspect.signature(function)
    except (TypeError, ValueError, NameError) as error:
        _refuse(tool_name, f"its signature cannot be read: {error}", "wrap it in a typed function.", error)
    described = parse_docstring(read_docstring(function))[1]
    fixed = function.keywords if isinstance(function, partial) else {}
    parameters: list[_Parameter] = []
    contexts: list[str] = []
    for name, one in given.parameters.items():
        if one.kind is one.VAR_KEYWORD or name in fixed:
            continue
        _refuse_what_has_no_name(one, tool_name)
        annotation = _resolve(one, function, tool_name, scope)
        if ToolContext in (annotation, *typing.get_args(annotation)):
            contexts.append(name)
            continue
        said = _own_description(annotation, one.default) or described.get(name)
        if one.default is None and annotation is not Any:
            annotation = Optional[annotation]  # noqa: UP045 - the annotation is a value here
        parameters.append(_Parameter(name=name, annotation=annotation, default=one.default, description=said))
    open_ended = any(one.kind is one.VAR_KEYWORD for one in given.parameters.values())
    return _Signature(parameters=parameters, contexts=tuple(contexts), open_ended=open_ended)


def _refuse_what_has_no_name(one: inspect.Parameter, tool_name: str) -> None:
    if one.kind is one.VAR_POSITIONAL:
        _refuse(tool_name, f"models cannot fill *{one.name}", f"take a list: `{one.name}: list[str]`.")
    if one.kind is one.POSITIONAL_ONLY:
        _refuse(tool_name, f"{one.name!r} is positional-only", "remove the `/`: arguments come by name.")
    if one.name == "self" and one.annotation is one.empty:
        _refuse(tool_name, "it is a method without its object", "use the attribute of an instance.")


def _refuse(tool_name: str, why: str, fix: str, cause: Exception | None = None) -> NoReturn:
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
        _refuse(
            tool_name,
            f"the annotation {parameter.annotation!r} of {parameter.name!r} cannot be resolved ({error})",
            "import the name at module level, not only under TYPE_CHECKING.",
            error if isinstance(error, Exception) else None,
        )


def _own_description(annotation: Any, default: object = None) -> str | None:
    """What `Annotated` or a `Field` says: a plain text, or a `description` or `documentation`."""
    notes = [*getattr(annotation, "__metadata__", ()), *([default] if _is_pydantic(type(default)) else [])]
    for note in notes:
        for text in (note, getattr(note, "description", None), getattr(note, "documentation", None)):
            if isinstance(text, str):
                return text
    if typing.get_origin(annotation) in (Union, UnionType):
        return next(filter(None, map(_own_description, typing.get_args(annotation))), None)
    return None


def _is_async(function: Function) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - the method itself is asked, not whether it exists
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


# --- msgspec -------------------------------------------------------------------------------------------


def _bind_with_msgspec(signature: _Signature) -> tuple[JsonObject, Binder]:
    fields = [
        (one.name, one.annotation) if one.required else (one.name, one.annotation, UNSET)
        for one in signature.parameters
    ]
    closed = not signature.open_ended
    model = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=closed)
    (root,), definitions = msgspec.json.schema_components(
        [model], schema_hook=_path_schema, ref_template=REF_TEMPLATE
    )
    drafted = definitions.pop(root["$ref"].rpartition("/")[2])
    schema = _finish_schema(drafted["properties"], definitions, signature, drafted["required"])
    convert, asdict = msgspec.convert, msgspec.structs.asdict
    complete = all(one.required for one in signature.parameters)
    names = frozenset(one.name for one in signature.parameters)

    def bind(arguments: JsonObject) -> JsonObject:
        try:
            found = asdict(convert(arguments, model, dec_hook=_read_path))
        except msgspec.ValidationError as error:
            _check(arguments, schema)
            found = _convert_leniently(arguments, model, error)
        if not complete:
            found = {name: value for name, value in found.items() if value is not UNSET}
        if not closed:
            found.update((name, value) for name, value in arguments.items() if name not in names)
        return found

    return schema, bind


def _convert_leniently(
    arguments: JsonObject, model: type[Struct], error: msgspec.ValidationError
) -> JsonObject:
    """The schema has no objection, so it is about a form that JSON allows: 1.0 for an integer."""
    try:
        return msgspec.structs.asdict(msgspec.convert(arguments, model, strict=False, dec_hook=_read_path))
    except msgspec.ValidationError:
        what, _, where = str(error).partition(" - at `$.")
        raise ValidationError(f"'{where.rstrip('`')}': {what}" if where else what) from None


def _path_schema(kind: type) -> JsonObject:
    if hasattr(kind, "__fspath__"):
        return {"type": "string", "format": "path"}
    raise NotImplementedError


def _read_path(kind: type, value: Json) -> Json:
    return kind(value)  # paths are the only foreign types that get past `_path_schema`


# --- pydantic ------------------------------------------------------------------------------------------


def _asks_for_pydantic(parameters: list[_Parameter]) -> bool:
    if "pydantic" not in sys.modules and "annotated_types" not in sys.modules:
        return False  # then no annotation can be made of it
    seen: set[int] = set()
    return any(
        _is_pydantic(type(one.default)) or _contains_pydantic(one.annotation, seen) for one in parameters
    )


def _contains_pydantic(annotation: Any, seen: set[int]) -> bool:
    if id(annotation) in seen:
        return False
    seen.add(id(annotation))
    notes = getattr(annotation, "__metadata__", ())
    if any(_is_pydantic(type(note)) for note in notes):
        return True
    inner = list(typing.get_args(annotation))
    if isinstance(annotation, type):
        if _is_pydantic(annotation) or hasattr(annotation, "__get_pydantic_core_schema__"):
            return True
        inner.extend(_field_types(annotation))
    return any(_contains_pydantic(one, seen) for one in inner)


def _is_pydantic(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("pydantic", "annotated_types") or hasattr(
        kind, "__pydantic_validator__"
    )


def _field_types(kind: type) -> list[Any]:
    """The types of a record's fields; nothing for types without annotations, or with some we cannot read."""
    if not any("__annotations__" in vars(one) for one in kind.__mro__ if one is not object):
        return []
    try:
        return list(typing.get_type_hints(kind, include_extras=True).values())
    except Exception:  # noqa: BLE001 - msgspec meets the same annotation and says what is wrong
        return []


def _bind_with_pydantic(signature: _Signature, tool_name: str) -> tuple[JsonObject, Binder]:
    import pydantic  # noqa: PLC0415 - only functions that need it pay for it
    from pydantic.fields import FieldInfo  # noqa: PLC0415

    adapters: dict[str, pydantic.TypeAdapter[Any]] = {}
    optional: set[str] = set()
    try:
        for one in signature.parameters:
            kind = one.annotation
            if isinstance(one.default, FieldInfo):
                kind = Annotated[kind, one.default]
            elif not one.required:
                optional.add(one.name)
            adapters[one.name] = pydantic.TypeAdapter(kind)
        drafts, shared = pydantic.TypeAdapter.json_schemas(
            [(name, "validation", adapter) for name, adapter in adapters.items()],
            ref_template="#/$defs/{model}",
        )
    except (pydantic.PydanticUserError, TypeError, NameError) as error:
        why = f"no schema can be made of its types: {str(error).splitlines()[0]}"
        _refuse(tool_name, why, "use JSON types, dataclasses, TypedDict, msgspec or pydantic models.", error)
    fallbacks = {name: found for name, one in adapters.items() if (found := one.get_default_value())}
    required = [name for name in adapters if name not in optional and name not in fallbacks]
    properties = {name: draft for (name, _), draft in drafts.items()}
    schema = _finish_schema(properties, shared.get("$defs", {}), signature, required)

    def bind(arguments: JsonObject) -> JsonObject:
        _check(arguments, schema)
        found = {name: default.value for name, default in fallbacks.items() if name not in optional}
        for name, value in arguments.items():
            adapter = adapters.get(name)
            try:
                found[name] = adapter.validate_python(value) if adapter else value
            except pydantic.ValidationError as error:
                raise ValidationError(_explain(name, error.errors(include_url=False))) from None
        return found

    return schema, bind


def _explain(name: str, errors: typing.Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(f"'{'.'.join(map(str, (name, *one['loc'])))}': {one['msg']}" for one in errors)


# --- both ----------------------------------------------------------------------------------------------


def _check(arguments: JsonObject, schema: JsonObject) -> None:
    problems = check(arguments, schema, "the arguments")
    if problems:
        raise ValidationError("; ".join(problems))


def _finish_schema(
    properties: Mapping[str, JsonObject], definitions: JsonObject, signature: _Signature, required: list[str]
) -> JsonObject:
    finished: JsonObject = {"type": "object", "properties": {}}
    for one in signature.parameters:
        drafted = dict(properties[one.name])
        if one.description:
            drafted["description"] = one.description
        if not one.required:
            _add_default(drafted, one.default)
        finished["properties"][one.name] = drafted
    if required:
        finished["required"] = required
    finished["additionalProperties"] = signature.open_ended
    return tidy_schema(finished, definitions)


def _add_default(schema: JsonObject, default: object) -> None:
    """Defaults that are JSON are shown to the model; others stay the function's own business."""
    try:
        schema.setdefault("default", msgspec.to_builtins(default))
    except (TypeError, ValueError):
        return
