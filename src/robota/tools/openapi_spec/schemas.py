"""Schemas of an OpenAPI document as JSON schemas for models.

References become `$defs`, and those that do not lead back to themselves are put in place as long as the
result stays small.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from robota.core.messages import Json, JsonObject
from robota.tools.json_schema import tidy_schema
from robota.tools.openapi_spec.document import Document, UnsupportedError, list_of, mapping_of

MAX_INLINED = 5_000
"""Nodes of a tool's schema with all definitions put in place; a larger one keeps its `$defs`."""
_PREFIX = "#/$defs/"
_PLAIN = frozenset({
    "type", "enum", "const", "format", "pattern", "description", "default", "minLength", "maxLength",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
    "uniqueItems", "minProperties", "maxProperties",
})  # fmt: skip
_MAPS = frozenset({"properties", "patternProperties"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLES = frozenset({"items", "additionalProperties", "not"})
_UNSUPPORTED = frozenset({
    "$dynamicRef", "$dynamicAnchor", "$anchor", "$id", "if", "then", "else", "dependentSchemas",
    "dependentRequired", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames",
})  # fmt: skip


class SchemaReader:
    """Reads schemas of one document; a definition is converted once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        self._definitions: dict[str, JsonObject] = {}
        self._waiting: list[tuple[str, str]] = []
        """Definitions that have a name and are yet to be read: one by one, however long their chain is."""

    def read(self, schema: Json) -> JsonObject:
        """One schema, with references to definitions that `complete` puts in place."""
        if not isinstance(schema, dict):
            return {}
        converted: JsonObject = {}
        for key, value in schema.items():
            if key in _PLAIN:
                converted[key] = value
            elif key in _MAPS:
                converted[key] = {
                    name: self._read_any(one)
                    for name, one in mapping_of(value).items()
                    if not _is_output(one)
                }
            elif key in _LISTS:
                converted[key] = [self._read_any(one) for one in list_of(value)]
            elif key in _SINGLES:
                converted[key] = self._read_any(value)
            elif key in _UNSUPPORTED:
                self._document.note(f"The schema keyword {key!r} is not checked and not shown to the model.")
        if isinstance(schema.get("$ref"), str):
            converted["$ref"] = f"{_PREFIX}{self._define(schema['$ref'])}"
        _require(schema, converted)
        _modernise(schema, converted)
        return converted

    def complete(self, schema: JsonObject) -> JsonObject:
        """The schema of a tool with its definitions."""
        while self._waiting:
            self._read_definition(*self._waiting.pop())
        used = self._reachable(schema)
        with suppress(RecursionError):  # of a chain that is too long to be put in place
            if _measure(schema, used, {}) <= MAX_INLINED:
                return tidy_schema(schema, used)
        return {**schema, "$defs": used}

    def _read_any(self, schema: Json) -> Json:
        return schema if isinstance(schema, bool) else self.read(schema)

    def _define(self, ref: str) -> str:
        if ref in self._names:
            return self._names[ref]
        stem = "".join(char if char.isalnum() else "_" for char in ref.rpartition("/")[2]) or "schema"
        name, number = stem, 1
        while name in self._definitions:
            number += 1
            name = f"{stem}_{number}"
        self._names[ref] = name
        self._definitions[name] = {}
        self._waiting.append((name, ref))
        return name

    def _read_definition(self, name: str, ref: str) -> None:
        try:
            self._definitions[name] = self.read(self._document.resolve(ref))
        except UnsupportedError as problem:
            self._document.note(f"A schema is taken for anything: {problem}.")
        except RecursionError:
            self._document.note(f"A schema is taken for anything: {ref!r} is nested too deeply.")

    def _reachable(self, schema: JsonObject) -> dict[str, JsonObject]:
        found: dict[str, JsonObject] = {}
        waiting: list[Json] = [schema]
        while waiting:
            node = waiting.pop()
            if isinstance(node, list):
                waiting += node
            elif isinstance(node, dict):
                waiting += node.values()
                name = _definition_name(node)
                if name in self._definitions and name not in found:
                    found[name] = self._definitions[name]
                    waiting.append(found[name])
        return found


def _is_output(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("readOnly") is True


def _require(schema: JsonObject, converted: JsonObject) -> None:
    properties = mapping_of(schema.get("properties"))
    required = [
        name
        for name in list_of(schema.get("required"))
        if isinstance(name, str) and not _is_output(properties.get(name))
    ]
    if required:
        converted["required"] = required


def _modernise(schema: JsonObject, converted: JsonObject) -> None:
    """What OpenAPI 3.0 writes in a way of its own."""
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        converted["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            converted["enum"] = [*schema["enum"], None]
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(exclusive), bool):
            del converted[exclusive]
            if schema[exclusive] and bound in schema:
                converted[exclusive] = converted.pop(bound)


def _definition_name(node: JsonObject) -> str:
    ref = node.get("$ref")
    return ref.removeprefix(_PREFIX) if isinstance(ref, str) and ref.startswith(_PREFIX) else ""


def _measure(node: Json, definitions: Mapping[str, JsonObject], known: dict[str, int]) -> int:
    """How many nodes there are with every definition put in place; one in itself counts once."""
    if isinstance(node, list):
        return 1 + sum(_measure(one, definitions, known) for one in node)
    if not isinstance(node, dict):
        return 1
    size = 1 + sum(_measure(one, definitions, known) for one in node.values())
    name = _definition_name(node)
    if name in definitions:
        if name not in known:
            known[name] = 1
            known[name] = _measure(definitions[name], definitions, known)
        size += known[name]
    return size
