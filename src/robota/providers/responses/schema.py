"""Schemas as the strict mode of the Responses API wants them, and arguments as the tool's own schema does.

Strict objects are closed and all their fields required; what was optional may be null instead. A model then
writes those nulls, so `drop_nulls` takes them out again before a tool sees them.
"""

from __future__ import annotations

from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject

_REFUSED = frozenset(
    ("allOf", "not", "if", "then", "else", "patternProperties", "dependentRequired", "dependentSchemas",
     "unevaluatedProperties", "propertyNames", "prefixItems", "contains", "uniqueItems")
)  # fmt: skip
_MAX_DEPTH = 64


class _NotStrictError(Exception):
    """The schema says something that strict mode cannot."""


def make_strict(schema: JsonObject) -> JsonObject | None:
    """The schema, closed; `None` when it would lose its meaning (open objects, exotic keywords)."""
    try:
        return _close(schema, _MAX_DEPTH) if schema.get("type") == "object" else None
    except _NotStrictError:
        return None


def is_strict(schema: JsonObject) -> bool:
    """Whether strict mode takes the schema as it is."""
    return make_strict(schema) == schema


def drop_nulls(arguments: str, schema: JsonObject) -> str:
    """The arguments without the nulls that stand for fields left out; unchanged when there are none."""
    if "null" not in arguments:
        return arguments
    try:
        value = decode(arguments)
    except ValueError:
        return arguments
    kept = _without_nulls(value, schema, schema)
    return arguments if kept == value else encode(kept).decode()


# --- closing -----------------------------------------------------------------------------------------


def _close(schema: Json, depth: int) -> JsonObject:
    if not isinstance(schema, dict) or not depth or not _REFUSED.isdisjoint(schema):
        raise _NotStrictError
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}  # strict mode refuses anything beside it
    closed = {name: value for name, value in schema.items() if name not in ("default", "oneOf")}
    for name in ("$defs", "definitions"):
        if name in closed:
            closed[name] = {key: _close(value, depth - 1) for key, value in closed[name].items()}
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        closed["anyOf"] = [_close(choice, depth - 1) for choice in choices]
    if "items" in closed:
        closed["items"] = _close(closed["items"], depth - 1)
    if "object" in _types(schema):
        _close_object(closed, schema, depth)
    elif not {"type", "anyOf", "enum", "const"} & closed.keys():
        raise _NotStrictError  # anything at all
    return closed


def _close_object(closed: JsonObject, schema: JsonObject, depth: int) -> None:
    if schema.get("additionalProperties") or (
        "additionalProperties" not in schema and not schema.get("properties") and depth != _MAX_DEPTH
    ):
        raise _NotStrictError  # a map with keys of the model's choice
    required = schema.get("required") or ()
    properties = {}
    for name, value in (schema.get("properties") or {}).items():
        field = _close(value, depth - 1)
        properties[name] = field if name in required else _nullable(field)
    closed["properties"] = properties
    closed["required"] = list(properties)
    closed["additionalProperties"] = False


def _nullable(schema: JsonObject) -> JsonObject:
    if _takes_null(schema):
        return schema
    if "type" in schema:
        wider = {**schema, "type": [*_types(schema), "null"]}
        if "enum" in schema:
            wider["enum"] = [*schema["enum"], None]
        if "const" not in schema:
            return wider
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]}


def _takes_null(schema: JsonObject) -> bool:
    if "null" in _types(schema) or None in schema.get("enum", ()):
        return True
    return any(_takes_null(choice) for choice in schema.get("anyOf", ()) if isinstance(choice, dict))


def _types(schema: JsonObject) -> list[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    return list(kind) if isinstance(kind, list) else []


# --- and opening again -------------------------------------------------------------------------------


def _without_nulls(value: Json, schema: Json, root: JsonObject) -> Json:
    schema = _resolve(schema, root)
    if isinstance(value, list):
        items = schema.get("items")
        return [_without_nulls(item, items, root) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    schema = _choice_for(value, schema, root)
    fields, required = schema.get("properties") or {}, schema.get("required") or ()
    kept = {}
    for name, item in value.items():
        field = _resolve(fields.get(name), root)
        if item is None and name in fields and name not in required and not _takes_null(_as_any_of(field)):
            continue
        kept[name] = _without_nulls(item, field, root)
    return kept


def _choice_for(value: JsonObject, schema: JsonObject, root: JsonObject) -> JsonObject:
    """The alternative that knows all the value's fields."""
    choices = [_resolve(choice, root) for choice in _as_any_of(schema).get("anyOf", ())]
    return next(
        (choice for choice in choices if value.keys() <= (choice.get("properties") or {}).keys()), schema
    )


def _as_any_of(schema: JsonObject) -> JsonObject:
    return {**schema, "anyOf": schema["oneOf"]} if "oneOf" in schema else schema


def _resolve(schema: Json, root: JsonObject) -> JsonObject:
    for _ in range(_MAX_DEPTH):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = root
        for name in reference.removeprefix("#").strip("/").split("/"):
            if name:
                schema = schema.get(name) if isinstance(schema, dict) else None
    return {}
