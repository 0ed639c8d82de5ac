from __future__ import annotations

from typing import Any

import pytest

from robota.providers.responses.schema import drop_nulls, is_strict, make_strict

TEXT = {"type": "string"}
NULL = {"type": "null"}


def an_object(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


def closed(**properties: Any) -> dict[str, Any]:
    return {**an_object(list(properties), **properties), "additionalProperties": False}


# --- closing -------------------------------------------------------------------------------------------


def test_objects_are_closed_and_optional_fields_become_nullable() -> None:
    schema = an_object(["a"], a=TEXT, b={"type": "integer", "default": 3})
    assert make_strict(schema) == closed(a=TEXT, b={"type": ["integer", "null"]})


@pytest.mark.parametrize(
    ("field", "nullable"),
    [
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["x"]}, {"type": ["string", "null"], "enum": ["x", None]}),
        ({"enum": ["x"]}, {"anyOf": [{"enum": ["x"]}, NULL]}),
        ({"type": "string", "const": "x"}, {"anyOf": [{"type": "string", "const": "x"}, NULL]}),
        ({"anyOf": [TEXT]}, {"anyOf": [TEXT, NULL]}),
        ({"anyOf": [TEXT, NULL]}, {"anyOf": [TEXT, NULL]}),
        ({"oneOf": [TEXT]}, {"anyOf": [TEXT, NULL]}),
        ({"$ref": "#/$defs/x", "description": "lost"}, {"anyOf": [{"$ref": "#/$defs/x"}, NULL]}),
        ({"type": "array", "items": an_object(a=TEXT)},
         {"type": ["array", "null"], "items": closed(a={"type": ["string", "null"]})}),
    ],
)  # fmt: skip
def test_every_kind_of_field_can_be_nullable(field: dict[str, Any], nullable: dict[str, Any]) -> None:
    assert make_strict(an_object(f=field)) == closed(f=nullable)


def test_definitions_are_closed_too() -> None:
    strict = make_strict(
        {**an_object(["x"], x={"$ref": "#/$defs/x"}), "$defs": {"x": an_object(["a"], a=TEXT)}}
    )
    assert strict is not None
    assert strict["$defs"] == {"x": closed(a=TEXT)}


@pytest.mark.parametrize(
    "field",
    [
        {},
        True,
        {"type": "object"},
        {"type": "object", "additionalProperties": TEXT},
        {"allOf": [TEXT]},
        {"type": "array", "items": True},
    ],
)
def test_a_schema_that_would_lose_its_meaning_is_left_alone(field: Any) -> None:
    assert make_strict(an_object(f=field)) is None


def test_a_schema_without_an_end_is_left_alone() -> None:
    endless = an_object()
    endless["properties"]["again"] = endless
    assert make_strict(endless) is None


def test_only_a_closed_schema_is_strict() -> None:
    assert make_strict({"type": "object"}) == closed()
    assert is_strict(closed(a=TEXT))
    assert not is_strict(an_object(["a"], a=TEXT))
    assert not is_strict({"type": "array", "items": TEXT})


# --- and opening again ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "given", "kept"),
    [
        (an_object(["a"], a=TEXT, b=TEXT), '{"a":"x","b":null}', '{"a":"x"}'),
        (an_object(["a"], a=TEXT), '{"a":null}', '{"a":null}'),
        (an_object(a={"type": ["string", "null"]}), '{"a":null}', '{"a":null}'),
        (an_object(a={"oneOf": [TEXT, NULL]}), '{"a":null}', '{"a":null}'),
        (an_object(a=an_object(b=TEXT)), '{"a":{"b":null}}', '{"a":{}}'),
        (an_object(a={"type": "array", "items": an_object(b=TEXT)}), '{"a":[{"b":null}]}', '{"a":[{}]}'),
        (an_object(a={"anyOf": [an_object(x=TEXT), an_object(b=TEXT)]}), '{"a":{"b":null}}', '{"a":{}}'),
        ({**an_object(a={"$ref": "#/$defs/d"}), "$defs": {"d": an_object(b=TEXT)}},
         '{"a":{"b":null}}', '{"a":{}}'),
        (an_object(a={"$ref": "#/$defs/gone"}), '{"a":{"b":null}}', '{"a":{"b":null}}'),
        (an_object(), '{"unknown":null}', '{"unknown":null}'),
        (an_object(a=TEXT), '{"a": "null" }', '{"a": "null" }'),
        (an_object(a=TEXT), '{"a": null', '{"a": null'),
    ],
)  # fmt: skip
def test_nulls_that_stand_for_fields_left_out_are_dropped(
    schema: dict[str, Any], given: str, kept: str
) -> None:
    assert drop_nulls(given, schema) == kept
