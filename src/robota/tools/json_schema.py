"""JSON schemas for models: written by hand in few words, and generated ones made fit.

Fit means no titles, definitions put in place, enums with a type.
"""

from __future__ import annotations

from collections.abc import Mapping

from robota.core.messages import Json, JsonObject

DEFINITIONS = "#/$defs/"
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLES = frozenset({
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
    tidied: JsonObject = _tidy(schema, definitions, recursive)
    kept = {name: _tidy(definitions[name], definitions, recursive) for name in sorted(recursive)}
    return {**tidied, "$defs": kept} if kept else tidied


def _tidy(schema: Json, definitions: Mapping[str, JsonObject], recursive: set[str]) -> Json:
    if not isinstance(schema, dict):
        return schema
    name = definition_name(schema)
    if name in definitions and name not in recursive:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _tidy({**definitions[name], **rest}, definitions, recursive)
    tidied: JsonObject = {}
    for key, value in schema.items():
        if key in _DROPPED:
            continue
        if key in _MAPS and isinstance(value, dict):
            tidied[key] = {one: _tidy(inner, definitions, recursive) for one, inner in value.items()}
        elif key in _LISTS and isinstance(value, list):
            tidied[key] = [_tidy(inner, definitions, recursive) for inner in value]
        else:
            tidied[key] = _tidy(value, definitions, recursive) if key in _SINGLES else value
    return _with_type(tidied)


def cut_schema(schema: Json, definitions: Mapping[str, JsonObject], depth: int) -> Json:
    """The schema down to a depth, with every definition put in place; what lies deeper may be anything."""
    if not isinstance(schema, dict):
        return schema
    seen: set[str] = set()
    while (name := definition_name(schema)) in definitions and name not in seen:
        seen.add(name)  # a definition may be another's name, and lead in a circle
        schema = {**definitions[name], **{key: value for key, value in schema.items() if key != "$ref"}}
    if depth == 0 or name in seen:
        return {key: schema[key] for key in ("type", "description") if key in schema}
    cut: JsonObject = {}
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            cut[key] = {one: cut_schema(inner, definitions, depth - 1) for one, inner in value.items()}
        elif key in _LISTS and isinstance(value, list):
            cut[key] = [cut_schema(inner, definitions, depth - 1) for inner in value]
        else:
            cut[key] = cut_schema(value, definitions, depth - 1) if key in _SINGLES else value
    return _with_type(cut)


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
