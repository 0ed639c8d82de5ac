"""Calls: what an operation's arguments become on the wire, and what its answer becomes."""

from __future__ import annotations

import asyncio
import json
import socket
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import pytest
from tests.tools.web_site import Answer, Request, Send, Site, answer, redirect

from robota import __version__
from robota.core.tool import Tool, ToolContext, ToolResult, tool_class, tool_schema
from robota.tools.openapi.tool import OpenAPITool, load_openapi

pytestmark = pytest.mark.anyio

KEY = "sekret-key-123"
OK: dict[str, Answer] = {"*": answer('{"ok": true}', "application/json")}


def document(
    path: str = "/things", method: str = "get", *, root: dict[str, Any] | None = None, **operation: Any
) -> dict[str, Any]:
    """A document with one operation."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Things", "version": "1"},
        "paths": {path: {method: {"operationId": "act", **operation}}},
        **(root or {}),
    }


def parameter(name: str, location: str, schema: Any = None, **rest: Any) -> dict[str, Any]:
    return {"name": name, "in": location, "schema": schema or {"type": "string"}, **rest}


async def call(
    spec: dict[str, Any], arguments: dict[str, Any] | None = None, *, pages: Any = None, **options: Any
) -> tuple[ToolResult, list[Request]]:
    """The only tool of the document called against a real server."""
    async with Site(pages or OK) as site:
        (tool,) = load_openapi(spec, base_url=f"{site.origin}/v1/", **options)
        return await tool.run(arguments or {}, ToolContext()), site.requests


PETS = """
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers:
  - url: http://127.0.0.1:{port}/{stage}
    variables:
      port: {default: "1"}
      stage: {default: live, enum: [live, test]}
security:
  - key: []
paths:
  /pets/{petId}:
    parameters:
      - {name: petId, in: path, required: true, schema: {type: integer}}
    get:
      operationId: get pet
      summary: One pet
      parameters:
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: fields, in: query, schema: {type: array, items: {type: string}}}
    put:
      summary: Change a pet
      requestBody:
        required: true
        content:
          application/json: {schema: {$ref: "#/components/schemas/Pet"}}
  /pets:
    get: {operationId: list, security: []}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string}
        tag: {type: string, nullable: true}
        answer: {type: string, enum: [yes, no]}
"""


async def test_a_whole_document_becomes_tools_that_make_real_requests() -> None:
    async with Site(OK) as site:
        tools = load_openapi(
            PETS,
            auth={"key": "$ENV:PETS_KEY"},
            env={"PETS_KEY": KEY},
            server_variables={"port": str(site.port), "stage": "test"},
        )
        get_pet, put_pet, list_pets = tools
        results = [
            await get_pet.run({"petId": 7, "X-Trace": "abc", "fields": ["name", "tag"]}, ToolContext()),
            await put_pet.run({"petId": 7, "body": {"name": "Rex", "answer": "no"}}, ToolContext()),
            await list_pets.run({}, ToolContext()),
        ]

    assert tools.notes == ()
    assert [tool.name for tool in tools] == ["get_pet", "PUT_pets_petId", "list"]
    assert [result.text for result in results] == ['{"ok": true}'] * 3
    got, put, listed = site.requests
    assert (got.method, got.target) == ("GET", "/test/pets/7?fields=name&fields=tag")
    assert (got.headers["x-trace"], got.headers["x-key"]) == ("abc", KEY)
    assert got.headers["user-agent"] == f"robota/{__version__}"
    assert (put.method, put.target) == ("PUT", "/test/pets/7")
    assert (put.headers["content-type"], json.loads(put.body)) == (
        "application/json",
        {"name": "Rex", "answer": "no"},
    )
    assert (listed.target, "x-key" in listed.headers) == ("/test/pets", False)


def test_a_tool_says_what_it_takes() -> None:
    get_pet, put_pet, _ = load_openapi(PETS, base_url="http://a.test")

    assert isinstance(get_pet, Tool)
    assert isinstance(get_pet, OpenAPITool)
    assert (get_pet.description, tool_class(get_pet)) == ("One pet", None)
    assert repr(get_pet) == "<OpenAPITool 'get_pet': GET /pets/{petId}>"
    assert tool_schema(put_pet).parameters == {
        "type": "object",
        "properties": {
            "petId": {"type": "integer"},
            "body": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "tag": {"type": ["string", "null"]},
                    "answer": {"type": "string", "enum": ["yes", "no"]},
                },
            },
        },
        "required": ["petId", "body"],
        "additionalProperties": False,
    }


# --- arguments on the wire ------------------------------------------------------------------------

LIST, MAP = {"type": "array"}, {"type": "object"}


@pytest.mark.parametrize(
    ("style", "value", "query"),
    [
        ({}, "a b&c=d/é", "p=a%20b%26c%3Dd%2F%C3%A9"),
        ({}, True, "p=true"),
        ({}, 3.0, "p=3"),
        ({}, 0.5, "p=0.5"),
        ({}, "", "p="),
        ({}, ["a,b", "c"], "p=a%2Cb&p=c"),
        ({"explode": False}, ["a,b", "c"], "p=a%2Cb,c"),
        ({"style": "spaceDelimited", "explode": False}, ["a", "b"], "p=a%20b"),
        ({"style": "pipeDelimited", "explode": False}, ["a", "b"], "p=a%7Cb"),
        ({}, {"x": 1, "y&": "z"}, "x=1&y%26=z"),
        ({"explode": False}, {"x": 1, "y": "z"}, "p=x,1,y,z"),
        ({"style": "deepObject"}, {"x": 1, "y": ["a", "b"]}, "p%5Bx%5D=1&p%5By%5D=a&p%5By%5D=b"),
        ({"style": "deepObject"}, ["a", "b"], "p%5B0%5D=a&p%5B1%5D=b"),
        ({"style": "deepObject"}, {"a": {"b": [{"c": 1}]}}, "p%5Ba%5D%5Bb%5D%5B0%5D%5Bc%5D=1"),
        ({"allowReserved": True}, "/a:b?c&d", "p=/a:b?c%26d"),
        ({}, [{"a": 1}], "p=%7B%22a%22%3A1%7D"),
    ],
)  # fmt: skip
async def test_a_query_is_written_in_the_style_the_document_asks_for(
    style: dict[str, Any], value: Any, query: str
) -> None:
    spec = document(parameters=[{"name": "p", "in": "query", **style}])
    _, (request,) = await call(spec, {"p": value})

    assert request.target == f"/v1/things?{query}"


async def test_a_parameter_described_by_content_is_sent_as_json() -> None:
    spec = document(
        parameters=[{"name": "f", "in": "query", "content": {"application/json": {"schema": MAP}}}]
    )
    _, (request,) = await call(spec, {"f": {"a": [1]}})

    assert request.query == [("f", '{"a":[1]}')]


@pytest.mark.parametrize(
    ("explode", "value", "path"),
    [
        (False, "a/../b?c#d", "/v1/x/a%2F..%2Fb%3Fc%23d/y"),
        (False, ["a", "b/c"], "/v1/x/a,b%2Fc/y"),
        (False, {"k": 1, "l": 2}, "/v1/x/k,1,l,2/y"),
        (True, {"k": 1, "l": 2}, "/v1/x/k=1,l=2/y"),
        (False, "{other}", "/v1/x/%7Bother%7D/y"),
    ],
)
async def test_a_value_stays_in_its_place_in_the_path(explode: bool, value: Any, path: str) -> None:
    spec = document("/x/{id}/y", parameters=[{"name": "id", "in": "path", "explode": explode}])
    _, (request,) = await call(spec, {"id": value})

    assert request.target == path


@pytest.mark.parametrize(
    ("style", "explode", "value", "path"),
    [
        ("label", False, 5, ".5"),
        ("label", False, [3, "a/b"], ".3,a%2Fb"),
        ("label", True, [3, 4], ".3.4"),
        ("label", False, {"r": 1, "g": 2}, ".r,1,g,2"),
        ("label", True, {"r": 1, "g": 2}, ".r=1.g=2"),
        ("matrix", False, 5, ";id=5"),
        ("matrix", False, "", ";id"),
        ("matrix", False, [3, 4], ";id=3,4"),
        ("matrix", True, [3, "a;b"], ";id=3;id=a%3Bb"),
        ("matrix", False, {"r": 1, "g": 2}, ";id=r,1,g,2"),
        ("matrix", True, {"r": 1, "g": 2}, ";r=1;g=2"),
    ],
)
async def test_a_path_is_written_in_the_style_the_document_asks_for(
    style: str, explode: bool, value: Any, path: str
) -> None:
    described = {"name": "id", "in": "path", "style": style, "explode": explode}
    _, (request,) = await call(document("/x/{id}/y", parameters=[described]), {"id": value})

    assert request.target == f"/v1/x/{path}/y"


@pytest.mark.parametrize("explode", [False, True])
async def test_a_label_cannot_climb_out_of_its_path(explode: bool) -> None:
    described = {"name": "id", "in": "path", "style": "label", "explode": explode}
    spec = document("/x/{id}/y", parameters=[described])
    for value in ("", ".", [], *([[""], ["", ""], ["."], {}] if explode else [])):
        result, requests = await call(spec, {"id": value})
        assert (result.ok, requests) == (False, [])


@pytest.mark.parametrize("value", ["", ".", "..", []])
async def test_a_value_that_would_change_the_path_is_refused(value: Any) -> None:
    result, requests = await call(
        document("/x/{id}", parameters=[{"name": "id", "in": "path"}]), {"id": value}
    )

    assert (result.ok, requests) == (False, [])
    assert result.text.startswith("Error: act was not called: the path parameter 'id' cannot be ")


async def test_headers_and_cookies_are_sent() -> None:
    spec = document(
        parameters=[
            parameter("X-List", "header", LIST),
            parameter("X-Map", "header", MAP, explode=True),
            parameter("session", "cookie"),
            parameter("flags", "cookie", LIST, explode=False),
        ]
    )
    arguments = {"X-List": ["a", 1], "X-Map": {"k": True}, "session": "a; b=c", "flags": ["x", "y"]}
    _, (request,) = await call(spec, arguments)

    assert (request.headers["x-list"], request.headers["x-map"]) == ("a,1", "k=true")
    assert request.headers["cookie"] == "session=a%3B%20b%3Dc; flags=x,y"


@pytest.mark.parametrize("value", ["a\r\nHost: evil", "ü", "\0"])
async def test_a_header_cannot_smuggle_another(value: str) -> None:
    result, requests = await call(document(parameters=[parameter("X-A", "header")]), {"X-A": value})

    assert (result.error, requests) == (
        "act was not called: the header 'X-A' must be printable ASCII.",
        [],
    )


@pytest.mark.parametrize(
    ("content_type", "value", "body"),
    [
        ("application/json", {"a": "é"}, '{"a":"é"}'.encode()),
        ("application/vnd.thing+json", [1], b"[1]"),
        ("application/x-www-form-urlencoded", {"a b": "c&d", "e": [1, 2]}, b"a%20b=c%26d&e=1&e=2"),
        ("text/plain", "plain", b"plain"),
    ],
)
async def test_a_body_is_written_in_its_type(content_type: str, value: Any, body: bytes) -> None:
    spec = document(method="post", requestBody={"content": {"multipart/form-data": {}, content_type: {}}})
    _, (request,) = await call(spec, {"body": value})

    assert (request.headers["content-type"], request.body) == (content_type, body)


async def test_a_form_writes_its_fields_as_the_document_says() -> None:
    encoding = {
        "expand": {"style": "deepObject", "explode": True},
        "ids": {"style": "form", "explode": False},
        "filter": {"contentType": "application/json"},
        "back": {"allowReserved": True},
    }
    content = {"application/x-www-form-urlencoded": {"schema": {"type": "object"}, "encoding": encoding}}
    body = {"expand": ["a", "b"], "ids": [1, 2], "filter": {"x": 1}, "back": "/a", "plain": {"y": 2}}
    _, (request,) = await call(document(method="post", requestBody={"content": content}), {"body": body})

    assert request.body.decode() == (
        "expand%5B0%5D=a&expand%5B1%5D=b&ids=1,2&filter=%7B%22x%22%3A1%7D&back=/a&plain=%7B%22y%22%3A2%7D"
    )


async def test_a_multipart_body_has_a_part_for_each_field_and_file() -> None:
    schema = {
        "type": "object",
        "properties": {
            "note": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "meta": {"type": "object"},
            "photo": {"type": "string", "format": "binary"},
            "logs": {"type": "array", "items": {"type": "string", "format": "binary"}},
            "list": {"type": "array", "items": {"type": "integer"}},
            "scan[]": {"$ref": "#/components/schemas/Scans"},
        },
        "allOf": [{"$ref": "#/components/schemas/More"}],
    }
    parts = {
        "Scans": {"type": "array", "items": {"$ref": "#/components/schemas/File"}},
        "File": {"type": "string", "format": "binary"},
        "More": {"properties": {"proof": {"$ref": "#/components/schemas/File"}, "table": {"type": "string"}}},
    }
    encoding = {
        "table": {"contentType": "text/csv"},
        "photo": {"contentType": "image/png, image/jpeg"},
        "list": {"contentType": "application/json"},
    }
    content = {"multipart/form-data": {"schema": schema, "encoding": encoding}}
    body = {
        "note": "a\r\nb",
        "tags": ["x", "y"],
        "meta": {"k": 1},
        "photo": "data:image/png;base64,iVBORw==",
        "logs": ["one", "two"],
        "list": [1, 2],
        'odd"\r\nname': "z",
        "scan[]": ["data:;base64,//8="],
        "proof": "p",
        "table": "a,b",
        "größe": 3,
    }
    spec = document(method="post", requestBody={"content": content})
    spec["components"] = {"schemas": parts}
    _, (request,) = await call(spec, {"body": body})

    head = f"content-type: {request.headers['content-type']}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + request.body)
    assert [
        (part.get_param("name", header="content-disposition"), part.get_filename(), part.get_content_type(),
         part.get_payload(decode=True))
        for part in message.iter_parts()
    ] == [
        ("note", None, "text/plain", b"a\r\nb"),
        ("tags", None, "text/plain", b"x"),
        ("tags", None, "text/plain", b"y"),
        ("meta", None, "application/json", b'{"k":1}'),
        ("photo", "photo", "image/png", b"\x89PNG"),
        ("logs", "logs", "application/octet-stream", b"one"),
        ("logs", "logs", "application/octet-stream", b"two"),
        ("list", None, "application/json", b"[1,2]"),
        ("odd%22%0D%0Aname", None, "text/plain", b"z"),
        ("scan[]", "scan[]", "application/octet-stream", b"\xff\xff"),
        ("proof", "proof", "application/octet-stream", b"p"),
        ("table", None, "text/csv", b"a,b"),
        ("größe", None, "text/plain", b"3"),
    ]  # fmt: skip
    (tool,) = load_openapi(spec, base_url="http://a.test")
    told = tool.parameters["properties"]["body"]["description"]
    assert told == "Files are given as text, or as data:<type>;base64,<bytes>."


@pytest.mark.parametrize(
    ("value", "body"), [("plain", b"plain"), ("data:application/pdf;base64,JVBERg==", b"%PDF")]
)
async def test_a_body_of_bytes_is_given_as_text_or_base64(value: str, body: bytes) -> None:
    spec = document(method="post", requestBody={"content": {"application/octet-stream": {}}})
    _, (request,) = await call(spec, {"body": value})
    assert (request.headers["content-type"], request.body) == ("application/octet-stream", body)

    result, requests = await call(spec, {"body": "data:application/pdf;base64,?"})
    assert (str(result.error).startswith("act was not called: 'body' is not base64"), requests) == (True, [])


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/q?Action=List&x={id}", "/v1/q?Action=List&x=a%20b&more=1"),
        ("/q/{id}#X-Target=List", "/v1/q/a%20b?more=1"),
    ],
)
async def test_a_query_in_the_path_is_sent_and_a_fragment_is_not(path: str, target: str) -> None:
    operation = {"operationId": "act", "parameters": [parameter("id", "path"), parameter("more", "query")]}
    spec = {"openapi": "3.1.0", "paths": {path: {"get": operation}}}
    _, (request,) = await call(spec, {"id": "a b", "more": "1"})
    assert request.target == target


async def test_json_is_preferred_and_a_body_may_be_left_out() -> None:
    content = {"text/plain": {}, "application/x-www-form-urlencoded": {}, "application/json": {}}
    spec = document(method="post", requestBody={"content": content})

    assert (await call(spec, {"body": "x"}))[1][0].headers["content-type"] == "application/json"
    assert "content-type" not in (await call(spec))[1][0].headers


async def test_optional_parameters_may_be_left_out_or_null() -> None:
    spec = document(parameters=[{"name": "a", "in": "query"}, {"name": "b", "in": "query"}])
    _, (request,) = await call(spec, {"a": None})

    assert request.target == "/v1/things"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "missing required field 'id'"),
        ({"id": "x"}, "'id' must be an integer, got the string \"x\""),
        ({"id": 1, "more": 2}, "unknown field 'more'; allowed: 'id'"),
    ],
)
async def test_wrong_arguments_are_named_and_nothing_is_sent(arguments: dict[str, Any], problem: str) -> None:
    spec = document("/x/{id}", parameters=[parameter("id", "path", {"type": "integer"})])
    result, requests = await call(spec, arguments)

    assert (result.error, result.error_code) == (
        f"The arguments of 'act' do not fit: {problem}.",
        "invalid_arguments",
    )
    assert requests == []


async def test_a_url_that_gets_too_long_is_refused() -> None:
    result, requests = await call(document(parameters=[parameter("q", "query")]), {"q": "x" * 9000})

    assert (result.ok, requests) == (False, [])
    assert "longer than 8,192 characters" in result.text


# --- credentials ----------------------------------------------------------------------------------


def secured(scheme: dict[str, Any], **operation: Any) -> dict[str, Any]:
    root = {"components": {"securitySchemes": {"s": scheme}}, "security": [{"s": []}]}
    return document(root=root, **operation)


@pytest.mark.parametrize(
    ("scheme", "value", "place", "sent"),
    [
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, KEY, "x-key", KEY),
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, KEY, "cookie", f"sid={KEY}"),
        ({"type": "http", "scheme": "Bearer"}, KEY, "authorization", f"Bearer {KEY}"),
        ({"type": "http", "scheme": "basic"}, "me:pass", "authorization", "Basic bWU6cGFzcw=="),
        ({"type": "oauth2", "flows": {}}, KEY, "authorization", f"Bearer {KEY}"),
    ],
)
async def test_credentials_come_from_the_environment(
    scheme: dict[str, Any], value: str, place: str, sent: str
) -> None:
    _, (request,) = await call(secured(scheme), auth={"s": "$ENV:THE_KEY"}, env={"THE_KEY": value})
    assert request.headers[place] == sent


async def test_a_key_in_the_query_cannot_be_doubled_by_the_model() -> None:
    scheme = {"type": "apiKey", "in": "query", "name": "api_key"}
    spec = secured(scheme, parameters=[parameter("api_key", "query"), parameter("q", "query")])
    _, (request,) = await call(spec, {"api_key": "mine", "q": "x"}, auth={"s": KEY})

    assert request.query == [("q", "x"), ("api_key", KEY)]


async def test_the_real_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Site(OK) as site:
        scheme = {"type": "http", "scheme": "bearer"}
        (tool,) = load_openapi(secured(scheme), base_url=site.origin, auth={"s": "$ENV:THE_KEY"})
        monkeypatch.delenv("THE_KEY", raising=False)
        result = await tool.run({}, ToolContext())
        monkeypatch.setenv("THE_KEY", KEY)
        assert (await tool.run({}, ToolContext())).ok

    assert result.error == ("act was not called: set the environment variable THE_KEY (security scheme 's').")
    assert len(site.requests) == 1


async def test_an_operation_whose_credentials_nobody_gave_says_so() -> None:
    async with Site(OK) as site:
        tools = load_openapi(secured({"type": "http", "scheme": "bearer"}), base_url=site.origin)
        result = await tools[0].run({}, ToolContext())

    assert tools.notes == ("GET /things needs credentials that `auth` does not give: 's'.",)
    assert "whoever loaded the API must give `auth` for 's'" in result.text
    assert site.requests == []


async def test_the_alternative_that_was_given_is_used() -> None:
    schemes = {
        "a": {"type": "apiKey", "in": "header", "name": "X-A"},
        "b": {"type": "apiKey", "in": "header", "name": "X-B"},
        "c": {"type": "apiKey", "in": "header", "name": "X-C"},
    }
    spec = document(
        root={"components": {"securitySchemes": schemes}}, security=[{"a": []}, {"b": [], "c": []}, {}]
    )
    _, (anonymous,) = await call(spec, auth={"b": "1"})
    _, (both,) = await call(spec, auth={"b": "1", "c": "2"})

    assert {name for name in anonymous.headers if name.startswith("x-")} == set()
    assert (both.headers["x-b"], both.headers["x-c"]) == ("1", "2")


async def test_a_key_that_http_does_not_allow_is_refused_without_showing_it() -> None:
    scheme = {"type": "http", "scheme": "bearer"}
    result, requests = await call(secured(scheme), auth={"s": f"{KEY}\n"})

    assert (result.ok, requests, KEY in repr(result)) == (False, [], False)


async def test_an_answer_that_repeats_the_key_is_cleaned() -> None:
    scheme = {"type": "http", "scheme": "basic"}
    pages = {"*": answer("you sent me:pass as bWU6cGFzcw==", status="400 Bad")}
    result, _ = await call(secured(scheme), pages=pages, auth={"s": "me:pass"})

    assert "you sent [hidden] as [hidden]" in result.text


async def test_credentials_are_not_sent_to_another_server_the_document_names() -> None:
    async with Site(OK) as own, Site(OK) as other:
        spec = secured({"type": "http", "scheme": "bearer"}, servers=[{"url": other.origin}])
        spec["servers"] = [{"url": own.origin}]
        tools = load_openapi(spec, auth={"s": KEY})
        await tools[0].run({}, ToolContext())

    assert "authorization" not in other.requests[0].headers
    assert tools.notes == (
        f"GET /things: no credentials are sent to 127.0.0.1:{other.port}, which is not the API's own server; "
        "`base_url` would make it so.",
    )


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (answer('{"a": "é"}', "application/json"), '{"a": "é"}'),
        (answer("Grüße".encode("latin-1"), "text/plain; charset=latin-1"), "Grüße"),
        (answer(b"", "", status="204 No Content"), "(HTTP 204, without content)"),
        (answer(b"\x89PNG", "image/png"), "(4 bytes of 'image/png', which is not text)"),
        (answer("\x1b[31m<system-reminder>x"), "&lt;system-reminder>x"),
    ],
)
async def test_an_answer_becomes_text(page: bytes, text: str) -> None:
    result, _ = await call(document(), pages={"*": page})
    assert (result.ok, result.content) == (True, text)


async def test_a_long_answer_is_cut() -> None:
    result, _ = await call(document(), pages={"*": answer("x" * 100_010)})
    assert result.content.endswith("x\n[... 10 more characters left out]")


async def test_a_refusal_is_a_failure_with_what_the_server_said() -> None:
    result, _ = await call(document(), pages={"*": answer('{"why": "gone"}' + "x" * 3000, status="410 G")})

    assert (result.ok, result.error_code, result.metadata) == (False, "http_status", {"status": 410})
    assert result.text.startswith('Error: act failed: HTTP 410 Gone. Do not retry.\n{"why": "gone"}xxx')
    assert len(result.text) < 2200


async def test_a_redirect_is_told_and_not_followed() -> None:
    async with Site(OK) as other:
        result, _ = await call(document(), pages={"*": redirect(other.origin)})

    assert other.requests == []
    assert result.error == (
        f"act failed: HTTP 302 Found. Do not retry.\nIt redirects to '{other.origin}', which is not followed."
    )


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        ("get", "You may retry once."),
        ("put", "You may retry once."),
        ("post", "It may have taken effect all the same: find out before you repeat it."),
    ],
)
async def test_what_may_have_happened_is_not_repeated_lightly(method: str, advice: str) -> None:
    result, _ = await call(document(method=method), pages={"*": b""})

    assert result.error == (
        f"act failed: 127.0.0.1 closed the connection before its answer was complete. {advice}"
    )


async def test_a_server_error_after_a_post_is_not_repeated_lightly() -> None:
    result, _ = await call(document(method="patch"), pages={"*": answer("oops", status="500 X")})
    assert result.error == (
        "act failed: HTTP 500 Internal Server Error. "
        "It may have taken effect all the same: find out before you repeat it.\noops"
    )


async def test_a_server_that_does_not_answer_runs_out_of_time() -> None:
    async def wait(request: Request, send: Send) -> None:
        await asyncio.Event().wait()

    result, _ = await call(document(), pages={"*": wait}, timeout=0.3)
    assert result.error == "act failed: 127.0.0.1 did not answer within 0.3 s. You may retry once."


async def test_an_answer_that_is_too_large_is_refused() -> None:
    result, _ = await call(document(), pages={"*": answer("x" * 2000)}, max_bytes=1000)
    assert result.error == "act failed: The answer of 127.0.0.1 is larger than 1,000 bytes. Do not retry."


async def test_nobody_listening_is_told() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        (tool,) = load_openapi(document(), base_url=f"http://127.0.0.1:{port}")
        result = await tool.run({}, ToolContext())

    assert (result.ok, result.error_code) == (False, "refused")
    assert result.text.startswith(f"Error: act failed: 127.0.0.1 refused the connection on port {port}.")
