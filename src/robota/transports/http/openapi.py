"""The OpenAPI document, made of the same table as the routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from robota._version import __version__
from robota.core.messages import JsonObject
from robota.transports.http.route import Route

REFERENCE = "#/components/schemas/{name}"
_PLACE = re.compile(r"\{(\w+)\}")
_WORDS = {
    200: "As asked.",
    201: "It was made.",
    202: "It was accepted, and goes on.",
    204: "It is gone.",
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "A page or a name that is not the server's, or a server that only shows.",
    404: "There is no such session, command or path.",
    408: "The body did not come in time.",
    409: "The session is busy, is open in another process, or the question is closed.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "What was sent is not as described here.",
    429: "Too many sessions are open.",
    431: "The head of the request is too large.",
    502: "The service behind the server failed.",
    503: "The store cannot be used.",
}


class ErrorText(Struct, frozen=True):
    """What is wrong, in one sentence, with a word for programs."""

    code: str
    message: str


class Error(Struct, frozen=True):
    """What every failure is answered with."""

    error: ErrorText


def describe_routes(table: Sequence[Route]) -> JsonObject:
    """The document."""
    kinds = [Error, *(kind for route in table for kind in _kinds(route))]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    by_kind = dict(zip(map(repr, kinds), schemas, strict=True))
    paths: JsonObject = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _describe(route, by_kind, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "robota", "version": __version__, "summary": "Sessions of a coding assistant."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _kinds(route: Route) -> Iterable[Any]:
    if route.body is not None:
        yield route.body
    yield route.query
    yield from (kind for kind in route.answers.values() if kind is not None and not isinstance(kind, str))


def _describe(route: Route, by_kind: JsonObject, components: JsonObject) -> JsonObject:
    answers = {str(status): _answer(status, kind, by_kind) for status, kind in route.answers.items()}
    for status in sorted(list_errors(route)):
        answers.setdefault(str(status), _answer(status, Error, by_kind))
    described: JsonObject = {
        "summary": route.summary,
        "operationId": f"{route.method.lower()}{re.sub('[^a-zA-Z]+', '_', route.path)}".rstrip("_"),
        "responses": answers,
    }
    parameters = [*_places(route), *_query(components[route.query.__name__])]
    if parameters:
        described["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": by_kind[repr(route.body)]}}
        described["requestBody"] = {"required": True, "content": content}
    if route.is_public:
        described["security"] = []
    return described


def _answer(status: int, kind: Any, by_kind: JsonObject) -> JsonObject:
    answer: JsonObject = {"description": _WORDS[status]}
    if isinstance(kind, str):
        answer["content"] = {media: {"schema": {"type": "string"}} for media in kind.split()}
    elif kind is not None:
        answer["content"] = {"application/json": {"schema": by_kind[repr(kind)]}}
    return answer


def _places(route: Route) -> Iterable[JsonObject]:
    for name in _PLACE.findall(route.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query(schema: JsonObject) -> Iterable[JsonObject]:
    for name, value in schema["properties"].items():
        yield {"name": name, "in": "query", "required": False, "schema": value}


def list_errors(route: Route) -> set[int]:
    """The failures that a route may answer with."""
    errors = {403, 422, 431}
    if not route.is_public:
        errors.add(401)
    if route.body is not None:
        errors |= {400, 408, 413, 415}
    if route.is_public or not (route.changes or route.path.count("{") or route.is_session):
        return errors
    return errors | {400, 404, 409, 429, 503}
