"""The operations of an OpenAPI document: what each takes, where it goes, and what it is called.

An operation that cannot be called as it is described is left out, one that only loses an optional part is
kept; both are noted by name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.jsontext import list_of, object_of, text_of
from robota.core.messages import Json, JsonObject
from robota.http.errors import UrlError
from robota.http.url import Url, parse_url
from robota.tools.openapi.document import Document, SchemaReader, UnsupportedError, is_token

Location: TypeAlias = Literal["path", "query", "header", "cookie"]
Encoding: TypeAlias = Literal["json", "form", "text", "multipart", "bytes"]

MAX_NAME = 64
MAX_DESCRIPTION = 2_000
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_LOCATIONS: Mapping[str, Location] = {name: name for name in get_args(Location)}
_STYLES: Mapping[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""By location, the usual one first."""
_IGNORED = frozenset({"accept", "authorization", "content-type"})
"""Headers that follow from the rest of a document; the specification ignores parameters of these names."""
_OURS = frozenset({"accept-encoding", "connection", "content-length", "host", "te", "transfer-encoding"})
"""Headers that HTTP itself needs: the client sets them, whatever a document says about them."""
_FORBIDDEN = frozenset({"cookie", "expect", "proxy-authorization", "trailer", "upgrade"})
_MAX_PARTS = 10
"""Of schemas within `allOf`, which may contain themselves."""
FILES_NOTE = "Files are given as text, or as data:<type>;base64,<bytes>."
_JSON = re.compile(r"application/(?:[\w.-]+\+)?json|\*/\*|application/\*")


class Parameter(Struct, frozen=True, kw_only=True):
    argument: str
    """What the model calls it."""
    name: str
    location: Location
    style: str
    explode: bool
    required: bool = False
    raw: bool = False
    """Reserved characters of the query stay as they are."""
    as_json: bool = False
    schema: JsonObject = {}


class Body(Struct, frozen=True, kw_only=True):
    argument: str
    encoding: Encoding
    content_type: str
    required: bool
    schema: JsonObject
    fields: Mapping[str, Parameter] = {}
    """How a form writes fields that the document says more about."""
    types: Mapping[str, str] = {}
    """The media types of parts of a multipart body; a file has one."""
    files: frozenset[str] = frozenset()
    """Those of its parts that are files."""


class Selection(Struct, frozen=True, kw_only=True):
    """Which operations become tools: patterns such as `GET *`, `pets*` for labels, ids and tags."""

    include: Sequence[str] = ()
    """Empty for all."""
    exclude: Sequence[str] = ()
    limit: int

    def takes(self, label: str, node: Json) -> bool:
        operation = object_of(node)
        names = [label, text_of(operation.get("operationId")), *map(text_of, list_of(operation.get("tags")))]
        included = not self.include or any(map(partial(_fits, names), self.include))
        return included and not any(map(partial(_fits, names), self.exclude))


def _fits(names: Sequence[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names if name)


class Operation(Struct, frozen=True, kw_only=True):
    label: str
    """`GET /pets/{id}`"""
    name: str
    """What the tool is called."""
    method: str
    path: str
    description: str
    parameters: tuple[Parameter, ...]
    body: Body | None
    server: Url
    security: list[Json]


class OperationReader(Struct, eq=False, kw_only=True):
    """Reads the operations of one document in order."""

    document: Document
    schemas: SchemaReader
    base: Url | None
    """In the place of the document's servers."""
    variables: Mapping[str, str]
    prefix: str
    selection: Selection
    _names: set[str] = set()

    @property
    def home(self) -> Url | None:
        """The API's own server: where credentials may go."""
        servers = list_of(self.document.root.get("servers"))
        try:
            return self.base or read_server(object_of(servers[0]), self.variables)
        except (IndexError, ConfigurationError):
            return None

    def read(self) -> list[Operation]:
        root = self.document.root
        if root.get("webhooks"):
            self.document.note("Webhooks are left out: a tool cannot be called by a server.")
        found: list[tuple[str, str, JsonObject]] = []
        for path, node in object_of(root.get("paths")).items():
            if path.startswith("x-"):
                continue
            try:
                item = self.document.follow(node)
            except UnsupportedError as problem:
                self.document.note(f"{path} is left out: {problem}.")
                continue
            found += [(path, method, item) for method in METHODS if method in item]
        chosen = [one for one in found if self.selection.takes(_label(*one[:2]), one[2][one[1]])]
        if found and not chosen:
            self.document.note(
                "No operation is left by `include` and `exclude`: compare them with the document."
            )
        limit = self.selection.limit
        if len(chosen) > limit:
            self.document.note(
                f"Only the first {limit} of {len(chosen)} operations became tools: choose with `include` and "
                "`exclude`, or raise `max_tools`."
            )
        read = [self._read_one(*one) for one in chosen[:limit]]
        return [operation for operation in read if operation]

    def parameters_of(self, operation: Operation) -> JsonObject:
        """The JSON schema of all arguments of an operation."""
        takes: list[Parameter | Body] = [*operation.parameters]
        if operation.body:
            takes.append(operation.body)
        schema: JsonObject = {
            "type": "object",
            "properties": {one.argument: one.schema for one in takes},
            "required": [one.argument for one in takes if one.required],
            "additionalProperties": False,
        }
        return self.schemas.complete(schema, operation.label)

    def _read_one(self, path: str, method: str, item: JsonObject) -> Operation | None:
        label = _label(path, method)
        try:
            node = self.document.follow(item[method])
            parameters = self._read_parameters(label, path, [item.get("parameters"), node.get("parameters")])
            operation = Operation(
                label=label,
                name=_make_name(self.prefix + (text_of(node.get("operationId")) or label), self._names),
                method=method.upper(),
                path=path,
                description=_describe(node, item, label),
                parameters=parameters,
                body=self._read_body(node, {one.argument for one in parameters}),
                server=self._find_server(node, item),
                # The alternatives an operation names, else those of the document.
                security=list_of(node.get("security", self.document.root.get("security"))),
            )
        except UnsupportedError as problem:
            self.document.note(f"{label} is left out: {problem}.")
            return None
        except RecursionError:
            self.document.note(f"{label} is left out: its schemas are nested too deeply.")
            return None
        if node.get("callbacks"):
            self.document.note(f"{label}: its callbacks are left out; a tool cannot be called by a server.")
        self._names.add(operation.name)
        return operation

    # --- parameters ------------------------------------------------------------------------------------

    def _read_parameters(self, label: str, path: str, lists: list[Json]) -> tuple[Parameter, ...]:
        nodes: dict[tuple[str, str], JsonObject] = {}
        for node in (node for one in lists for node in list_of(one)):
            found = self.document.follow(node)
            location, name = text_of(found.get("in")), text_of(found.get("name"))
            if location != "header" or name.lower() not in _IGNORED:
                nodes[location, name] = found  # an operation's own win
        for name in re.findall(r"\{([^{}]+)\}", path):
            nodes.setdefault(("path", name), {"in": "path", "name": name, "schema": {"type": "string"}})
        parameters: list[Parameter] = []
        for node in nodes.values():
            name = text_of(node.get("name"))
            if node.get("in") == "header" and name.lower() in _OURS:
                self.document.note(f"{label}: the header {name!r} is set by robota itself.")
                continue
            try:
                parameters.append(self._read_parameter(node, {one.argument for one in parameters}))
            except UnsupportedError as problem:
                what = f"the parameter {name!r}"
                if node.get("required") is True or node.get("in") == "path":
                    raise UnsupportedError(f"{what} is needed, but {problem}") from problem
                self.document.note(f"{label}: {what} is left out: {problem}.")
        return tuple(parameters)

    def _read_parameter(self, node: JsonObject, taken: Collection[str]) -> Parameter:
        name, location = text_of(node.get("name")), _LOCATIONS.get(text_of(node.get("in")))
        if location is None or not name:
            raise UnsupportedError(f"it is in {str(node.get('in'))[:20]!r}")
        if location == "header" and (name.lower() in _FORBIDDEN or not is_token(name)):
            raise UnsupportedError("this header cannot be sent")
        style = text_of(node.get("style")) or _STYLES[location][0]
        if style not in _STYLES[location]:
            raise UnsupportedError(f"the style {style[:20]!r} is not supported")
        content = object_of(node.get("content"))
        if content and not any(_JSON.fullmatch(media) for media in content):
            raise UnsupportedError(f"its type {next(iter(content))[:40]!r} is not supported")
        shape = next(iter(content.values()), {}) if content else node
        return Parameter(
            argument=_make_name(name, taken, location),
            name=name,
            location=location,
            style=style,
            explode=node["explode"] if isinstance(node.get("explode"), bool) else style == "form",
            required=location == "path" or node.get("required") is True,
            raw=node.get("allowReserved") is True,
            as_json=bool(content),
            schema=self._with_description(object_of(shape).get("schema"), node),
        )

    def _with_description(self, schema: Json, node: JsonObject) -> JsonObject:
        read = self.schemas.read(schema)
        said = text_of(node.get("description"))
        return {**read, "description": said[:MAX_DESCRIPTION]} if said else read

    # --- body, server ----------------------------------------------------------------------------------

    def _read_body(self, node: JsonObject, taken: Collection[str]) -> Body | None:
        if "requestBody" not in node:
            return None
        body = self.document.follow(node["requestBody"])
        content = object_of(body.get("content"))
        if not content:
            return None
        media = min(content, key=lambda one: _ENCODINGS.index(_encoding_of(one)))
        encoding, shape = _encoding_of(media), object_of(content[media])
        types, files = self._file_types(shape) if encoding == "multipart" else ({}, frozenset[str]())
        schema = self._with_description(shape.get("schema"), body)
        if files or encoding == "bytes":
            schema = {**schema, "description": f"{schema.get('description', '')} {FILES_NOTE}".strip()}
        return Body(
            argument=_make_name("body", taken, "request"),
            encoding=encoding,
            content_type="application/json" if "*" in media else media,
            required=body.get("required") is True,
            schema={"type": "string", **schema} if encoding == "bytes" else schema,
            fields=dict(_read_fields(object_of(shape.get("encoding")))),
            types=types,
            files=files,
        )

    def _file_types(self, shape: JsonObject) -> tuple[dict[str, str], frozenset[str]]:
        """The media types of the parts that have one, and which of them are files."""
        types: dict[str, str] = {}
        texts: set[str] = set()
        for name, node in self._properties(shape.get("schema", {})):
            field = self.document.follow(node)
            if field.get("type") == "array":
                field = self.document.follow(field.get("items", {}))
            if field.get("format") == "binary" or "contentMediaType" in field:
                types[name] = text_of(field.get("contentMediaType")) or "application/octet-stream"
        for name, node in object_of(shape.get("encoding")).items():
            said = text_of(object_of(node).get("contentType")).partition(",")[0].strip()
            if said and "*" not in said:
                if name not in types and said.startswith("text/"):
                    texts.add(name)
                types[name] = said
        files = (name for name, said in types.items() if name not in texts and not _JSON.fullmatch(said))
        return types, frozenset(files)

    def _properties(self, schema: Json, depth: int = 0) -> Iterator[tuple[str, Json]]:
        """The fields of an object, those of the schemas it is put together from included."""
        found = self.document.follow(schema)
        yield from (pair for pair in object_of(found.get("properties")).items() if isinstance(pair[1], dict))
        for part in list_of(found.get("allOf")) if depth < _MAX_PARTS else ():
            yield from self._properties(part, depth + 1)

    def _find_server(self, node: JsonObject, item: JsonObject) -> Url:
        if self.base is not None:
            return self.base
        for holder in (node, item, self.document.root):
            if servers := list_of(holder.get("servers")):
                server = object_of(servers[0])
                try:
                    return read_server(server, self.variables)
                except ConfigurationError as error:
                    if holder is self.document.root:
                        raise
                    raise UnsupportedError(
                        f"it has a server of its own, {text_of(server.get('url'))[:200]!r}, which is no "
                        "address to send requests to"
                    ) from error
        raise ConfigurationError("The OpenAPI document names no server: pass `base_url`.")


def read_server(server: JsonObject, variables: Mapping[str, str]) -> Url:
    """The address of a server with its variables filled in."""
    address = text_of(server.get("url"))
    address = f"https:{address}" if address.startswith("//") else address
    for name, node in object_of(server.get("variables")).items():
        value = variables.get(name, str(object_of(node).get("default", "")))
        choices = [str(one) for one in list_of(object_of(node).get("enum"))]
        if choices and value not in choices:
            raise ConfigurationError(
                f"The server variable {name!r} must be one of {', '.join(choices)}, not {value!r}."
            )
        address = address.replace(f"{{{name}}}", value)
    return read_base_url(address)


def read_base_url(address: str) -> Url:
    try:
        url = parse_url(address)
    except UrlError as error:
        raise ConfigurationError(
            f"{address[:200]!r} is not an address to send requests to: pass `base_url`, such as "
            "https://api.example.org/v1."
        ) from error
    if "?" in url.target:
        raise ConfigurationError(f"The base URL {address[:200]!r} must have no query.")
    return url


def _label(path: str, method: str) -> str:
    return f"{method.upper()} {path}"


def _encoding_of(media: str) -> Encoding:
    media = media.partition(";")[0].strip().lower()
    if _JSON.fullmatch(media):
        return "json"
    if media == "application/x-www-form-urlencoded":
        return "form"
    if media.startswith("multipart/"):
        return "multipart"
    return "text" if media.startswith("text/") or media.endswith(("xml", "yaml", "graphql")) else "bytes"


_ENCODINGS = get_args(Encoding)
"""The best first."""


def _read_fields(encodings: JsonObject) -> Iterator[tuple[str, Parameter]]:
    for name, node in encodings.items():
        said = object_of(node)
        style = text_of(said.get("style")) or "form"
        as_json = _JSON.fullmatch(text_of(said.get("contentType"))) is not None
        if style in _STYLES["query"] and (as_json or said.keys() & {"style", "explode", "allowReserved"}):
            yield (
                name,
                Parameter(
                    argument=name,
                    name=name,
                    location="query",
                    style=style,
                    explode=said["explode"] if isinstance(said.get("explode"), bool) else style == "form",
                    raw=said.get("allowReserved") is True,
                    as_json=as_json,
                ),
            )


def _describe(node: JsonObject, item: JsonObject, label: str) -> str:
    texts = [text_of(node.get("summary")) or text_of(item.get("summary")), text_of(node.get("description"))]
    said = "\n\n".join(dict.fromkeys(text.strip() for text in texts if text.strip()))
    warning = "\n\nDeprecated." if node.get("deprecated") is True else ""
    return f"{said[:MAX_DESCRIPTION] or label}{warning}"


def _make_name(text: str, taken: Collection[str], extra: str = "") -> str:
    """A name models accept, unlike those that are taken; `extra` tells two of the same name apart."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:MAX_NAME] or "unnamed"
    if plain in taken and extra:
        plain = f"{extra}_{plain}"[:MAX_NAME]
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain[: MAX_NAME - len(str(number)) - 1]}_{number}"
    return name
