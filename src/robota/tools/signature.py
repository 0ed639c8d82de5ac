"""From a function's signature to the JSON schema of its arguments and to checked keyword arguments.

msgspec does the work. pydantic is imported only when an annotation asks for it (a model, a `Field`) or is a
type that msgspec cannot express. Both are strict in the same way: the text `"1"` is not an integer, because
what the schema refuses the function must not get; `1.0` is one, as JSON Schema has it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from robota.core.errors import ValidationError
from robota.core.messages import Json, JsonObject
from robota.core.schema import check
from robota.core.structured import contains_pydantic, describe_problems, is_pydantic
from robota.tools.json_schema import tidy_schema
from robota.tools.parameters import (
    Function,
    Parameter,
    Signature,
    find_choices,
    is_async_function,
    read_signature,
    refuse,
)

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


def bind_signature(function: Function, tool_name: str, scope: Mapping[str, object]) -> Binding:
    """The binding of a function whose signature says what it takes; `scope` has names its annotations use."""
    signature = read_signature(function, tool_name, scope)
    if _asks_for_pydantic(signature.parameters):
        schema, bind = _bind_with_pydantic(signature, tool_name)
    else:
        try:
            schema, bind = _bind_with_msgspec(signature)
        except TypeError:  # such as `datetime | str`, which msgspec does not tell apart
            schema, bind = _bind_with_pydantic(signature, tool_name)
        except (NameError, AttributeError, ValueError) as error:
            refuse(tool_name, f"its types cannot be resolved: {error}", "import them at module level.", error)
    return Binding(
        parameters=schema, bind=bind, contexts=signature.contexts, is_async=is_async_function(function)
    )


def bind_schema(
    function: Function, tool_name: str, schema: JsonObject, scope: Mapping[str, object]
) -> Binding:
    """The binding of a function that comes with its schema.

    It is called with the arguments as keywords. If its only parameter is no property of the schema, it gets
    all arguments as one dict.
    """
    signature = read_signature(function, tool_name, scope)
    properties: Json = schema.get("properties")
    known: Json = properties if isinstance(properties, dict) else {}
    strangers = [one.name for one in signature.parameters if one.required and one.name not in known]
    whole = strangers[0] if strangers and len(signature.parameters) == 1 else None
    if strangers and whole is None:
        refuse(
            tool_name,
            f"its function needs {strangers[0]!r}, which its schema does not have",
            "add it to the properties, or take all arguments as one dict.",
        )

    names = [one.name for one in signature.parameters]

    def bind(arguments: JsonObject) -> JsonObject:
        _check(arguments, schema)
        if whole:
            return {whole: arguments}
        unknown = [] if signature.others is not UNSET else [name for name in arguments if name not in names]
        if unknown:
            raise ValidationError(f"unknown field {unknown[0]!r}; allowed: {', '.join(map(repr, names))}")
        return dict(arguments)

    return Binding(
        parameters=schema, bind=bind, contexts=signature.contexts, is_async=is_async_function(function)
    )


# --- msgspec -------------------------------------------------------------------------------------------


def _bind_with_msgspec(signature: Signature) -> tuple[JsonObject, Binder]:
    fields = [
        (one.name, one.annotation) if one.required else (one.name, one.annotation, UNSET)
        for one in signature.parameters
    ]
    typed = signature.others not in (UNSET, Any)
    closed = signature.others is UNSET
    model = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=closed)
    (root, *others), definitions = msgspec.json.schema_components(
        [model, *([signature.others] if typed else [])], schema_hook=_path_schema, ref_template=REF_TEMPLATE
    )
    drafted = definitions.pop(root["$ref"].rpartition("/")[2])
    _restore_order([drafted, others, definitions], signature)
    schema = _finish_schema(drafted["properties"], definitions, signature, drafted["required"])
    if typed:
        schema = {**schema, "additionalProperties": tidy_schema(others[0], definitions)}
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
            rest = {name: value for name, value in arguments.items() if name not in names}
            if typed:
                _check(rest, {"additionalProperties": schema["additionalProperties"]})
                rest = convert(rest, dict[str, signature.others], strict=False, dec_hook=_read_path)  # type: ignore[name-defined]
            found.update(rest)
        return found

    return schema, bind


def _restore_order(schemas: Json, signature: Signature) -> None:
    """msgspec sorts the values of an `Enum` or `Literal`; the author's order may say what is usual."""
    orders = list(find_choices([*(one.annotation for one in signature.parameters), signature.others], set()))
    waiting = [schemas] if orders else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            values = node.get("enum")
            if isinstance(values, list):
                same = (order for order in orders if set(map(repr, order)) == set(map(repr, values)))
                node["enum"] = next(same, values)
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


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


def _asks_for_pydantic(parameters: list[Parameter]) -> bool:
    if "pydantic" not in sys.modules and "annotated_types" not in sys.modules:
        return False  # then no annotation can be made of it
    seen: set[int] = set()
    return any(
        is_pydantic(type(one.default)) or contains_pydantic(one.annotation, seen) for one in parameters
    )


def _bind_with_pydantic(signature: Signature, tool_name: str) -> tuple[JsonObject, Binder]:
    import pydantic  # noqa: PLC0415 - only functions that need it pay for it
    from pydantic.fields import FieldInfo  # noqa: PLC0415

    fields: dict[str, Any] = {}
    """By names of our own: a parameter may be called like a method of the model."""
    own: set[str] = set()
    """Parameters whose default is the function's business."""
    others: Any = UNSET if signature.others in (UNSET, Any) else signature.others
    try:
        for at, one in enumerate(signature.parameters):
            kind, label = one.annotation, pydantic.Field(alias=one.label)
            if isinstance(one.default, FieldInfo):
                kind = Annotated[kind, one.default]
            elif not one.required:
                own.add(one.name)
            kind = Annotated[kind, label]
            fields[f"field{at}"] = (kind, None) if one.name in own else kind
        model = pydantic.create_model("Arguments", **fields)
        adapter = None if others is UNSET else pydantic.TypeAdapter(dict[str, others])
        drafted = model.model_json_schema(ref_template="#/$defs/{model}")
    except (pydantic.PydanticUserError, TypeError, NameError) as error:
        why = f"no schema can be made of its types: {str(error).splitlines()[0].rstrip('.')}"
        refuse(tool_name, why, "use JSON types, dataclasses, TypedDict, msgspec or pydantic models.", error)
    properties = {one.name: drafted["properties"][one.label] for one in signature.parameters}
    for name in own:
        del properties[name]["default"]
    schema = _finish_schema(properties, drafted.get("$defs", {}), signature, drafted.get("required", []))
    if adapter is not None:
        schema = {**schema, "additionalProperties": adapter.json_schema()["additionalProperties"]}
    names = dict(zip(fields, signature.parameters, strict=True))
    labels = {one.label for one in signature.parameters}

    def bind(arguments: JsonObject) -> JsonObject:
        _check(arguments, schema)
        rest = {name: value for name, value in arguments.items() if name not in labels}
        try:
            made = model.model_validate({name: arguments[name] for name in arguments if name in labels})
            rest = rest if adapter is None else adapter.validate_python(rest)
        except pydantic.ValidationError as error:
            raise ValidationError(describe_problems(error)) from None
        given = made.model_fields_set
        kept = {
            one.name: getattr(made, at) for at, one in names.items() if at in given or one.name not in own
        }
        return {**kept, **rest}

    return schema, bind


# --- both ----------------------------------------------------------------------------------------------


def _check(arguments: JsonObject, schema: JsonObject) -> None:
    problems = check(arguments, schema, "the arguments")
    if problems:
        raise ValidationError("; ".join(problems))


def _finish_schema(
    properties: Mapping[str, JsonObject], definitions: JsonObject, signature: Signature, required: list[str]
) -> JsonObject:
    finished: JsonObject = {"type": "object", "properties": {}}
    for one in signature.parameters:
        drafted = dict(properties[one.name])
        if one.description:
            drafted["description"] = one.description
        if not one.required and one.default is not UNSET:
            _add_default(drafted, one.default)
        finished["properties"][one.label] = drafted
    if required:
        finished["required"] = required
    finished["additionalProperties"] = signature.others is not UNSET
    return tidy_schema(finished, definitions)


def _add_default(schema: JsonObject, default: object) -> None:
    """Defaults that are JSON are shown to the model; others stay the function's own business."""
    try:
        schema.setdefault("default", msgspec.to_builtins(default))
    except (TypeError, ValueError):
        return
