"""Answers of a type: the schema the model is asked to keep, and the check of what it wrote.

A type that has to do with pydantic somewhere (a model, `list[Model]`, a `Field` in a dataclass) is left to
pydantic; any other (dataclass, TypedDict, Struct, `list[int]` …) to msgspec; a plain dict is taken as a JSON
schema.
"""

from __future__ import annotations

import sys
import typing
from typing import Any

import msgspec

from robota.core.errors import ConfigurationError, ValidationError
from robota.core.messages import JsonObject
from robota.core.provider import Provider, get_provider_capabilities
from robota.core.schema import check

INSTRUCTION_TEMPLATE = (
    "Answer with nothing but one JSON value that matches this JSON schema, without a code fence:\n{schema}"
)


class OutputType:
    """What `run(output=…)` was given, as a schema and a parser."""

    __slots__ = ("_kind", "_pydantic", "retries", "schema")

    def __init__(self, kind: Any, retries: int) -> None:
        self._kind = kind
        self._pydantic: Any = None
        """What pydantic reads such a type with."""
        self.schema: JsonObject = self._make_schema()
        self.retries = retries
        """How often the model may correct its answer."""

    @property
    def instruction(self) -> str:
        return INSTRUCTION_TEMPLATE.format(schema=msgspec.json.encode(self.schema).decode())

    def _make_schema(self) -> JsonObject:
        kind = self._kind
        if isinstance(kind, dict):
            if why := find_schema_problem(kind):
                raise ConfigurationError(f"output is not a JSON schema: {why}.")
            return kind
        pydantic: Any = sys.modules.get("pydantic")  # there, if the type has to do with it
        try:
            if pydantic is None or not contains_pydantic(kind, set()):
                made: JsonObject = msgspec.json.schema(kind)
            else:
                self._pydantic = pydantic.TypeAdapter(kind)
                made = self._pydantic.json_schema()
        except (TypeError, RuntimeError) as error:
            lines = str(error).strip().splitlines()  # pydantic explains itself at length, msgspec beforehand
            why = lines[0 if type(error).__module__.startswith("pydantic") else -1].rstrip(".")
            raise ConfigurationError(
                f"output={kind!r} has no JSON schema: {why}. Give a pydantic model, a dataclass, a "
                "TypedDict, another type of plain data, or a JSON schema as a dict."
            ) from error
        return made

    def must_be_told(self, provider: Provider) -> bool:
        """Whether the prompt has to ask for the form, because the provider does not enforce it."""
        return not get_provider_capabilities(provider).output_schema

    def parse(self, text: str) -> Any:
        """The answer as a value of the type; a `ValidationError` says what is wrong with it."""
        body = without_fence(text)
        try:
            if isinstance(self._kind, dict):
                value = msgspec.json.decode(body)
                problems = check(value, self._kind)
                if problems:
                    raise ValidationError(problems[0])
                return value
            if self._pydantic is not None:
                return self._pydantic.validate_json(body)
            return msgspec.json.decode(body, type=self._kind)
        except (ValueError, msgspec.MsgspecError) as error:  # pydantic's ValidationError is a ValueError
            if type(error) is msgspec.DecodeError and body[:1] not in '{["':  # it speaks of truncated data
                begin = body if len(body) <= _SHOWN else f"{body[:_SHOWN]}…"
                raise ValidationError(f"it is not JSON: {begin!r}") from error
            raise ValidationError(describe_problems(error)) from error


def find_schema_problem(schema: JsonObject) -> str:
    """What is wrong with a JSON schema that somebody wrote, in the first words of the complaint; empty if
    nothing is.

    The check of an answer leaves out what it does not understand, such as a reference that leads nowhere, so
    that a slip here would let everything pass. Nothing is fetched: a schema may name addresses.
    """
    import jsonschema_rs  # noqa: PLC0415 - for those who want JSON

    try:
        jsonschema_rs.validator_for(schema, offline=True)
    except ValueError as error:
        return str(error).partition("\n")[0].rstrip(".")
    strange = [name for name, value in schema.items() if isinstance(value, str) and value in _PYTHON_TYPES]
    if strange:
        return f"{strange[0]!r} is not a keyword of JSON Schema: put it under 'properties'"
    return ""


_SHOWN = 60
"""Letters of an answer that says something else than it should."""
_PYTHON_TYPES = ("str", "int", "float", "bool", "list", "dict")


# --- pydantic ------------------------------------------------------------------------------------------


def contains_pydantic(annotation: Any, seen: set[int]) -> bool:
    """Whether a type is one of pydantic's, or made of one, or has notes for it; others it would ignore."""
    if id(annotation) in seen:
        return False
    seen.add(id(annotation))
    notes = getattr(annotation, "__metadata__", ())
    if any(is_pydantic(type(note)) for note in notes):
        return True
    inner = list(typing.get_args(annotation))
    if isinstance(annotation, type):
        if is_pydantic(annotation) or hasattr(annotation, "__get_pydantic_core_schema__"):
            return True
        inner.extend(field_types(annotation))
    return any(contains_pydantic(one, seen) for one in inner)


def is_pydantic(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("pydantic", "annotated_types") or hasattr(
        kind, "__pydantic_validator__"
    )


def field_types(kind: type) -> list[Any]:
    """The types of a record's fields; nothing for types without annotations, or with some we cannot read."""
    if not any("__annotations__" in vars(one) for one in kind.__mro__ if one is not object):
        return []
    try:
        return list(typing.get_type_hints(kind, include_extras=True).values())
    except Exception:  # noqa: BLE001 - msgspec meets the same annotation and says what is wrong
        return []


def describe_problems(error: Exception) -> str:
    """What does not fit, in one line: pydantic's own text has several, and a link for each."""
    listed = getattr(error, "errors", None)
    if not callable(listed):
        return str(error)
    told = [(".".join(map(str, one["loc"])), one["msg"]) for one in listed(include_url=False)]
    return "; ".join(f"{where!r}: {what}" if where else what for where, what in told)


def without_fence(text: str) -> str:
    """An answer without the code fence that models like to put around JSON."""
    body = text.strip()
    if body.startswith("```"):
        first_line, _, rest = body.partition("\n")
        if rest.rstrip().endswith("```") and " " not in first_line:
            return rest.rstrip()[:-3].strip()
    return body
