"""An OpenAPI document as a tree, and its schemas as JSON schemas for models.

It is read from text, references are followed, and what cannot be used is noted by name. In schemas references
become `$defs`, and those that do not lead back to themselves are put in place while the result stays small.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.jsontext import decode, encode, list_of, object_of
from robota.core.messages import Json, JsonObject
from robota.tools.json_schema import (
    DEFINITIONS,
    LISTS,
    MAPS,
    SINGLES,
    convert_inner,
    cut_schema,
    definition_name,
    find_used,
    tidy_schema,
)
from robota.tools.yaml_text import read_yaml

_MAX_HOPS = 30
MAX_INLINED = 5_000
"""Nodes of a tool's schema with all definitions put in place; a larger one keeps its `$defs`."""
MAX_SCHEMA_BYTES = 60_000
"""Of a tool's schema as it is sent: some ten thousand tokens with every request."""
MAX_LEVELS = 12
_PLAIN = frozenset({
    "type", "enum", "const", "format", "pattern", "description", "default", "minLength", "maxLength",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
    "uniqueItems", "minProperties", "maxProperties", "minContains", "maxContains", "dependentRequired",
})  # fmt: skip
_MAPS = MAPS - {"$defs"}
_UNSUPPORTED = frozenset({"$dynamicRef", "$dynamicAnchor", "$anchor", "$id"})


class UnsupportedError(Exception):
    """Something in the document that these tools cannot do; the text completes `… is left out: `."""


class Document(Struct, eq=False):
    """The tree, and the notes taken while reading it."""

    root: JsonObject
    version: str
    notes: list[str] = []

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def follow(self, node: Json) -> JsonObject:
        """The object a node is or refers to."""
        for _ in range(_MAX_HOPS):
            if not isinstance(node, dict):
                raise UnsupportedError(f"an object was expected where {str(node)[:40]!r} stands")
            if not isinstance(node.get("$ref"), str):
                return node
            node = self.resolve(node["$ref"])
        raise UnsupportedError("a reference leads in a circle")

    def resolve(self, ref: str) -> Json:
        """What a reference within the document points to."""
        if not ref.startswith("#"):
            raise UnsupportedError(f"the reference {ref[:100]!r} leads out of the document")
        from urllib.parse import unquote  # noqa: PLC0415 - a document without references does without

        target: Json = self.root
        for step in ref[1:].split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            elif isinstance(target, dict) and name in target:
                target = target[name]
            else:
                raise UnsupportedError(f"the reference {ref[:100]!r} leads nowhere")
        return target


def read_document(source: str | Mapping[str, Json]) -> JsonObject:
    """The tree of a document given as JSON or YAML text, or ready made."""
    if isinstance(source, Mapping):
        return dict(source)
    text = source.lstrip("\ufeff \t\r\n")
    try:
        tree: Json = decode(text) if text.startswith("{") else read_yaml(text)
    except ValueError as error:
        raise ConfigurationError(f"The OpenAPI document cannot be read: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigurationError(
            "The OpenAPI document is not an object: pass the text of a JSON or YAML file."
        )
    return tree


def check_version(root: JsonObject) -> str:
    if "swagger" in root:
        raise ConfigurationError("This is a Swagger 2 document: convert it to OpenAPI 3 first.")
    version = str(root.get("openapi", ""))
    if not re.fullmatch(r"3\.\d+(?:\.\d+)?(?:-\w+)?", version):
        raise ConfigurationError(
            f"The document says openapi: {version[:20]!r}, but 3.0 or 3.1 is needed: check that this is the "
            "right file."
        )
    return version


def is_token(name: str) -> bool:
    """Whether HTTP allows this as the name of a header or cookie."""
    return re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) is not None


class SchemaReader(Struct, eq=False):
    """Reads schemas of one document; a definition is converted once."""

    _document: Document
    _names: dict[str, str] = {}
    _definitions: dict[str, JsonObject] = {}
    _waiting: list[tuple[str, str]] = []
    """Definitions that have a name and are yet to be read: one by one, however long their chain is."""

    def read(self, schema: Json) -> JsonObject:
        """One schema, with references to definitions that `complete` puts in place."""
        if not isinstance(schema, dict):
            return {}
        known: JsonObject = {}
        for key, value in schema.items():
            if key in _MAPS:
                known[key] = {name: one for name, one in object_of(value).items() if not _is_output(one)}
            elif key in LISTS:
                known[key] = list_of(value)
            elif key in _PLAIN or key in SINGLES:
                known[key] = value
            elif key in _UNSUPPORTED:
                self._document.note(f"The schema keyword {key!r} is not checked and not shown to the model.")
        converted = convert_inner(known, self._read_any)
        if isinstance(schema.get("$ref"), str):
            converted["$ref"] = f"{DEFINITIONS}{self._define(schema['$ref'])}"
        _require(schema, converted)
        _modernise(schema, converted)
        is_loose = schema.get("nullable") is True and "type" not in schema and converted
        return {"anyOf": [converted, {"type": "null"}]} if is_loose else converted

    def complete(self, schema: JsonObject, label: str) -> JsonObject:
        """The schema of a tool with its definitions; a very large one is cut and noted."""
        while self._waiting:
            self._read_definition(*self._waiting.pop())
        used = find_used(schema, self._definitions)
        whole = {**schema, "$defs": used}
        with suppress(RecursionError):  # of a chain that is too long to be put in place
            if _measure(schema, used, {}) <= MAX_INLINED:
                whole = tidy_schema(schema, used)
        if len(encode(whole)) <= MAX_SCHEMA_BYTES:
            return whole
        return self._cut(schema, used, label)

    def _cut(self, schema: JsonObject, used: Mapping[str, JsonObject], label: str) -> JsonObject:
        cut: JsonObject = {}
        depth = 1
        for depth in range(1, MAX_LEVELS):
            deeper: JsonObject = cut_schema(schema, used, depth + 1)
            if cut and len(encode(deeper)) > MAX_SCHEMA_BYTES:
                break
            cut = deeper
        self._document.note(
            f"{label}: its schema is too large to be shown whole; what is nested more than {depth} deep may "
            "be anything."
        )
        return cut

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


def _is_output(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("readOnly") is True


def _require(schema: JsonObject, converted: JsonObject) -> None:
    properties = object_of(schema.get("properties"))
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


def _measure(node: Json, definitions: Mapping[str, JsonObject], known: dict[str, int]) -> int:
    """How many nodes there are with every definition put in place; one in itself counts once."""
    if isinstance(node, list):
        return 1 + sum(_measure(one, definitions, known) for one in node)
    if not isinstance(node, dict):
        return 1
    size = 1 + sum(_measure(one, definitions, known) for one in node.values())
    name = definition_name(node)
    if name in definitions:
        if name not in known:
            known[name] = 1
            known[name] = _measure(definitions[name], definitions, known)
        size += known[name]
    return size
