"""A small JSON-schema checker whose complaints a model can act on.

`check` covers what tool arguments and structured answers use; keywords it does not know are ignored. It is
total: whatever the schema or the value look like, it answers and never raises.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from robota.core.messages import Json

MAX_DEPTH = 150
"""Schemas inside schemas; what is nested deeper is refused, so that neither side can exhaust the stack."""
MAX_STEPS = 300_000
"""Steps spent on one value; alternatives inside alternatives can multiply without end."""
MAX_SHOWN = 60
"""Characters of a wrong string that a complaint repeats."""

_TYPES: Mapping[str, tuple[str, Callable[[Json], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "integer": (
        "an integer",
        lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    ),
    "number": ("a number", lambda value: _is_number(value)),
    "boolean": ("a boolean", lambda value: isinstance(value, bool)),
    "array": ("a list", lambda value: isinstance(value, list | tuple)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "null": ("null", lambda value: value is None),
}
_BOUNDS = (
    ("minimum", "at least", operator.lt),
    ("maximum", "at most", operator.gt),
    ("exclusiveMinimum", "more than", operator.le),
    ("exclusiveMaximum", "less than", operator.ge),
)


def check(value: Json, schema: Json, name: str = "the value") -> list[str]:
    """What is wrong with `value`, a phrase per problem; empty when it fits. The root is called `name`."""
    checker = _Checker(schema)
    try:
        checker.visit(value, schema, _Place(name))
    except (_TooMuchError, RecursionError):
        return [f"{name} is nested too deeply, or its schema has too many alternatives, to be checked"]
    return checker.problems


class _TooMuchError(Exception):
    """A budget is used up."""


class _Place(Struct, eq=False):
    """Where in the value we are, in words; built only when there is something to say."""

    key: str | int
    parent: _Place | None = None
    refs: tuple[str, ...] = ()
    """References being followed for this very value: meeting one again adds nothing."""

    def path(self) -> str:
        if self.parent is None:
            return ""
        before = self.parent.path()
        if isinstance(self.key, int):
            return f"{before}[{self.key}]"
        return f"{before}.{self.key}" if before else self.key

    def __str__(self) -> str:
        path = self.path()
        return f"'{_printable(path)}'" if path else str(self.key)


class _Checker(Struct, eq=False):
    """One walk over a value and its schema; what is wrong is noted on the way."""

    root: Json
    problems: list[str] = []
    steps: int = 0
    depth: int = 0

    def visit(self, value: Json, schema: Json, place: _Place) -> None:
        if schema is False:
            self.problems.append(f"{place} is not allowed")
        if not isinstance(schema, dict) or (value is None and schema.get("nullable") is True):
            return
        self.steps += 1
        self.depth += 1
        if self.steps > MAX_STEPS or self.depth > MAX_DEPTH:
            raise _TooMuchError
        if "$ref" in schema:
            self.follow(value, schema["$ref"], place)
        wanted = _wanted_types(schema)
        if _has_type(value, wanted):
            self.choices(value, schema, place)
            self.combinations(value, schema, place)
            self.contents(value, schema, place)
        else:
            self.refuse_type(value, wanted, place)
        self.depth -= 1

    def follow(self, value: Json, ref: Json, place: _Place) -> None:
        if not isinstance(ref, str) or ref in place.refs:
            return
        outer = place.refs
        place.refs = (*outer, ref)
        self.visit(value, _resolve(ref, self.root), place)
        place.refs = outer

    def refuse_type(self, value: Json, wanted: Iterable[str], place: _Place) -> None:
        names = [_TYPES[name][0] for name in dict.fromkeys(wanted)]
        either = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        self.problems.append(f"{place} must be {either}, got {_describe(value)}")

    def choices(self, value: Json, schema: Mapping[str, Json], place: _Place) -> None:
        allowed = schema.get("enum")
        if isinstance(allowed, list | tuple) and not any(_same(value, one) for one in allowed):
            offer = ", ".join(_show(one) for one in allowed)
            self.problems.append(f"{place} must be one of {offer}, got {_describe(value)}")
        if "const" in schema and not _same(value, schema["const"]):
            self.problems.append(f"{place} must be {_show(schema['const'])}, got {_describe(value)}")

    def combinations(self, value: Json, schema: Mapping[str, Json], place: _Place) -> None:
        for part in _listed(schema, "allOf"):
            self.visit(value, part, place)
        for keyword in ("anyOf", "oneOf"):
            branches = _listed(schema, keyword)
            if branches:
                self.alternatives(value, branches, place, exactly_one=keyword == "oneOf")

    def alternatives(self, value: Json, branches: list[Json], place: _Place, *, exactly_one: bool) -> None:
        fitting = 0
        failures: list[tuple[Json, list[str]]] = []
        for branch in branches:
            known, self.problems = self.problems, []
            self.visit(value, branch, place)
            found, self.problems = self.problems, known
            if found:
                failures.append((branch, found))
                continue
            fitting += 1
            if not exactly_one:
                return
            if fitting > 1:
                known.append(f"{place} fits more than one of the forms of which exactly one is allowed")
                return
        if not fitting:
            self.explain(value, failures, place)

    def explain(self, value: Json, failures: list[tuple[Json, list[str]]], place: _Place) -> None:
        """Why no branch fits: the complaints of the only one of the right type, or what all of them want."""
        types = [_wanted_types(self.target(branch)) for branch, _ in failures]
        near = [found for (_, found), wanted in zip(failures, types, strict=True) if _has_type(value, wanted)]
        if len(near) == 1:
            self.problems += near[0]
        elif not near:  # so each of them asks for a type
            self.refuse_type(value, (name for wanted in types for name in wanted), place)
        else:
            reasons = "; or ".join(dict.fromkeys(found[0] for found in near))
            self.problems.append(f"{place} fits none of the allowed forms: {reasons}")

    def target(self, branch: Json) -> Mapping[str, Json]:
        """The branch, or what its reference leads to; enough to know which type it is about."""
        if isinstance(branch, dict) and isinstance(branch.get("$ref"), str):
            branch = _resolve(branch["$ref"], self.root)
        return branch if isinstance(branch, dict) else {}

    def contents(self, value: Json, schema: Mapping[str, Json], place: _Place) -> None:
        if isinstance(value, dict):
            self.members(value, schema, place)
        elif isinstance(value, list | tuple):
            self.elements(value, schema, place)
        elif isinstance(value, str):
            self.text(value, schema, place)
        elif _is_number(value):
            self.number(value, schema, place)

    def members(self, value: Mapping[Json, Json], schema: Mapping[str, Json], place: _Place) -> None:
        properties, patterns = _named(schema, "properties"), _named(schema, "patternProperties")
        for key in _listed(schema, "required"):
            if isinstance(key, str) and key not in value:
                self.problems.append(f"missing required field {_Place(key, place)}")
        others = schema.get("additionalProperties", True)
        for key, member in value.items():
            spot = _Place(key if isinstance(key, str) else repr(key), place)
            schemas = [one for pattern, one in patterns.items() if _matches(pattern, key)]
            if key in properties:
                schemas.append(properties[key])
            if not schemas and others is False:
                allowed = ", ".join(f"'{_printable(str(one))}'" for one in properties) or "none"
                self.problems.append(f"unknown field {spot}; allowed: {allowed}")
            for one in schemas or ([] if others is False else [others]):
                self.visit(member, one, spot)

    def elements(self, value: Sequence[Json], schema: Mapping[str, Json], place: _Place) -> None:
        self.size(len(value), schema, ("minItems", "maxItems", "item"), place)
        ahead, rest = _listed(schema, "prefixItems"), schema.get("items")
        if isinstance(rest, list | tuple):  # how drafts before 2020-12 wrote prefixItems
            ahead, rest = list(rest), schema.get("additionalItems")
        if rest is False and len(value) > len(ahead):
            self.problems.append(f"{place} must have at most {_count(len(ahead), 'item')}, got {len(value)}")
            value = value[: len(ahead)]
        for index, element in enumerate(value):
            one = ahead[index] if index < len(ahead) else rest
            if isinstance(one, dict | bool):
                self.visit(element, one, _Place(index, place))

    def text(self, value: str, schema: Mapping[str, Json], place: _Place) -> None:
        self.size(len(value), schema, ("minLength", "maxLength", "character"), place)
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and not _matches(pattern, value, otherwise=True):
            self.problems.append(
                f"{place} must match the pattern {_printable(pattern)}, got {_describe(value)}"
            )

    def number(self, value: float, schema: Mapping[str, Json], place: _Place) -> None:
        for keyword, words, wrong in _BOUNDS:
            bound: Json = schema.get(keyword)
            if _is_number(bound) and wrong(value, bound):
                self.problems.append(f"{place} must be {words} {_show(bound)}, got {_show(value)}")

    def size(self, size: int, schema: Mapping[str, Json], words: tuple[str, str, str], place: _Place) -> None:
        for keyword, limit, wrong in ((words[0], "least", operator.lt), (words[1], "most", operator.gt)):
            bound: Json = schema.get(keyword)
            if _is_number(bound) and wrong(size, bound):
                self.problems.append(f"{place} must have at {limit} {_count(bound, words[2])}, got {size}")


def _resolve(ref: str, root: Json) -> Json:
    """What a local reference points to; `True`, which allows everything, when it leads nowhere."""
    if not ref.startswith("#"):
        return True
    target = root
    for step in ref[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, dict) and name in target:
            target = target[name]
        elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
            target = target[int(name)]
        else:
            return True
    return target


def _wanted_types(schema: Mapping[str, Json]) -> list[str]:
    """The types a schema asks for; empty when it does not ask, or names one nobody knows."""
    said: Json = schema.get("type")
    names: list[Json] | tuple[Json, ...] = said if isinstance(said, list | tuple) else [said]
    if not all(isinstance(name, str) and name in _TYPES for name in names):
        return []
    return [*names, "null"] if schema.get("nullable") is True and "null" not in names else list(names)


def _has_type(value: Json, wanted: list[str]) -> bool:
    return not wanted or any(_TYPES[name][1](value) for name in wanted)


def _listed(schema: Mapping[str, Json], keyword: str) -> list[Json]:
    value = schema.get(keyword)
    return list(value) if isinstance(value, list | tuple) else []


def _named(schema: Mapping[str, Json], keyword: str) -> dict[str, Json]:
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _matches(pattern: Json, text: Json, *, otherwise: bool = False) -> bool:
    """Whether the pattern occurs in the text; `otherwise` for a pattern Python cannot read."""
    if not isinstance(pattern, str) or not isinstance(text, str):
        return otherwise
    try:
        return re.search(pattern, text) is not None
    except (re.error, RecursionError, OverflowError):
        return otherwise


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(left: Json, right: Json) -> bool:
    """Equality as JSON has it: 1 is 1.0, but `true` is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _describe(value: Json) -> str:
    """The value with its kind in front, where showing it does not name that already."""
    kinds = {str: "the string ", int: "the number ", float: "the number ", bool: "the boolean "}
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
