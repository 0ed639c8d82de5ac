"""Whether a value fits its JSON schema, and if not, why, in words a model can act on.

The verdict is that of `jsonschema_rs` (draft 2020-12 unless a schema names another), loaded with the first
check; the sentences are ours. `check` is total: whatever the schema or the value look like, it answers and
never raises. What cannot be understood of a schema is no obstacle: it is left out, and the rest is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from robota.core.messages import Json, JsonObject

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

MAX_DEPTH = 150
"""Values inside values; what is nested deeper is refused, so that neither side can exhaust the stack."""
MAX_WIDTH = 5_000_000
MAX_FORMS = 2_000
"""Ways to read a value by a schema whose alternatives contain themselves; of more, none is explained."""
MAX_BACKTRACKING = 100_000
"""Steps of a pattern that no automaton can match, a few milliseconds."""
MAX_MENDED = 50
MAX_KNOWN = 256
MAX_SHOWN = 60
"""Characters of a wrong string that a complaint repeats."""

Path: TypeAlias = Sequence[str | int]

_TYPES = {
    "string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean",
    "array": "a list", "object": "an object", "null": "null",
}  # fmt: skip
_LIMITS = {
    "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than", "multipleOf": "a multiple of",
}  # fmt: skip
_SIZES = {
    "minLength": ("least", "character"), "maxLength": ("most", "character"), "minItems": ("least", "item"),
    "maxItems": ("most", "item"), "minProperties": ("least", "field"), "maxProperties": ("most", "field"),
}  # fmt: skip
_PLAIN = {
    "falseSchema": "is not allowed",
    "uniqueItems": "must not have the same item twice",
    "contains": "must have an item of the wanted form",
    "minContains": "must have more items of the wanted form",
    "maxContains": "must have fewer items of the form that is counted",
    "not": "must not have the form that its schema excludes",
}
_CONTAINERS = (dict, list, tuple)
_DATA = frozenset(("const", "enum", "default", "example", "examples"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_REFERENCES = ("$ref", "$dynamicRef", "$schema")
_OLD_DRAFTS = ("://json-schema.org/draft-", "://json-schema.org/draft/2019-09/")
"""How the names of drafts contain themselves in which a list under `items` says what each place holds."""


def check(value: Json, schema: Json, name: str = "the value") -> list[str]:
    """What is wrong with `value`, a phrase per problem; empty when it fits. The root is called `name`."""
    known = _known.get(id(schema))
    if known is None or known.given is not schema:
        if len(_known) >= MAX_KNOWN:
            _known.clear()
        known = _known[id(schema)] = _compile(schema)
    depth = _depth(value)
    if depth is None or known.too_deep:
        return [f"{name} or its schema is nested too deeply to be checked"]
    if known.validator is None:
        return []
    try:
        if known.validator.is_valid(value):
            return []
        if known.branches**depth > MAX_FORMS:
            return [f"{name} fits none of the allowed forms, which are too many to be listed"]
        words = _Words(value, known.schema, name)
        return [phrase for error in known.validator.iter_errors(value) for phrase in words.explain(error)]
    except ValueError as error:
        return [f"{name} is not a JSON value: {error}"]


def _depth(value: Json) -> int | None:
    """How deeply values are nested; `None` for more than anybody means."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for depth in range(MAX_DEPTH):
        if not level:
            return depth
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, _CONTAINERS)
        ]
        if len(level) > MAX_WIDTH:
            return None
    return None


# --- schemas ---------------------------------------------------------------------------------------------


class _Known(Struct, frozen=True, kw_only=True, eq=False):
    given: Json
    """Kept so that no other schema gets its identity."""
    schema: Json = True
    """As it is checked."""
    validator: Validator | None = None
    branches: int = 1
    """How many alternatives a schema offers that may contain itself."""
    too_deep: bool = False


_known: dict[int, _Known] = {}
"""Compiled once per schema: a tool's is checked with every call."""


def _compile(given: Json) -> _Known:
    if not isinstance(given, dict | bool):
        return _Known(given=given)
    if _depth(given) is None:
        return _Known(given=given, too_deep=True)
    schema = _modernise(given)
    validator = _build(schema)
    nodes = list(_nodes(schema))
    lists = [node.get(key) for node in nodes for key in ("anyOf", "oneOf")]
    branches = (
        [len(one) for one in lists if isinstance(one, list)] if any("$ref" in one for one in nodes) else []
    )
    return _Known(given=given, schema=schema, validator=validator, branches=max(branches, default=1))


def _nodes(schema: Json) -> Iterator[JsonObject]:
    """Every object in a schema."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _modernise(schema: Json, *, names: bool = False, old: bool = False) -> Json:
    """A copy with what OpenAPI and older drafts write put as draft 2020-12 has it.

    `names`: the keys are somebody's names, not keywords. `old`: the schema around names an older draft, in
    which a list of items means what it says and `prefixItems` nothing.
    """
    if isinstance(schema, list | tuple):
        return [_modernise(one, old=old) for one in schema]
    if not isinstance(schema, dict):
        return schema
    draft = None if names else schema.get("$schema")
    if isinstance(draft, str):
        old = any(part in draft for part in _OLD_DRAFTS)
    copy: JsonObject = {}
    for key, value in schema.items():
        if not names and key in _DATA:
            copy[key] = deepcopy(value)
        else:
            copy[key] = _modernise(value, names=not names and key in _NAMED, old=old)
    if names:
        return copy
    if isinstance(copy.get("items"), list) and not old:
        copy["prefixItems"], copy["items"] = copy["items"], copy.pop("additionalItems", True)
    return _allow_null(copy) if copy.pop("nullable", False) is True else copy


def _allow_null(schema: JsonObject) -> JsonObject:
    wanted, allowed = schema.get("type"), schema.get("enum")
    if not isinstance(wanted, str | list):
        root: JsonObject = {
            key: schema.pop(key) for key in ("$schema", "$id", "$defs", "definitions") if key in schema
        }
        return {**root, "anyOf": [schema, {"type": "null"}]}
    types = [wanted] if isinstance(wanted, str) else wanted
    null = {"enum": [*allowed, None]} if isinstance(allowed, list) and None not in allowed else {}
    return {**schema, "type": types if "null" in types else [*types, "null"], **null}


def _build(schema: Json) -> Validator | None:
    """A validator of what can be understood of the schema; `None` if that is nothing."""
    import jsonschema_rs  # noqa: PLC0415 - 15 MB, for those who check something

    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKING)
    for _ in range(MAX_MENDED):
        try:
            return jsonschema_rs.validator_for(schema, offline=True, pattern_options=patterns)
        except jsonschema_rs.ValidationError as error:
            if not _mend(schema, error):
                return None
        except ValueError:  # not JSON
            return None
    return None


def _mend(schema: Json, error: ValidationError) -> bool:
    """Take out the keyword that was complained about; false if there is none."""
    path = list(error.instance_path)
    while path and isinstance(path[-1], int):
        path.pop()  # with one of its items wrong, a list means nothing
    if path:
        holder = _find(schema, path[:-1])
        return isinstance(holder, dict) and holder.pop(path[-1], ...) is not ...
    return _drop_references(schema, str(error))


def _drop_references(schema: Json, complaint: str) -> bool:
    """Take out the references that lead nowhere, named in the complaint."""
    wrong = [
        (node, key)
        for node in _nodes(schema)
        for key in _REFERENCES
        if isinstance(target := node.get(key), str) and target.strip("#") and target.strip("#") in complaint
    ]
    for node, key in wrong:
        del node[key]
    return bool(wrong)


def _find(root: Json, path: Path) -> Json:
    """What lies at a path; `None` if it leads nowhere."""
    try:
        for step in path:
            root = root[step]
    except (KeyError, IndexError, TypeError):
        return None
    return root


# --- words -----------------------------------------------------------------------------------------------


class _Words(Struct, eq=False):
    """Complaints about one value."""

    value: Json
    schema: Json
    name: str

    def explain(self, error: ValidationError) -> list[str]:
        kind, place = error.kind.name, self.place(error.instance_path)
        if kind in ("anyOf", "oneOf"):
            return self.choose(error)
        if kind in ("additionalProperties", "unevaluatedProperties") or _closes(error):
            return self.refuse_fields(error)
        if kind == "required":
            return [f"missing required field {self.place([*error.instance_path, error.kind.value])}"]
        if kind == "propertyNames":
            inner = error.kind.value
            wrong = _Words(inner.instance, self.schema, f"the field name {_show(inner.instance)} in {place}")
            return wrong.explain(inner)
        return [f"{place} {self.describe(kind, error)}"]

    def describe(self, kind: str, error: ValidationError) -> str:
        wrong, wanted = _find(self.value, error.instance_path), error.kind.value
        if kind == "type":
            said = _find(self.schema, error.schema_path)
            return _refuse_type(said if isinstance(said, list) else wanted, wrong)
        if kind in _LIMITS:
            return f"must be {_LIMITS[kind]} {_show(wanted)}, got {_show(wrong)}"
        if kind in _SIZES:
            least, noun = _SIZES[kind]
            return f"must have at {least} {_count(wanted, noun)}, got {len(wrong)}"
        if kind == "enum":
            return f"must be one of {', '.join(map(_show, wanted))}, got {_describe(wrong)}"
        if kind == "const":
            return f"must be {_show(wanted)}, got {_describe(wrong)}"
        if kind == "pattern":
            pattern = _printable(str(_find(self.schema, error.schema_path)))
            too_long = type(error.kind).__name__ == "BacktrackLimitExceeded"
            words = "takes too long to be compared with" if too_long else "must match"
            return f"{words} the pattern {pattern}, got {_describe(wrong)}"
        last = error.schema_path[-1] if error.schema_path else ""
        return _PLAIN.get(str(last)) or _PLAIN.get(kind) or f"does not fit: {_printable(error.message)}"

    def refuse_fields(self, error: ValidationError) -> list[str]:
        where, names = error.instance_path, error.kind.value
        holder = _find(self.schema, error.schema_path[:-1])
        properties = holder.get("properties") if isinstance(holder, dict) else None
        allowed = ", ".join(f"'{_printable(str(one))}'" for one in properties or ()) or "none"
        unknown = names if isinstance(names, list) else list(_find(self.value, where))
        return [f"unknown field {self.place([*where, one])}; allowed: {allowed}" for one in unknown]

    def choose(self, error: ValidationError) -> list[str]:
        """Why no branch fits: the complaints of the one that was probably meant, or what all of them want."""
        place, branches = self.place(error.instance_path), error.kind.value
        if not all(branches):
            return [f"{place} fits more than one of the forms of which exactly one is allowed"]
        depth = len(error.instance_path)
        kinds = [[one for one in found if _is_at(one, depth, "type")] for found in branches]
        near = [found for found, far in zip(branches, kinds, strict=True) if not far]
        tagged = [found for found in near if not any(_is_at(one, depth + 1, "const") for one in found)]
        near = tagged or near
        if len(near) == 1:
            return [phrase for one in near[0] for phrase in self.explain(one)]
        if not near:
            wanted = [name for far in kinds for one in far for name in one.kind.value]
            return [f"{place} {_refuse_type(wanted, _find(self.value, error.instance_path))}"]
        reasons = "; or ".join(dict.fromkeys(self.explain(found[0])[0] for found in near))
        return [f"{place} fits none of the allowed forms: {reasons}"]

    def place(self, path: Path) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        return f"'{_printable(''.join(steps).removeprefix('.'))}'" if path else self.name


def _closes(error: ValidationError) -> bool:
    return error.kind.name == "falseSchema" and list(error.schema_path[-1:]) == ["additionalProperties"]


def _is_at(error: ValidationError, depth: int, kind: str) -> bool:
    return error.kind.name == kind and len(error.instance_path) == depth


def _refuse_type(wanted: Iterable[str], value: Json) -> str:
    names = [_TYPES[name] for name in dict.fromkeys(wanted)]
    either = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"must be {either}, got {_describe(value)}"


def _describe(value: Json) -> str:
    """The value with its kind in front, where showing it does not name that already."""
    kinds: Mapping[type, str] = {
        str: "the string ",
        int: "the number ",
        float: "the number ",
        bool: "the boolean ",
    }
    return kinds.get(type(value), "") + _show(value)


def _show(value: Json) -> str:
    if isinstance(value, str):
        shown = _printable(value[:MAX_SHOWN]).replace("\n", "\\n")
        return f'"{shown}…"' if len(value) > MAX_SHOWN else f'"{shown}"'
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int) and value.bit_length() > 200:  # Python refuses to print the really long ones
        return f"of {value.bit_length()} bits"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if isinstance(value, dict) else str(value)


def _printable(text: str) -> str:
    """The text without half characters, which no wire accepts."""
    return text.encode("utf-8", "replace").decode()


def _count(number: float, noun: str) -> str:
    return f"{_show(number)} {noun}" if number == 1 else f"{_show(number)} {noun}s"
