"""Which fields of a decoded value are secrets: by their names, their kinds and the fields beside them."""

from __future__ import annotations

from robota._lazy_pattern import lazy_pattern
from robota.core.messages import Json
from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.rules import REDACTED, word_set
from robota.sessions.redaction.values import is_complaint, looks_chosen, looks_issued, repeats_name

_NAME_FIELDS = ("ParameterKey", "path", "name", "key", "header", "field", "variable", "Name", "Key", "k")
_VALUE_FIELDS = ("ParameterValue", "value", "values", "val", "Value", "v", "defaultValue")
_SCHEMA_TYPES = frozenset(("string", "number", "integer", "object", "array", "boolean", "null"))
_SCHEMA_WORDS = word_set(
    """
    type description title $ref anyOf oneOf allOf not enum const format pattern minLength maxLength minimum
    maximum items properties required default examples example nullable deprecated writeOnly readOnly
    additionalProperties minItems maxItems uniqueItems x-order order
    """
)
PROPERTY_FIELDS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))


def is_schema(value: Json) -> bool:
    """Whether an object describes a value (JSON schema) instead of being one."""
    if not isinstance(value, dict) or not value:
        return False
    if "shape" in value:  # a service description
        return True
    if "value" in value:
        return False
    kind = value.get("type")
    if isinstance(kind, str):
        return kind in _SCHEMA_TYPES
    if isinstance(kind, list):
        return bool(kind) and all(isinstance(item, str) and item in _SCHEMA_TYPES for item in kind)
    return all(isinstance(key, str) and key in _SCHEMA_WORDS for key in value)


def hides(strength: Strength, value: Json) -> bool:
    """Whether the value under a name of this strength is to be replaced."""
    if strength is Strength.NONE or value is None or isinstance(value, bool) or value == REDACTED:
        return False
    if isinstance(value, (str, bytes)):
        if strength is Strength.WEAK:
            return isinstance(value, str) and looks_issued(value)
        return len(value) > 0
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return strength >= Strength.MANY and len(value) > 0 and not is_schema(value)
    return strength is Strength.FULL


def is_exempt(name: str, value: Json, context: str) -> bool:
    """Names of fields in a schema, and the working directory that shares a name with passwords."""
    if context in PROPERTY_FIELDS and isinstance(value, dict):
        return True
    lowered = name.lower()
    if lowered.endswith("pwd"):
        return isinstance(value, str) and (value[:1] in "/~." or value[1:3] in (":\\", ":/"))
    if lowered.endswith("string"):  # what is in that JSON is looked at
        return isinstance(value, str) and value.startswith("{")
    if lowered == "id-token":  # a permission of a workflow
        return value in ("read", "write", "none")
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) and is_complaint(item) for item in value)
    if lowered == "cookie":
        return isinstance(value, str) and _VERSION.fullmatch(value) is not None
    return lowered.endswith("credentials") and value in ("include", "omit", "same-origin")


def named_value(source: dict[Json, Json]) -> dict[str, Strength]:
    """The field that holds the value of a `{name: …, value: …}` object, if its name is a secret's."""
    hidden: dict[str, Strength] = {}
    for field in _NAME_FIELDS:
        name = source.get(field)
        if not isinstance(name, str) or len(name) > 96:
            continue
        strength = name_strength(name)
        for held in _VALUE_FIELDS if strength else ():
            value = source.get(held)
            label = isinstance(value, str) and value.isascii() and repeats_name(name, value)  # of a menu
            if held in source and held != field and not label:
                hidden[held] = strength
    for field in ("id", "label"):
        name = source.get(field)
        named = isinstance(name, str) and name_strength(name[-96:]) >= Strength.TEXT
        if named and looks_chosen(str(source.get("value"))):
            hidden["value"] = Strength.TEXT
    return hidden | _fields_of_kinds(source)


def _fields_of_kinds(source: dict[Json, Json]) -> dict[str, Strength]:
    """The secret fields of web keys, logins, wallets and the secrets of Kubernetes."""
    hidden: dict[str, Strength] = {}
    if "kty" in source:
        hidden = dict.fromkeys(("d", "p", "q", "dp", "dq", "qi", "k"), Strength.TEXT)
    if not source.keys().isdisjoint(("user", "username", "login", "email")):
        hidden |= dict.fromkeys(("pass", "pw"), Strength.TEXT)
    if source.get("kind") == "Secret" and "apiVersion" in source:
        hidden |= dict.fromkeys(("data", "stringData"), Strength.FULL)
    for field in ("mnemonic", "seed_phrase"):
        if field in source and str(source[field]).count(" ") >= _WALLET - 1:
            hidden[field] = Strength.TEXT
    return hidden


_VERSION = lazy_pattern(r"[\^~<>=v]*\d+(?:\.\w+)+\S*")
_WALLET = 12
"""Words that open one."""
TELLING_FIELDS = frozenset(
    (*_NAME_FIELDS, "id", "label", "kty", "pass", "pw", "kind", "mnemonic", "seed_phrase")
)
