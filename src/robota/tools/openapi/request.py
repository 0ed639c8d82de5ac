"""Arguments and credentials of a call as an HTTP request, in the styles of OpenAPI.

A value stays where it belongs: what a model writes into a path, a query or a header cannot reach beyond it.
Credentials are looked up at the moment of a call, kept nowhere and named in no message. Only schemes the user
gave a value for are used: a document cannot ask for a variable by itself.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Literal, TypeAlias
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from robota.core.credentials import is_env_reference, resolve_env_reference
from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode, object_of, text_of
from robota.core.messages import Json, JsonObject
from robota.http.errors import UrlError
from robota.http.url import Url, parse_url
from robota.tools.openapi.document import Document, UnsupportedError, is_token
from robota.tools.openapi.operations import Body, Location, Operation, Parameter

_DELIMITERS = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
"""Between the values of a list; in the other styles a comma."""
_RESERVED = ":/?[]@!$'()*,;"
"""What may stay as it is in a query on demand; `&`, `=`, `+` and `#` would end the value."""

_PATH = "/:@!$&'()*+,;=%"
_QUERY = f"{_PATH}?"
_Escape: TypeAlias = Callable[[str, str], str]
"""From a text, and what may stay as it is, to one that means itself where it is put."""
_FRAMING = frozenset({"connection", "content-length", "content-type", "host", "te", "transfer-encoding"})


class CallError(Exception):
    """A call that cannot be made; the text says which argument or credential is to blame."""


def build_request(
    operation: Operation, arguments: JsonObject, credentials: Sequence[Credential]
) -> tuple[Url, Mapping[str, str], bytes]:
    """The address, headers and body of a call."""
    parts = _Parts(operation.path, {"accept": "application/json, text/plain;q=0.9, */*;q=0.5"})
    reserved = {(one.location, one.field.lower()) for one in credentials}
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
    return _join(operation.server, parts.path, parts.query), parts.headers, body


class _Parts(Struct):
    """A request under construction. Names of headers are in lower case, so that none is there twice."""

    path: str
    headers: dict[str, str]
    query: list[str] = []
    cookies: list[str] = []

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
        match credential.location:
            case "header":
                self.headers[credential.field.lower()] = credential.value
            case "query":
                self.query.append(f"{_escape(credential.field)}={_escape(credential.value)}")
            case "cookie":
                self.cookies.append(f"{credential.field}={_escape(credential.value)}")


def _join(server: Url, path: str, query: Sequence[str]) -> Url:
    """Some documents tell operations of one path apart by a query or a fragment; a fragment is not sent."""
    path, _, fixed = path.partition("#")[0].partition("?")
    target = f"{server.target.rstrip('/')}/{quote(path.lstrip('/'), safe=_PATH)}"
    query = [quote(fixed, safe=_QUERY), *query] if fixed else query
    question = f"?{'&'.join(query)}" if query else ""
    try:
        return parse_url(f"{server.scheme}://{server.authority}{target}{question}")
    except UrlError as error:
        raise CallError(f"the arguments make no usable URL: {error}") from error


def _escape(text: str, keep: str = "") -> str:
    return quote(text, safe=keep, errors="replace")


def _path_text(parameter: Parameter, value: Json) -> str:
    prefixed = parameter.style in ("label", "matrix") and not parameter.as_json
    text = _prefixed(parameter, value) if prefixed else _joined(parameter, value, "=")
    # With these, alone or beside one another, the path would be another one.
    if text in ("", ".", ".."):
        raise CallError(f"the path parameter {parameter.argument!r} cannot be {encode(value).decode()}")
    return text


def _prefixed(parameter: Parameter, value: Json) -> str:
    """`.1,2` and `;name=1,2`; exploded, each value has its own prefix."""
    name = _escape(parameter.name)
    before, own = (".", ".") if parameter.style == "label" else (";", f";{name}=")
    if parameter.explode and isinstance(value, list):
        return "".join(f"{own}{_escape(_plain(one))}" for one in value)
    if parameter.explode and isinstance(value, dict):
        return "".join(f"{before}{_escape(key)}={_escape(_plain(one))}" for key, one in value.items())
    text = _joined(parameter, value, "=")
    return f"{own}{text}" if text or before == "." else f";{name}"


def _header_text(parameter: Parameter, value: Json) -> str:
    text = _joined(parameter, value, "=", lambda text, keep: text)
    if not (text.isascii() and text.isprintable()):
        raise CallError(f"the header {parameter.argument!r} must be printable ASCII")
    return text


def _query_pairs(parameter: Parameter, value: Json) -> list[str]:
    name, keep = _escape(parameter.name), _RESERVED if parameter.raw else ""
    if parameter.as_json:
        return [f"{name}={_escape(encode(value).decode(), keep)}"]
    if parameter.style == "deepObject":
        if not isinstance(value, dict | list):
            raise CallError(f"the parameter {parameter.argument!r} must be an object or a list")
        return [f"{where}={_escape(_plain(one), keep)}" for where, one in _flatten(name, value)]
    if parameter.explode and isinstance(value, list):
        return [f"{name}={_escape(_plain(one), keep)}" for one in value]
    if parameter.explode and isinstance(value, dict):
        return [f"{_escape(key)}={_escape(_plain(one), keep)}" for key, one in value.items()]
    return [f"{name}={_joined(parameter, value, ',', keep=keep)}"]


def _flatten(name: str, value: Json, *, inside: bool = False) -> Iterator[tuple[str, Json]]:
    """The plain values of a structure with where they are: `a[b][0][c]`; a plain list repeats its name."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _flatten(f"{name}%5B{_escape(key)}%5D", one, inside=True)
    elif isinstance(value, list):
        is_plain = inside and not any(isinstance(one, dict | list) for one in value)
        for at, one in enumerate(value):
            yield from _flatten(name if is_plain else f"{name}%5B{at}%5D", one, inside=True)
    else:
        yield name, value


def _joined(
    parameter: Parameter, value: Json, exploded: str, escape: _Escape = _escape, keep: str = ""
) -> str:
    """A list or an object in one text; `exploded` stands between key and value where that is asked for."""
    delimiter = _DELIMITERS.get(parameter.style, ",")
    if parameter.as_json:
        return escape(encode(value).decode(), keep)
    if isinstance(value, list):
        return delimiter.join(escape(_plain(one), keep) for one in value)
    if isinstance(value, dict):
        joint = exploded if parameter.explode else delimiter
        return delimiter.join(
            f"{escape(key, '')}{joint}{escape(_plain(one), keep)}" for key, one in value.items()
        )
    return escape(_plain(value), keep)


def _body_bytes(body: Body | None, arguments: JsonObject, headers: dict[str, str]) -> bytes:
    if body is None or body.argument not in arguments:
        return b""
    value = arguments[body.argument]
    headers["content-type"] = body.content_type
    if body.encoding == "json":
        return encode(value)
    if body.encoding == "text":
        return _plain(value).encode("utf-8", "replace")
    if body.encoding == "bytes":
        return _file_bytes(body.argument, value)
    if not isinstance(value, dict):
        raise CallError(f"{body.argument!r} must be an object")
    if body.encoding == "multipart":
        return _multipart(body, value, headers)
    return "&".join(pair for key, one in value.items() for pair in _form_pairs(body, key, one)).encode()


def _form_pairs(body: Body, key: str, value: Json) -> list[str]:
    if key in body.fields:
        return _query_pairs(body.fields[key], value)
    return [
        f"{_escape(key)}={_escape(_plain(one))}" for one in (value if isinstance(value, list) else [value])
    ]


def _multipart(body: Body, value: JsonObject, headers: dict[str, str]) -> bytes:
    parts: list[bytes] = []
    for key, given in value.items():
        as_json = _is_json(body.types.get(key, ""))
        for one in given if isinstance(given, list) and not as_json else [given]:
            label, data = _label(key), _plain(one).encode("utf-8", "replace")
            kind = body.types.get(key) or ("application/json" if isinstance(one, dict) else "")
            kind, file_name = "application/json" if as_json else kind, ""
            if key in body.files:
                file_name, data = f'; filename="{label}"', _file_bytes(key, one)
            kind_line = f"\r\ncontent-type: {kind}" if kind else ""
            head = f'content-disposition: form-data; name="{label}"{file_name}{kind_line}\r\n\r\n'
            parts.append(head.encode() + data + b"\r\n")
    boundary = f"part-{sha256(b''.join(parts)).hexdigest()}"  # nothing can contain its own hash
    headers["content-type"] = f"{body.content_type.partition(';')[0]}; boundary={boundary}"
    line = f"--{boundary}".encode()
    return b"".join(line + b"\r\n" + part for part in parts) + line + b"--\r\n"


def _label(name: str) -> str:
    """A name between quotes as browsers write it; `image[]` and other scripts stay what they are."""
    text = name.encode("utf-8", "replace").decode()
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")


def _is_json(media: str) -> bool:
    return media.endswith("json")


def _file_bytes(name: str, value: Json) -> bytes:
    """The bytes of a file: those of a `data:` URL, else the text."""
    text = _plain(value)
    head, comma, data = text.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64") and comma):
        return text.encode("utf-8", "replace")
    try:
        return b64decode(data, validate=True)
    except ValueError as error:
        raise CallError(f"{name!r} is not base64 after `data:…;base64,`: {error}") from error


def _plain(value: Json) -> str:
    """One value as text; a structure where none fits is sent as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else encode(value).decode()


class Scheme(Struct, frozen=True):
    """One way to identify oneself."""

    name: str
    location: Location
    field: str
    """The header, query field or cookie."""
    form: Literal["plain", "bearer", "basic"] = "plain"
    given: str = ""
    """The value, or the variable of the environment that holds it."""


class Credential(Struct, frozen=True):
    location: Location
    field: str
    value: str
    secrets: tuple[str, ...]
    """What must not be shown."""


def read_schemes(document: Document, auth: Mapping[str, str]) -> dict[str, Scheme]:
    """The schemes that have a value. One for a scheme the document lacks is a mistake worth hearing of."""
    known = object_of(object_of(document.root.get("components")).get("securitySchemes"))
    for name in auth:
        if name not in known:
            raise ConfigurationError(
                f"`auth` names the security scheme {name!r}, which the document does not have; it has "
                f"{', '.join(map(repr, known)) or 'none'}."
            )
    schemes: dict[str, Scheme] = {}
    for name, node in known.items():
        try:
            scheme = _read_scheme(document, name, node)
        except UnsupportedError as problem:
            document.note(f"The security scheme {name!r} is left out: {problem}.")
            continue
        if name in auth:
            schemes[name] = replace(scheme, given=auth[name])
    return schemes


def choose_schemes(
    security: Sequence[Json], schemes: Mapping[str, Scheme]
) -> tuple[tuple[Scheme, ...], tuple[str, ...]]:
    """The schemes to use for an operation, and the names of those that have no value but are needed."""
    alternatives = [tuple(object_of(one)) for one in security]
    for names in alternatives:
        if names and all(name in schemes for name in names):
            return tuple(schemes[name] for name in names), ()
    if not alternatives or () in alternatives:
        return (), ()
    return (), alternatives[0]


def obtain(scheme: Scheme, env: Mapping[str, str] | None) -> Credential:
    """The credential to send now."""
    value = resolve_env_reference(scheme.given, env)
    if not value:
        is_named = is_env_reference(scheme.given)
        what = f"the environment variable {scheme.given[5:].strip()}" if is_named else "a value"
        raise CallError(f"set {what} (security scheme {scheme.name!r})")
    sent = value
    if scheme.form == "basic":
        sent = f"Basic {b64encode(value.encode()).decode()}"
    elif scheme.form == "bearer":
        sent = f"Bearer {value}"
    if not (sent.isascii() and sent.isprintable()):
        raise CallError(
            f"the value for the security scheme {scheme.name!r} has characters that HTTP does not allow"
        )
    return Credential(scheme.location, scheme.field, sent, (value, sent.rpartition(" ")[2]))


def _read_scheme(document: Document, name: str, node: Json) -> Scheme:
    scheme = document.follow(node)
    kind = scheme.get("type")
    if kind == "apiKey":
        location, field = scheme.get("in"), text_of(scheme.get("name"))
        if location not in ("header", "query", "cookie"):
            raise UnsupportedError(f"an API key in {str(location)[:20]!r} is not supported")
        if not is_token(field) or field.lower() in _FRAMING:
            raise UnsupportedError(f"{field[:40]!r} cannot hold an API key")
        return Scheme(name, location, field)
    if kind == "http":
        way = text_of(scheme.get("scheme")).lower()
        if way not in ("bearer", "basic"):
            raise UnsupportedError(f"HTTP authentication {way[:20]!r} is not supported")
        return Scheme(name, "header", "Authorization", "bearer" if way == "bearer" else "basic")
    if kind in ("oauth2", "openIdConnect"):
        document.note(f"The security scheme {name!r} ({kind}): a token you give is sent; none is fetched.")
        return Scheme(name, "header", "Authorization", "bearer")
    raise UnsupportedError(f"the type {str(kind)[:20]!r} is not supported")
