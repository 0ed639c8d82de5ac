"""Answers of a type: the schema the model is asked to keep, and the check of what it wrote.

A pydantic model is used through its own methods; any other type (dataclass, TypedDict, Struct, `list[int]` …)
through msgspec; a plain dict is taken as a JSON schema.
"""

from __future__ import annotations

from typing import Any

import msgspec

from robota.core.errors import ConfigurationError, ValidationError
from robota.core.messages import JsonObject
from robota.core.schema import check

INSTRUCTION_TEMPLATE = (
    "Answer with nothing but one JSON value that matches this JSON schema, without a code fence:\n{schema}"
)


class OutputType:
    """What `run(output=…)` was given, as a schema and a parser."""

    __slots__ = ("_kind", "retries", "schema")

    def __init__(self, kind: Any, retries: int) -> None:
        self._kind = kind
        self.schema: JsonObject = _schema_of(kind)
        self.retries = retries
        """How often the model may correct its answer."""

    @property
    def instruction(self) -> str:
        return INSTRUCTION_TEMPLATE.format(schema=msgspec.json.encode(self.schema).decode())

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
            if hasattr(self._kind, "model_validate_json"):
                return self._kind.model_validate_json(body)
            return msgspec.json.decode(body, type=self._kind)
        except (ValueError, msgspec.MsgspecError) as error:  # pydantic's ValidationError is a ValueError
            raise ValidationError(str(error)) from error


def _schema_of(kind: Any) -> JsonObject:
    if isinstance(kind, dict):
        return kind
    try:
        schema: JsonObject = (
            kind.model_json_schema() if hasattr(kind, "model_json_schema") else msgspec.json.schema(kind)
        )
    except (TypeError, RuntimeError) as error:
        raise ConfigurationError(
            f"output={kind!r} has no JSON schema: {error}. Give a pydantic model, a dataclass, a TypedDict, "
            "another type of plain data, or a JSON schema as a dict."
        ) from error
    return schema


def without_fence(text: str) -> str:
    """An answer without the code fence that models like to put around JSON."""
    body = text.strip()
    if body.startswith("```"):
        first_line, _, rest = body.partition("\n")
        if rest.rstrip().endswith("```") and " " not in first_line:
            return rest.rstrip()[:-3].strip()
    return body
