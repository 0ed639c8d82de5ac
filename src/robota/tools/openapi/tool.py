"""`load_openapi`: a whole OpenAPI 3 document as tools, one per operation; a call makes the real request.

What the document asks for and these tools cannot do is not dropped in silence: the list has `notes`. A
credential goes to the API's own server and to no other, redirects are not followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.messages import Json, JsonObject
from robota.core.plain_text import clip
from robota.core.schema import check
from robota.core.tool import ToolContext, ToolResult
from robota.http.url import Url
from robota.tools.openapi.document import Document, SchemaReader, check_version, read_document
from robota.tools.openapi.operations import Operation, OperationReader, Selection, read_base_url
from robota.tools.openapi.request import (
    CallError,
    Credential,
    Scheme,
    build_request,
    choose_schemes,
    obtain,
    read_schemes,
)

if TYPE_CHECKING:
    from robota.tools.web.fetch import FetchError, Reply

TIMEOUT_SECONDS = 30.0
MAX_REPLY_BYTES = 5_000_000
MAX_TOOLS = 128
"""More than services take, or than a model can tell apart."""
MAX_OUTPUT_CHARACTERS = 100_000
MAX_EXCERPT_CHARACTERS = 2_000
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_CAREFUL = "It may have taken effect all the same: find out before you repeat it."


class OpenAPITools(list["OpenAPITool"]):
    """The tools of a document, and what it asks for that they cannot do."""

    def __init__(self, tools: Iterable[OpenAPITool], notes: Sequence[str]) -> None:
        super().__init__(tools)
        self.notes = tuple(notes)


def load_openapi(
    document: str | Mapping[str, Json],
    *,
    base_url: str | None = None,
    auth: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    server_variables: Mapping[str, str] | None = None,
    prefix: str = "",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_tools: int = MAX_TOOLS,
    timeout: float = TIMEOUT_SECONDS,
    max_bytes: int = MAX_REPLY_BYTES,
) -> OpenAPITools:
    """The operations of an OpenAPI 3.0 or 3.1 document (a dict, JSON or YAML text) as tools.

    `base_url` replaces the document's servers. `auth` gives security schemes their values by name:
    `{"ApiKey": "$ENV:PETS_KEY"}`, `user:password` for basic authentication. `prefix` goes before each name.

    `include` and `exclude` choose operations by patterns such as `GET *`, `*pets*` or `billing`: a pattern
    may fit the method with the path, the operation's id, or a tag. Of what is left, `max_tools` are taken.
    """
    for option, patterns in (("include", include), ("exclude", exclude)):
        if isinstance(patterns, str):
            raise ConfigurationError(f"`{option}` must be a list of patterns: [{patterns!r}].")
    root = read_document(document)
    source = Document(root, check_version(root))
    if source.version.split(".")[1] not in ("0", "1"):
        source.note(f"OpenAPI {source.version} is read as 3.1.")
    schemes = read_schemes(source, auth or {})
    reader = OperationReader(
        document=source,
        schemas=SchemaReader(source),
        base=None if base_url is None else read_base_url(base_url),
        variables=server_variables or {},
        prefix=prefix,
        selection=Selection(include=include, exclude=exclude, limit=max_tools),
    )
    tools = [
        OpenAPITool(
            operation.name,
            operation.description,
            reader.parameters_of(operation),
            operation,
            *_find_schemes(source, operation, reader.home, schemes),
            env=env,
            timeout=timeout,
            max_bytes=max_bytes,
        )
        for operation in reader.read()
    ]
    return OpenAPITools(tools, source.notes)


class OpenAPITool(Struct, frozen=True, eq=False):
    """One operation of an API."""

    validates_arguments: ClassVar = True

    name: str
    description: str
    parameters: JsonObject
    operation: Operation
    schemes: tuple[Scheme, ...]
    """How calls identify themselves."""
    missing: tuple[str, ...]
    """Schemes the operation needs and nobody gave a value for."""
    env: Mapping[str, str] | None
    timeout: float
    max_bytes: int

    def __repr__(self) -> str:
        return f"<OpenAPITool {self.name!r}: {self.operation.label}>"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        if problems := check(arguments, self.parameters, "the arguments"):
            code = "invalid_arguments"
            text = f"The arguments of {self.name!r} do not fit: {'; '.join(problems)}."
            return ToolResult.failure(text, code, errorCode=code)
        try:
            credentials = self._identify()
            url, headers, body = build_request(self.operation, arguments, credentials)
        except CallError as error:
            return ToolResult.failure(f"{self.name} was not called: {error}.", "not_called")
        secrets = [secret for one in credentials for secret in one.secrets]
        return await self._send(url, headers, body, secrets)

    def _identify(self) -> list[Credential]:
        if self.missing:
            names = ", ".join(map(repr, self.missing))
            raise CallError(f"it needs credentials; whoever loaded the API must give `auth` for {names}")
        return [obtain(scheme, self.env) for scheme in self.schemes]

    async def _send(
        self, url: Url, headers: Mapping[str, str], body: bytes, secrets: Sequence[str]
    ) -> ToolResult:
        from robota.tools.web.fetch import (  # noqa: PLC0415 - see above
            FetchError,
            bad_status,
            exchange,
        )

        try:
            reply = await exchange(
                self.operation.method,
                url,
                headers=headers,
                body=body,
                timeout=self.timeout,
                max_bytes=self.max_bytes,
            )
            text = _show(reply, secrets)
            if not 200 <= reply.status < 300:
                failure = bad_status(reply.status, f"{self.name} failed:")
                return self._fail(failure, clip(text, MAX_EXCERPT_CHARACTERS), reply.status)
        except FetchError as error:
            return self._fail(error)
        return ToolResult(content=text, metadata={"status": reply.status})

    def _fail(self, error: FetchError, said: str = "", status: int | None = None) -> ToolResult:
        unsure = error.code in ("reset", "timeout", "too_large") or (status or 0) >= 500
        advice = _CAREFUL if unsure and self.operation.method not in _REPEATABLE else error.advice
        fact = error.fact if status else f"{self.name} failed: {error.fact}"
        text = "\n".join(part for part in (f"{fact} {advice}".rstrip(), said) if part)
        details: JsonObject = {} if status is None else {"status": status}
        return ToolResult.failure(text, error.code, **details)


def _find_schemes(
    source: Document,
    operation: Operation,
    home: Url | None,
    schemes: Mapping[str, Scheme],
) -> tuple[tuple[Scheme, ...], tuple[str, ...]]:
    chosen, missing = choose_schemes(operation.security, schemes)
    server = operation.server
    if chosen and (home is None or _origin(server) != _origin(home)):
        source.note(
            f"{operation.label}: no credentials are sent to {server.authority}, which is not the API's own "
            "server; `base_url` would make it so."
        )
        return (), ()
    if missing:
        names = ", ".join(map(repr, missing))
        source.note(f"{operation.label} needs credentials that `auth` does not give: {names}.")
    return chosen, missing


def _origin(url: Url) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port


def _show(reply: Reply, secrets: Sequence[str]) -> str:
    """The answer as text for the model: without secrets, control characters or imitated marks."""
    from robota.tools.web.text import (  # noqa: PLC0415 - see above
        decode_body,
        defuse_marks,
        kind_of,
        media_type,
    )

    if 300 <= reply.status < 400 and "location" in reply.headers:
        return f"It redirects to {defuse_marks(reply.headers['location'][:300])!r}, which is not followed."
    if not reply.body:
        return f"(HTTP {reply.status}, without content)"
    text = None if kind_of(reply.content_type) == "binary" else decode_body(reply.body, reply.content_type)
    if text is None:
        return f"({len(reply.body):,} bytes of {media_type(reply.content_type)[:80]!r}, which is not text)"
    for secret in secrets:
        text = text.replace(secret, "[hidden]")
    return clip(defuse_marks(text), MAX_OUTPUT_CHARACTERS)
