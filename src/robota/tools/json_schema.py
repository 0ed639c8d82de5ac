"""JSON schemas for models: written by hand in few words, and generated ones made fit.

Fit means no titles, definitions put in place, enums with a type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from robota.core.messages import Json, JsonObject

DEFINITIONS = "#/$defs/"
MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})
LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
SINGLES = frozenset({
    "items", "additionalProperties", "not", "propertyNames", "contains", "if", "then", "else",
    "unevaluatedProperties", "unevaluatedItems",
})  # fmt: skip
_DROPPED = frozenset({"title", "discriminator"})
"""A discriminator points into `$defs`; the constant tags in the branches say the same."""


def arguments_schema(properties: JsonObject, *required: str) -> JsonObject:
    """What a tool takes, and nothing besides."""
    needed: JsonObject = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def string(description: str, **limits: Json) -> JsonObject:
    return {"type": "string", **limits, "description": description}


def integer(description: str, **limits: Json) -> JsonObject:
    return {"type": "integer", **limits, "description": description}


def boolean(description: str) -> JsonObject:
    return {"type": "boolean", "description": description}


def camel_spellings(parameters: JsonObject) -> dict[str, str]:
    """Arguments as some models spell them, `filePath` for `file_path`, with their own names."""
    words = {name: name.split("_") for name in parameters["properties"]}
    return {first + "".join(map(str.title, rest)): name for name, (first, *rest) in words.items() if rest}


def tidy_schema(schema: JsonObject, definitions: Mapping[str, JsonObject]) -> JsonObject:
    """The schema with every definition inlined that does not contain itself; those stay in `$defs`."""
    recursive = {name for name, inner in definitions.items() if name in find_used(inner, definitions)}
    plain = {name: inner for name, inner in definitions.items() if name not in recursive}
    tidied: JsonObject = cut_schema(schema, plain)
    kept = {name: cut_schema(definitions[name], plain) for name in sorted(recursive)}
    return {**tidied, "$defs": kept} if kept else tidied


def cut_schema(schema: Json, definitions: Mapping[str, JsonObject], depth: int = -1) -> Json:
    """The schema with every definition put in place, down to a depth; what lies deeper may be anything."""
    if not isinstance(schema, dict):
        return schema
    seen: set[str] = set()
    while (name := definition_name(schema)) in definitions and name not in seen:
        seen.add(name)  # a definition may be another's name, and lead in a circle
        schema = {**definitions[name], **{key: value for key, value in schema.items() if key != "$ref"}}
    if depth == 0 or name in seen:
        return {key: schema[key] for key in ("type", "description") if key in schema}
    kept = {key: value for key, value in schema.items() if key not in _DROPPED}
    return _with_type(convert_inner(kept, lambda inner: cut_schema(inner, definitions, depth - 1)))


def convert_inner(schema: JsonObject, convert: Callable[[Json], Json]) -> JsonObject:
    """The schema with another one in the place of each that stands directly in it."""
    converted: JsonObject = {}
    for key, value in schema.items():
        if key in MAPS and isinstance(value, dict):
            converted[key] = {name: convert(inner) for name, inner in value.items()}
        elif key in LISTS and isinstance(value, list):
            converted[key] = [convert(inner) for inner in value]
        else:
            converted[key] = convert(value) if key in SINGLES else value
    return converted


def _with_type(schema: JsonObject) -> JsonObject:
    """Some services refuse an enum that does not say what it consists of."""
    values = schema.get("enum", ())
    if "type" not in schema and values:
        for kind, word in ((str, "string"), (int, "integer")):
            if all(type(value) is kind for value in values):
                return {"type": word, **schema}
    return schema


def definition_name(schema: JsonObject) -> str:
    """Which of `$defs` a schema refers to; empty if it does not."""
    ref = schema.get("$ref")
    return ref[len(DEFINITIONS) :] if isinstance(ref, str) and ref.startswith(DEFINITIONS) else ""


def find_used(schema: Json, definitions: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
    """The definitions that a schema leads to, directly or through others."""
    found: dict[str, JsonObject] = {}
    waiting: list[Json] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            waiting += node.values()
            name = definition_name(node)
            if name in definitions and name not in found:
                found[name] = definitions[name]
                waiting.append(found[name])
    return found
