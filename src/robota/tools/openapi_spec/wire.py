"""Arguments of a call as an HTTP request, in the styles of OpenAPI.

A value stays in its place: what a model writes into a path, a query or a header cannot reach beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from msgspec import Struct

from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.http.errors import UrlError
from robota.http.url import Url, parse_url
from robota.tools.openapi_spec.auth import Credential
from robota.tools.openapi_spec.operations import Body, Operation, Parameter

_DELIMITERS = {"form": ",", "simple": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_RESERVED = ":/?[]@!$'()*,;"
"""What may stay as it is in a query on demand; `&`, `=`, `+` and `#` would end the value."""

_PATH = "/:@!$&'()*+,;=%"


class ArgumentError(Exception):
    """An argument that cannot be sent; the text names it."""


class WireRequest(Struct, frozen=True):
    method: str
    url: Url
    headers: Mapping[str, str]
    body: bytes


def build_request(
    operation: Operation, arguments: JsonObject, credentials: Sequence[Credential]
) -> WireRequest:
    parts = _Parts(operation.path)
    reserved = {(one.place, one.field.lower()) for one in credentials}
    for parameter in operation.parameters:
        value = arguments.get(parameter.argument)
        given = value is not None or parameter.required
        if given and (parameter.location, parameter.name.lower()) not in reserved:
            parts.add(parameter, value)
    for one in credentials:
        parts.identify(one)
    if parts.cookies:
        parts.headers["cookie"] = "; ".join(parts.cookies)
    body = _body_bytes(operation.body, arguments, parts.headers)
    return WireRequest(
        operation.method, _join(operation.server, parts.path, parts.query), parts.headers, body
    )


class _Parts:
    """A request under construction. Names of headers are in lower case, so that none is there twice."""

    __slots__ = ("cookies", "headers", "path", "query")

    def __init__(self, path: str) -> None:
        self.path = path
        self.query: list[str] = []
        self.headers = {"accept": "application/json, text/plain;q=0.9, */*;q=0.5"}
        self.cookies: list[str] = []

    def add(self, parameter: Parameter, value: Json) -> None:
        match parameter.location:
            case "path":
                self.path = self.path.replace(f"{{{parameter.name}}}", _path_text(parameter, value))
            case "query":
                self.query += _query_pairs(parameter, value)
            case "header":
                self.headers[parameter.name.lower()] = _header_text(parameter, value)
            case "cookie":
                self.cookies += _query_pairs(parameter, value)

    def identify(self, credential: Credential) -> None:
        match credential.place:
            case "header":
                self.headers[credential.field.lower()] = credential.value
            case "query":
                self.query.append(f"{_escape(credential.field)}={_escape(credential.value)}")
            case "cookie":
                self.cookies.append(f"{credential.field}={_escape(credential.value)}")


def _join(server: Url, path: str, query: Sequence[str]) -> Url:
    target = f"{server.target.rstrip('/')}/{quote(path.lstrip('/'), safe=_PATH)}"
    question = f"?{'&'.join(query)}" if query else ""
    try:
        return parse_url(f"{server.scheme}://{server.authority}{target}{question}")
    except UrlError as error:
        raise ArgumentError(f"the arguments make no usable URL: {error}") from error


def _path_text(parameter: Parameter, value: Json) -> str:
    text = _joined(parameter, value, "", "=")
    # With these, alone or beside one another, the path would be another one.
    if text in ("", ".", ".."):
        raise ArgumentError(f"the path parameter {parameter.argument!r} cannot be {text!r}")
    return text


def _header_text(parameter: Parameter, value: Json) -> str:
    if parameter.as_json:
        text = encode(value).decode()
    elif isinstance(value, list):
        text = ",".join(map(_plain, value))
    elif isinstance(value, dict):
        joint = "=" if parameter.explode else ","
        text = ",".join(f"{key}{joint}{_plain(one)}" for key, one in value.items())
    else:
        text = _plain(value)
    if not (text.isascii() and text.isprintable()):
        raise ArgumentError(f"the header {parameter.argument!r} must be printable ASCII")
    return text


def _query_pairs(parameter: Parameter, value: Json) -> list[str]:
    name, keep = _escape(parameter.name), _RESERVED if parameter.raw else ""
    if parameter.as_json:
        return [f"{name}={_escape(encode(value).decode(), keep)}"]
    if parameter.style == "deepObject":
        if not isinstance(value, dict):
            raise ArgumentError(f"the parameter {parameter.argument!r} must be an object")
        return [
            f"{name}%5B{_escape(key)}%5D={_escape(_plain(item), keep)}"
            for key, one in value.items()
            for item in (one if isinstance(one, list) else [one])
        ]
    if parameter.explode and isinstance(value, list):
        return [f"{name}={_escape(_plain(one), keep)}" for one in value]
    if parameter.explode and isinstance(value, dict):
        return [f"{_escape(key)}={_escape(_plain(one), keep)}" for key, one in value.items()]
    return [f"{name}={_joined(parameter, value, keep, ',')}"]


def _joined(parameter: Parameter, value: Json, keep: str, exploded: str) -> str:
    """A list or an object in one text; `exploded` stands between key and value where that is asked for."""
    delimiter = _DELIMITERS[parameter.style]
    if parameter.as_json:
        return _escape(encode(value).decode(), keep)
    if isinstance(value, list):
        return delimiter.join(_escape(_plain(one), keep) for one in value)
    if isinstance(value, dict):
        joint = exploded if parameter.explode else delimiter
        return delimiter.join(
            f"{_escape(key)}{joint}{_escape(_plain(one), keep)}" for key, one in value.items()
        )
    return _escape(_plain(value), keep)


def _body_bytes(body: Body | None, arguments: JsonObject, headers: dict[str, str]) -> bytes:
    if body is None or body.argument not in arguments:
        return b""
    value = arguments[body.argument]
    headers["content-type"] = body.content_type
    if body.encoding == "json":
        return encode(value)
    if body.encoding == "text":
        return _plain(value).encode("utf-8", "replace")
    if not isinstance(value, dict):
        raise ArgumentError(f"{body.argument!r} must be an object")
    pairs = [(key, item) for key, one in value.items() for item in (one if isinstance(one, list) else [one])]
    return "&".join(f"{_escape(key)}={_escape(_plain(one))}" for key, one in pairs).encode()


def _plain(value: Json) -> str:
    """One value as text; a structure where none fits is sent as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else encode(value).decode()


def _escape(text: str, keep: str = "") -> str:
    return quote(text, safe=keep, errors="replace")
