from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.core.schema import check

ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
        }
    },
    "$ref": "#/$defs/node",
}


def test_a_fitting_value_has_no_problems():
    assert check({"a": 1, "b": 2}, ADD) == []


def test_every_problem_is_named_with_its_field():
    assert check({"a": "x", "c": 1}, ADD) == [
        "missing required field 'b'",
        "'a' must be an integer, got the string \"x\"",
        "unknown field 'c'; allowed: 'a', 'b'",
    ]


def test_the_root_is_called_what_the_caller_calls_it():
    assert check([], ADD, "the answer") == ["the answer must be an object, got a list"]


def test_a_nested_field_is_named_by_its_path():
    value = {"name": "a", "children": [{"name": "b", "children": [{"name": 1}]}, {}]}
    assert check(value, TREE) == [
        "'children[0].children[0].name' must be a string, got the number 1",
        "missing required field 'children[1].name'",
    ]


@pytest.mark.parametrize(
    ("schema", "good", "bad", "problem"),
    [
        ({"type": "integer"}, 1.0, 1.5, "the value must be an integer, got the number 1.5"),
        ({"type": "integer"}, 0, True, "the value must be an integer, got the boolean true"),
        ({"type": "number"}, 1, False, "the value must be a number, got the boolean false"),
        ({"type": "boolean"}, True, 1, "the value must be a boolean, got the number 1"),
        ({"type": "null"}, None, "", 'the value must be null, got the string ""'),
        ({"type": ["string", "null"]}, None, 1, "the value must be a string or null, got the number 1"),
        (
            {"type": "string", "nullable": True},
            None,
            1,
            "the value must be a string or null, got the number 1",
        ),
        ({"enum": ["x", 1]}, 1.0, True, 'the value must be one of "x", 1, got the boolean true'),
        ({"const": "on"}, "on", None, 'the value must be "on", got null'),
        ({"minimum": 1}, 1, 0, "the value must be at least 1, got 0"),
        ({"maximum": 1}, 1, 2, "the value must be at most 1, got 2"),
        ({"exclusiveMinimum": 1}, 1.1, 1, "the value must be more than 1, got 1"),
        ({"exclusiveMaximum": 1}, 0.9, 1, "the value must be less than 1, got 1"),
        ({"minLength": 1}, "a", "", "the value must have at least 1 character, got 0"),
        ({"maxLength": 2}, "ab", "abc", "the value must have at most 2 characters, got 3"),
        ({"minItems": 1}, [0], [], "the value must have at least 1 item, got 0"),
        ({"maxItems": 0}, [], [0], "the value must have at most 0 items, got 1"),
        ({"pattern": "^a+$"}, "aa", "ab", 'the value must match the pattern ^a+$, got the string "ab"'),
        ({"items": {"type": "string"}}, ["a"], ["a", 1], "'[1]' must be a string, got the number 1"),
        (
            {"additionalProperties": {"type": "string"}},
            {"a": ""},
            {"a": 1},
            "'a' must be a string, got the number 1",
        ),
        (False, ..., 1, "the value is not allowed"),
        ({"properties": {"a": False}}, {}, {"a": 1}, "'a' is not allowed"),
    ],
)
def test_a_keyword_accepts_what_fits_and_says_what_it_wanted(schema, good, bad, problem):
    assert check(bad, schema) == [problem]
    if good is not ...:
        assert check(good, schema) == []


@pytest.mark.parametrize(
    ("schema", "good", "bad", "problem"),
    [
        ({"multipleOf": 0.01}, 19.99, 0.005, "the value must be a multiple of 0.01, got 0.005"),
        ({"uniqueItems": True}, [1, True], [1, 1.0], "the value must not have the same item twice"),
        ({"minProperties": 2}, {"a": 1, "b": 1}, {"a": 1}, "the value must have at least 2 fields, got 1"),
        ({"contains": {"type": "null"}}, [1, None], [1], "the value must have an item of the wanted form"),
        (
            {"contains": {}, "maxContains": 1},
            [1],
            [1, 2],
            "the value must have fewer items of the form that is counted",
        ),
        ({"not": {"type": "null"}}, 1, None, "the value must not have the form that its schema excludes"),
        ({"dependentRequired": {"a": ["b"]}}, {"b": 1}, {"a": 1}, "missing required field 'b'"),
        ({"if": {"minimum": 5}, "then": {"multipleOf": 5}}, 4, 6, "the value must be a multiple of 5, got 6"),
        (
            {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
            {"a": 1},
            {"b": 1},
            "unknown field 'b'; allowed: none",
        ),
        (
            {"propertyNames": {"maxLength": 2}},
            {"ab": 1},
            {"abc": 1},
            'the field name "abc" in the value must have at most 2 characters, got 3',
        ),
        (
            {"$defs": {"a": {"$anchor": "here", "type": "string"}}, "$ref": "#here"},
            "a",
            1,
            "the value must be a string, got the number 1",
        ),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "items": [True], "additionalItems": False},
            [1],
            [1, 2],
            "the value does not fit: Additional items are not allowed (2 was unexpected)",
        ),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"pair": {"type": "array", "items": [True, {"type": "string"}]}},
            },
            {"pair": [1, "a", 2]},
            {"pair": [1, 2]},
            "'pair[1]' must be a string, got the number 2",
        ),
        (
            {
                "$schema": "https://json-schema.org/draft/2019-09/schema",
                "$defs": {"pair": {"items": [{"type": "string"}], "additionalItems": False}},
                "$ref": "#/$defs/pair",
            },
            ["a"],
            ["a", 1],
            "the value does not fit: Additional items are not allowed (1 was unexpected)",
        ),
        (
            {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "properties": {"pair": {"items": [{"type": "string"}]}},
            },
            {"pair": ["a", 1]},
            {"pair": [1]},
            "'pair[0]' must be a string, got the number 1",
        ),
        ({"items": [{"type": "string"}]}, ["a", 1], [1], "'[0]' must be a string, got the number 1"),
        (
            {"nullable": True, "$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
            None,
            1,
            "the value must be a string or null, got the number 1",
        ),
        (
            {"type": "string", "enum": ["a"], "nullable": True},
            None,
            "b",
            'the value must be one of "a", null, got the string "b"',
        ),
    ],
)
def test_keywords_that_few_schemas_use_count_too(schema, good, bad, problem):
    assert check(good, schema) == []
    assert check(bad, schema) == [problem]


@pytest.mark.parametrize("pattern", ["^(a+)+$", r"^(a|a)*\1$", r"(?<!b)(a+a+)+\1y"])
def test_a_pattern_that_could_be_tried_in_endless_ways_is_given_up(pattern):
    (problem,) = check("a" * 5_000 + "c", {"pattern": pattern})
    assert "the pattern" in problem


def test_what_cannot_be_understood_is_left_out_and_the_rest_is_checked():
    schema = {
        "$schema": "https://example.org/our-own-meta",
        "type": "object",
        "required": ["n", 5],
        "properties": {
            "n": {"type": "integer", "minimum": "low", "pattern": "("},
            "far": {"$ref": "https://example.org/schema"},
            "lost": {"$ref": "#/$defs/none"},
            "enum": {"type": "string", "nullable": True},
        },
        "anyOf": [3, {"required": ["n"]}],
        "additionalProperties": False,
    }
    before = repr(schema)
    assert check({"n": 1, "far": 1, "lost": [], "enum": None}, schema) == []
    assert check({"n": "x", "more": 1}, schema) == [
        "'n' must be an integer, got the string \"x\"",
        "unknown field 'more'; allowed: 'n', 'far', 'lost', 'enum'",
    ]
    assert repr(schema) == before


def test_of_alternatives_with_a_tag_the_one_with_the_right_tag_explains_itself():
    schema = {
        "oneOf": [
            {
                "properties": {"kind": {"const": kind}, "size": {"type": "integer"}},
                "required": ["kind", "size"],
            }
            for kind in ("box", "bag", "tin")
        ]
    }
    assert check({"kind": "bag", "size": "big"}, schema) == [
        "'size' must be an integer, got the string \"big\""
    ]


def test_a_value_deeper_than_any_stack_is_refused():
    value: list[object] = []
    for _ in range(200_000):
        value = [value]
    assert check(value, {"items": {"$ref": "#"}}) == [
        "the value or its schema is nested too deeply to be checked"
    ]
    while value:
        value = value.pop()  # type: ignore[assignment]


def test_the_library_is_loaded_with_the_first_check():
    program = (
        "import sys, robota, robota.core.robota, robota.tools.builtins.files\n"
        "from robota.core.schema import check\n"
        "print('jsonschema_rs' in sys.modules, check(1, {'type': 'integer'}), 'jsonschema_rs' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False [] True\n"


def test_a_tuple_is_checked_place_by_place():
    pair = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}
    assert check([1, "a"], pair) == []
    assert check(["a", "a", 3], pair) == [
        "'[2]' is not allowed",
        "'[0]' must be an integer, got the string \"a\"",
    ]


def test_a_field_that_a_pattern_allows_is_not_unknown():
    schema = {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}
    assert check({"x-a": "1"}, schema) == []
    assert check({"x-a": 1, "y": 1}, schema) == [
        "'x-a' must be a string, got the number 1",
        "unknown field 'y'; allowed: none",
    ]


def test_alternatives_of_other_types_are_listed():
    schema = {
        "anyOf": [{"type": "integer"}, {"$ref": "#/$defs/s"}, {"type": "null"}],
        "$defs": {"s": {"type": "string"}},
    }
    assert check(None, schema) == []
    assert check([], schema) == ["the value must be an integer, a string or null, got a list"]


def test_the_alternative_of_the_right_type_explains_itself():
    schema = {"anyOf": [{"type": "object", "required": ["x"]}, {"type": "null"}]}
    assert check({}, schema) == ["missing required field 'x'"]


def test_alternatives_of_the_same_type_are_all_explained():
    schema = {"anyOf": [{"required": ["x"]}, {"required": ["y"]}]}
    assert check({}, schema) == [
        "the value fits none of the allowed forms: missing required field 'x'; or missing required field 'y'"
    ]


def test_one_of_wants_exactly_one():
    schema = {"oneOf": [{"minimum": 0}, {"maximum": 10}]}
    assert check(20, schema) == []
    assert check(5, schema) == ["the value fits more than one of the forms of which exactly one is allowed"]


def test_all_of_wants_every_part():
    schema = {"allOf": [{"required": ["x"]}, {"required": ["y"]}]}
    assert check({"x": 1}, schema) == ["missing required field 'y'"]


def test_a_long_string_is_shown_by_its_beginning():
    (problem,) = check("x" * 5_000, {"type": "integer"})
    assert problem.endswith('xxx…"')
    assert len(problem) < 150


@pytest.mark.parametrize(
    "schema",
    [
        None,
        3,
        "object",
        [],
        {"type": 5},
        {"type": "whatever"},
        {"properties": []},
        {"required": "abc"},
        {"enum": 3},
        {"minimum": "x"},
        {"exclusiveMinimum": True},
        {"pattern": "("},
        {"pattern": 7},
        {"$ref": 3},
        {"anyOf": {}},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": []},
        {"anyOf": [{"$ref": "#"}]},
        {"items": 3},
        {"additionalProperties": 3},
        {"format": "email"},
        {"patternProperties": {"(": False}},
    ],
)
@pytest.mark.parametrize("value", [{"a": 1}, "text", 5])
def test_an_odd_schema_is_no_obstacle(schema, value):
    assert check(value, schema) == []


def test_a_value_without_end_is_refused():
    value: dict[str, object] = {"name": "a"}
    value["children"] = [value]
    assert check(value, TREE) == ["the value or its schema is nested too deeply to be checked"]


def test_a_schema_that_contains_itself_is_refused():
    schema: dict[str, object] = {}
    schema["allOf"] = [schema]
    assert check(1, schema) == ["the value or its schema is nested too deeply to be checked"]


def test_alternatives_that_multiply_are_not_listed():
    step = {"properties": {"next": {"$ref": "#"}}}
    value: dict[str, object] = {}
    for _ in range(30):
        value = {"next": value}
    assert check(value, {"oneOf": [step, step]}) == [
        "the value fits none of the allowed forms, which are too many to be listed"
    ]


def test_numbers_too_long_to_print_and_half_characters_are_survived():
    assert check(10**5000, {"type": "string"}) == ["the value must be a string, got the number of 16610 bits"]
    (problem,) = check("\ud800", {"type": "integer"})
    assert problem.startswith("the value is not a JSON value: ")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
keywords = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
        "nullable",
        "minimum",
        "maxLength",
        "minItems",
        "pattern",
        "additionalProperties",
        "patternProperties",
    ]
)
odd_schemas = st.recursive(
    json_values | st.sampled_from(["integer", "object", "#", "#/$defs/a", "("]),
    lambda inner: st.dictionaries(keywords | st.just("a"), inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=12,
)


@given(json_values, odd_schemas)
def test_whatever_comes_there_is_an_answer(value, schema):
    assert all(isinstance(problem, str) for problem in check(value, schema))
