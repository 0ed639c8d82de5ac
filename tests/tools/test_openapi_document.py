"""Documents: what is understood, what is noted by name, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from robota.core.errors import ConfigurationError
from robota.core.tool import tool_schema
from robota.tools.openapi.tool import OpenAPITools, load_openapi
from robota.tools.registry import ToolRegistry


def load(paths: Any, *, base_url: str | None = "http://a.test", **root: Any) -> OpenAPITools:
    return load_openapi(
        {"openapi": "3.1.0", "info": {}, "paths": paths, **{k: v for k, v in root.items() if k != "auth"}},
        base_url=base_url,
        auth=root.get("auth"),
    )


def body_schema(schema: Any, *, version: str = "3.1.0", **schemas: Any) -> Any:
    """What a body's schema looks like to the model."""
    content = {"application/json": {"schema": schema}}
    (tool,) = load_openapi(
        {
            "openapi": version,
            "paths": {"/x": {"post": {"requestBody": {"content": content}}}},
            "components": {"schemas": schemas},
        },
        base_url="http://a.test",
    )
    parameters = tool_schema(tool).parameters
    return parameters["properties"]["body"], parameters.get("$defs", {})


# --- reading the text -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"openapi": "3.0.0", "paths": {"/x": {"get": {}}}}',
        '\ufeff\n {"openapi": "3.0.0", "paths": {"/x": {"get": {}}}}',
        "openapi: 3.0.0\npaths:\n  /x:\n    get: {responses: {200: {description: ok}}}\n",
        "openapi: 3.1\npaths: {/x: {get: {}}}",
    ],
)
def test_a_document_may_be_json_or_yaml(text: str) -> None:
    assert [tool.name for tool in load_openapi(text, base_url="http://a.test")] == ["GET_x"]


def test_yaml_words_and_dates_stay_texts() -> None:
    text = """
openapi: 3.1.0
paths:
  /x:
    get:
      parameters:
        - {name: c, in: query, schema: {enum: [no, on, 2024-01-01, true, 1, &a x, *a]}}
        - {name: d, in: query, schema: {enum: [12:30:45, 012, 0x1F, 1_000, =, +1, -1.5e3, 0, ~, true or not]}}
        - {name: e, in: query, description: true if it should be there}
        - {name: f, in: query, description: =, schema: {enum: [{true: 1, 200: 2, null: 3}]}}
        - {name: g, in: query, schema: {<<: {type: string}, minLength: 1}}
"""
    (tool,) = load_openapi(text, base_url="http://a.test")
    assert {name: one.get("enum") or one for name, one in tool.parameters["properties"].items()} == {
        "c": ["no", "on", "2024-01-01", True, 1, "x", "x"],
        "d": ["12:30:45", "012", "0x1F", "1_000", "=", "+1", -1500.0, 0, None, "true or not"],
        "e": {"description": "true if it should be there"},
        "f": [{"true": 1, "200": 2, "null": 3}],
        "g": {"type": "string", "minLength": 1},
    }


def test_yaml_that_only_the_patient_reader_takes_is_read_by_it() -> None:
    text = "openapi: 3.1.0\npaths:\n  /x:\n    get:\n      description: |-\n        \t\n        word\n"
    with pytest.raises(yaml.YAMLError):
        yaml.load(text, yaml.CSafeLoader)
    (tool,) = load_openapi(text, base_url="http://a.test")
    assert tool.description == "word"


@pytest.mark.parametrize(
    "text", ["[" * 200_000, "x: " + "{a: " * 200_000, "- " * 200_000, "- [" + "[], " * 2_000 + "]"]
)
def test_depth_that_would_exhaust_the_stack_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"nested too deeply|not an object"):
        load_openapi(text)


BOMB = "\n".join(
    [
        "openapi: 3.1.0",
        "a0: &a0 [x, x]",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)),
    ]
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("a: [", "cannot be read"),
        ("just words", "is not an object"),
        ("[1]", "is not an object"),
        ("", "is not an object"),
        ("a: &a [*a]", "contains itself"),
        ("x: " + "[" * 5000, "nested too deeply"),
        ('{"a":' * 5000, "cannot be read"),
        ("a: !!python/object:os.system x", "cannot be read"),
        ("a: !!binary aGk=", "which JSON does not have"),
        (BOMB, "too large with its aliases written out"),
        ('{"swagger": "2.0"}', "Swagger 2 document"),
        ("{}", "3.0 or 3.1 is needed"),
        ('{"openapi": "4.0.0"}', "3.0 or 3.1 is needed"),
        ('{"openapi": "3.1.0", "paths": {"/x": {"get": {}}}}', "names no server: pass `base_url`"),
        (
            '{"openapi": "3.1.0", "servers": [{"url": "/v1"}], "paths": {"/x": {"get": {}}}}',
            "'/v1' is not an address to send requests to: pass `base_url`",
        ),
    ],
)
def test_a_document_that_cannot_be_used_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_openapi(text)
    assert message in str(caught.value)


def test_a_document_may_have_no_operations() -> None:
    assert (load({}), load(None), load([1])) == ([], [], [])


def test_a_later_version_is_read_as_the_last_one_known() -> None:
    assert load_openapi({"openapi": "3.2.0", "paths": {}}).notes == ("OpenAPI 3.2.0 is read as 3.1.",)


# --- servers --------------------------------------------------------------------------------------

SERVERS = [
    {"url": "https://{where}.test/v{n}", "variables": {"where": {"default": "a"}, "n": {"default": 2}}}
]


def test_the_nearest_server_is_used_with_its_variables() -> None:
    tools = load(
        {"/x": {"get": {}, "post": {"servers": [{"url": "https://own.test"}]}, "servers": SERVERS}},
        servers=[{"url": "https://root.test"}],
        base_url=None,
    )
    assert [str(tool.operation.server) for tool in tools] == ["https://a.test/v2", "https://own.test/"]


def test_server_variables_can_be_given() -> None:
    spec = {"openapi": "3.1.0", "paths": {"/x": {"get": {}}}, "servers": SERVERS}
    (tool,) = load_openapi(spec, server_variables={"where": "b"})
    assert str(tool.operation.server) == "https://b.test/v2"


def test_a_server_variable_must_be_one_of_its_choices() -> None:
    servers = [{"url": "https://{a}.test", "variables": {"a": {"default": "x", "enum": ["x", "y"]}}}]
    spec = {"openapi": "3.1.0", "paths": {"/x": {"get": {}}}, "servers": servers}

    with pytest.raises(ConfigurationError, match="'a' must be one of x, y, not 'evil'"):
        load_openapi(spec, server_variables={"a": "evil"})


@pytest.mark.parametrize("base_url", ["a.test", "ftp://a.test", "http://u:p@a.test", "http://a.test/?q=1"])
def test_a_base_url_must_be_one(base_url: str) -> None:
    with pytest.raises(ConfigurationError):
        load({}, base_url=base_url)


# --- names ----------------------------------------------------------------------------------------


def test_names_are_made_valid_and_unique() -> None:
    tools = load(
        {
            "/a": {"get": {"operationId": "list/all pets!"}, "post": {"operationId": "list_all_pets"}},
            "/b/{id}/c": {"get": {}, "put": {"operationId": "x" * 200}, "delete": {"operationId": "x" * 64}},
            "/ü": {"get": {"operationId": "ü"}},
        }
    )
    names = ["list_all_pets", "list_all_pets_2", "GET_b_id_c", "x" * 64, "x" * 62 + "_2", "unnamed"]

    assert [tool.name for tool in tools] == names
    assert ToolRegistry(tools).names == tuple(names)


def test_a_prefix_keeps_two_documents_apart() -> None:
    spec = {"openapi": "3.1.0", "paths": {"/x": {"get": {"operationId": "list"}}}}
    assert load_openapi(spec, base_url="http://a.test", prefix="pets_")[0].name == "pets_list"


def test_arguments_are_named_so_that_models_can_write_them() -> None:
    parameters = [
        {"name": "id", "in": "path"},
        {"name": "id", "in": "query"},
        {"name": "filter[name]", "in": "query"},
        {"name": "$top", "in": "query"},
        {"name": "body", "in": "query"},
    ]
    content = {"application/json": {}}
    (tool,) = load({"/x/{id}": {"post": {"parameters": parameters, "requestBody": {"content": content}}}})

    assert list(tool.parameters["properties"]) == [
        "id", "query_id", "filter_name", "top", "body", "request_body",
    ]  # fmt: skip


def test_an_operation_overrides_the_parameters_of_its_path() -> None:
    (tool,) = load(
        {
            "/x/{id}/{undescribed}": {
                "parameters": [
                    {"name": "id", "in": "path", "schema": {"type": "string"}},
                    {"$ref": "#/components/parameters/page"},
                ],
                "get": {
                    "parameters": [
                        {"name": "id", "in": "path", "schema": {"type": "integer"}, "description": "Which"}
                    ]
                },
            }
        },
        components={"parameters": {"page": {"name": "page", "in": "query", "required": True}}},
    )
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "description": "Which"},
            "page": {},
            "undescribed": {"type": "string"},
        },
        "required": ["id", "page", "undescribed"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("operation", "description"),
    [
        ({"summary": "Short", "description": "Long."}, "Short\n\nLong."),
        ({"summary": "Same", "description": "Same"}, "Same"),
        ({}, "GET /x"),
        ({"summary": "Old", "deprecated": True}, "Old\n\nDeprecated."),
        ({"description": "x" * 3000}, "x" * 2000),
    ],
)
def test_the_description_is_that_of_the_operation(operation: dict[str, Any], description: str) -> None:
    assert load({"/x": {"get": operation}})[0].description == description


# --- schemas --------------------------------------------------------------------------------------


def test_references_are_put_in_place() -> None:
    schema, definitions = body_schema(
        {"$ref": "#/components/schemas/A"},
        A={"type": "object", "properties": {"b": {"$ref": "#/components/schemas/B~1x"}}, "example": 1},
        **{"B/x": {"type": "string", "description": "A b", "xml": {}}},
    )
    assert schema == {"type": "object", "properties": {"b": {"type": "string", "description": "A b"}}}
    assert definitions == {}


def test_a_schema_that_contains_itself_stays_a_definition() -> None:
    schema, definitions = body_schema(
        {"$ref": "#/components/schemas/Tree"},
        Tree={
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}},
        },
    )
    assert schema == {"$ref": "#/$defs/Tree"}
    assert definitions["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}


def test_references_that_multiply_are_not_written_out() -> None:
    def pair(name: str) -> dict[str, Any]:
        ref = {"$ref": f"#/components/schemas/{name}"}
        return {"type": "object", "properties": {"l": ref, "r": ref}}

    schemas = {f"S{n}": pair(f"S{n + 1}") for n in range(40)}
    schema, definitions = body_schema({"$ref": "#/components/schemas/S0"}, **schemas, S40={"type": "string"})

    assert schema == {"$ref": "#/$defs/S0"}
    assert len(definitions) == 41


def test_a_long_chain_of_references_is_followed_to_its_end() -> None:
    schemas = {f"S{n}": {"items": {"$ref": f"#/components/schemas/S{n + 1}"}} for n in range(900)}
    schema, definitions = body_schema({"$ref": "#/components/schemas/S0"}, **schemas, S900={"type": "string"})

    assert schema == {"$ref": "#/$defs/S0"}
    assert definitions["S900"] == {"type": "string"}


@pytest.mark.parametrize("depth", [100, 200, 300, 400, 600])
def test_a_deep_schema_is_kept_or_noted(depth: int) -> None:
    schema: Any = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Deep"}}}
    tools = load(
        {"/x": {"post": {"requestBody": {"content": content}}}}, components={"schemas": {"Deep": schema}}
    )

    assert len(tools) == 1
    assert (tools.notes == ()) == ('"type": "string"' in json.dumps(tools[0].parameters))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 1},
        ),
        (
            {"type": "integer", "maximum": 9, "exclusiveMaximum": False},
            {"type": "integer", "maximum": 9},
        ),
    ],
)
def test_the_ways_of_version_3_0_are_translated(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert body_schema(old, version="3.0.3")[0] == new


def test_what_only_the_server_writes_is_not_asked_for() -> None:
    schema, _ = body_schema(
        {
            "type": "object",
            "required": ["id", "name"],
            "properties": {"id": {"readOnly": True, "type": "string"}, "name": {"type": "string"}},
        }
    )
    assert schema == {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


# --- what is noted --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "note"),
    [
        (
            {"parameters": [{"name": "p", "in": "query", "style": "matrix"}]},
            "GET /x: the parameter 'p' is left out: the style 'matrix' is not supported.",
        ),
        (
            {"parameters": [{"name": "p", "in": "query", "content": {"text/csv": {}}}]},
            "GET /x: the parameter 'p' is left out: its type 'text/csv' is not supported.",
        ),
        (
            {"parameters": [{"name": "Host", "in": "header"}]},
            "GET /x: the header 'Host' is set by robota itself.",
        ),
        (
            {"parameters": [{"name": "Content-Length", "in": "header", "required": True}]},
            "GET /x: the header 'Content-Length' is set by robota itself.",
        ),
        (
            {"parameters": [{"name": "Cookie", "in": "header"}]},
            "GET /x: the parameter 'Cookie' is left out: this header cannot be sent.",
        ),
        (
            {"parameters": [{"name": "p", "in": "body"}]},
            "GET /x: the parameter 'p' is left out: it is in 'body'.",
        ),
        (
            {"callbacks": {"done": {}}},
            "GET /x: its callbacks are left out; a tool cannot be called by a server.",
        ),
        (
            {"parameters": [{"name": "p", "in": "query", "schema": {"$ref": "other.yaml#/P"}}]},
            "A schema is taken for anything: the reference 'other.yaml#/P' leads out of the document.",
        ),
        (
            {"parameters": [{"name": "p", "in": "query", "schema": {"$dynamicRef": "#x"}}]},
            "The schema keyword '$dynamicRef' is not checked and not shown to the model.",
        ),
    ],
)
def test_what_an_operation_loses_is_noted(operation: dict[str, Any], note: str) -> None:
    tools = load({"/x": {"get": operation}})
    assert (len(tools), tools.notes) == (1, (note,))


DEEP: Any = {"type": "string"}
for _ in range(3000):
    DEEP = {"type": "array", "items": DEEP}


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (
            {"parameters": [{"name": "p", "in": "query", "style": "matrix", "required": True}]},
            "the parameter 'p' is needed, but the style 'matrix' is not supported",
        ),
        (
            {"parameters": [{"$ref": "#/components/parameters/gone"}]},
            "the reference '#/components/parameters/gone' leads nowhere",
        ),
        ({"parameters": [{"$ref": "#/components/parameters/round"}]}, "a reference leads in a circle"),
        ({"parameters": ["odd"]}, "an object was expected where 'odd' stands"),
        (
            {"requestBody": {"content": {"application/json": {"schema": DEEP}}}},
            "its schemas are nested too deeply",
        ),
    ],
)
def test_an_operation_that_cannot_be_called_is_left_out_and_noted(
    operation: dict[str, Any], reason: str
) -> None:
    tools = load(
        {"/x": {"post": operation}, "/y": {"get": {}}},
        components={"parameters": {"round": {"$ref": "#/components/parameters/round"}}},
    )
    assert [tool.name for tool in tools] == ["GET_y"]
    assert tools.notes == (f"POST /x is left out: {reason}.",)


def test_an_operation_with_an_unusable_server_of_its_own_is_left_out() -> None:
    tools = load(
        {"/x": {"post": {"servers": [{"url": "/upload"}]}}, "/y": {"get": {}}},
        base_url=None,
        servers=[{"url": "http://a.test"}],
    )
    assert [tool.name for tool in tools] == ["GET_y"]
    assert tools.notes == (
        "POST /x is left out: it has a server of its own, '/upload', which is no address to send requests "
        "to.",
    )


def test_paths_and_operations_of_the_wrong_shape_are_noted() -> None:
    tools = load({"/a": 1, "/b": {"get": []}, "x-extra": 2, "/c": {"$ref": "elsewhere.yaml"}})

    assert tools.notes == (
        "/a is left out: an object was expected where '1' stands.",
        "/c is left out: the reference 'elsewhere.yaml' leads out of the document.",
        "GET /b is left out: an object was expected where '[]' stands.",
    )


def test_operations_are_chosen_by_label_id_and_tag() -> None:
    spec = {
        "openapi": "3.1.0",
        "paths": {
            "/pets": {
                "get": {"operationId": "listPets"},
                "post": {"operationId": "addPet", "tags": ["write"]},
            },
            "/bills": {"get": {"tags": ["billing"]}, "delete": {"tags": ["billing", "write"]}},
        },
    }

    def names(**options: Any) -> list[str]:
        return [tool.operation.label for tool in load_openapi(spec, base_url="http://a.test", **options)]

    assert names(include=["GET *"]) == ["GET /pets", "GET /bills"]
    assert names(include=["*Pet*"]) == ["GET /pets", "POST /pets"]
    assert names(include=["billing", "listPets"], exclude=["write"]) == ["GET /pets", "GET /bills"]
    assert names(exclude=["* /pets"]) == ["GET /bills", "DELETE /bills"]
    none = load_openapi(spec, base_url="http://a.test", include=["cats"])
    assert (list(none), len(none.notes)) == ([], 1)
    with pytest.raises(ConfigurationError, match=r"`include` must be a list of patterns: \['GET \*'\]"):
        names(include="GET *")


def test_of_too_many_operations_the_first_become_tools_and_a_note_says_so() -> None:
    spec = {"openapi": "3.1.0", "paths": {f"/p{n}": {"get": {}} for n in range(200)}}
    tools = load_openapi(spec, base_url="http://a.test")
    assert (len(tools), tools[-1].name) == (128, "GET_p127")
    assert tools.notes == (
        "Only the first 128 of 200 operations became tools: choose with `include` and `exclude`, or raise "
        "`max_tools`.",
    )
    assert len(load_openapi(spec, base_url="http://a.test", max_tools=300)) == 200


def test_headers_that_follow_from_the_rest_are_no_parameters() -> None:
    parameters = [
        {"name": name, "in": "header", "required": True, "schema": {"type": "string"}}
        for name in ("Accept", "content-type", "Authorization", "X-Own")
    ]
    tools = load({"/x": {"get": {"parameters": parameters}}})
    assert (tools.notes, list(tools[0].parameters["properties"])) == ((), ["X-Own"])


def test_conditions_and_nullable_references_are_kept_with_what_they_lead_to() -> None:
    schema = {
        "properties": {"pet": {"nullable": True, "allOf": [{"$ref": "#/components/schemas/Pet"}]}},
        "if": {"required": ["pet"]},
        "then": {"$ref": "#/components/schemas/Owned"},
        "dependentRequired": {"a": ["b"]},
    }
    components = {"schemas": {"Pet": {"type": "object"}, "Owned": {"required": ["owner"]}}}
    content = {"application/json": {"schema": schema}}
    (tool,) = load({"/x": {"post": {"requestBody": {"content": content}}}}, components=components)
    assert tool.parameters["properties"]["body"] == {
        "properties": {"pet": {"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]}},
        "if": {"required": ["pet"]},
        "then": {"required": ["owner"]},
        "dependentRequired": {"a": ["b"]},
    }


def test_a_schema_that_is_too_large_is_cut_and_noted() -> None:
    leaves = {f"field{n}": {"type": "string", "description": "words " * 20} for n in range(100)}
    schemas = {
        "Leaf": {"type": "object", "description": "A leaf.", "properties": leaves},
        "Branch": {"properties": {f"leaf{n}": {"$ref": "#/components/schemas/Leaf"} for n in range(9)}},
        "Round": {"$ref": "#/components/schemas/About"},
        "About": {"$ref": "#/components/schemas/Round"},
        "Tree": {
            "properties": {
                "branches": {"type": "array", "items": {"$ref": "#/components/schemas/Branch"}},
                "inner": {"$ref": "#/components/schemas/Tree"},
                "round": {"$ref": "#/components/schemas/Round"},
            },
            "required": ["branches"],
        },
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}}
    tools = load({"/x": {"post": {"requestBody": {"content": content}}}}, components={"schemas": schemas})
    assert tools.notes == (
        "POST /x: its schema is too large to be shown whole; what is nested more than 4 deep may be "
        "anything.",
    )
    tree = tools[0].parameters["properties"]["body"]
    leaf = {"type": "object", "description": "A leaf."}
    assert tree["properties"]["branches"] == {
        "type": "array",
        "items": {"properties": {f"leaf{n}": leaf for n in range(9)}},
    }
    assert (tree["required"], tree["properties"]["round"], "$defs" in tools[0].parameters) == (
        ["branches"],
        {},
        False,
    )


def test_characters_that_yaml_refuses_cost_only_themselves() -> None:
    text = "openapi: 3.1.0\npaths:\n  /x:\n    get: {description: 'a\x80b\x9fc'}\n"
    (tool,) = load_openapi(text, base_url="http://a.test")
    assert tool.description == "a\ufffdb\ufffdc"


def test_webhooks_are_noted() -> None:
    assert load({}, webhooks={"x": {}}).notes == (
        "Webhooks are left out: a tool cannot be called by a server.",
    )


@pytest.mark.parametrize(
    ("scheme", "note"),
    [
        (
            {"type": "mutualTLS"},
            "The security scheme 's' is left out: the type 'mutualTLS' is not supported.",
        ),
        (
            {"type": "http", "scheme": "digest"},
            "The security scheme 's' is left out: HTTP authentication 'digest' is not supported.",
        ),
        (
            {"type": "apiKey", "in": "body", "name": "k"},
            "The security scheme 's' is left out: an API key in 'body' is not supported.",
        ),
        (
            {"type": "apiKey", "in": "header", "name": "Host"},
            "The security scheme 's' is left out: 'Host' cannot hold an API key.",
        ),
        (
            {"type": "oauth2"},
            "The security scheme 's' (oauth2): a token you give is sent; none is fetched.",
        ),
    ],
)
def test_security_schemes_that_are_not_understood_are_noted(scheme: dict[str, Any], note: str) -> None:
    assert load({}, components={"securitySchemes": {"s": scheme}}).notes == (note,)


def test_a_value_for_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"names the security scheme 'typo', .* it has 's'"):
        load({}, components={"securitySchemes": {"s": {"type": "oauth2"}}}, auth={"typo": "x"})


@pytest.mark.parametrize("value", [None, 1, "x", [], [None], {"x": None}])
@pytest.mark.parametrize(
    "key", ["paths", "components", "security", "servers", "parameters", "requestBody", "get", "schema"]
)
def test_nonsense_anywhere_is_noted_or_refused_but_never_a_crash(key: str, value: Any) -> None:
    spec = {
        "openapi": "3.0.0",
        "paths": {
            "/x": {
                "parameters": [{"name": "p", "in": "query", "schema": {"type": "string"}}],
                "get": {"requestBody": {"content": {"application/json": {"schema": {}}}}},
            }
        },
    }
    text = json.dumps(spec)
    wrong = json.loads(text, object_pairs_hook=lambda pairs: {k: value if k == key else v for k, v in pairs})
    wrong.setdefault(key, value)
    load_openapi(wrong, base_url="http://a.test")
