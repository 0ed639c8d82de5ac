"""Credentials of an API: which an operation wants, which the user gave, and how they are sent.

Values are looked up at the moment of a call, kept nowhere and named in no message. Only schemes the user gave
a value for are used: a document cannot ask for a variable by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.core.env_ref import is_env_reference, resolve_env_reference
from robota.core.errors import ConfigurationError
from robota.core.messages import Json
from robota.tools.openapi_spec.document import (
    Document,
    UnsupportedError,
    is_token,
    list_of,
    mapping_of,
    text_of,
)

Place: TypeAlias = Literal["header", "query", "cookie"]

_FRAMING = frozenset({"connection", "content-length", "content-type", "host", "te", "transfer-encoding"})


class Scheme(Struct, frozen=True):
    """One way to identify oneself."""

    name: str
    place: Place
    field: str
    """The header, query field or cookie."""
    form: Literal["plain", "bearer", "basic"] = "plain"


class Credential(Struct, frozen=True):
    place: Place
    field: str
    value: str
    secrets: tuple[str, ...]
    """What must not be shown."""


class MissingCredentialError(Exception):
    """A call cannot identify itself; the text says what to set."""


def read_schemes(document: Document) -> dict[str, Scheme]:
    components = mapping_of(document.root.get("components"))
    schemes: dict[str, Scheme] = {}
    for name, node in mapping_of(components.get("securitySchemes")).items():
        try:
            schemes[name] = _read_scheme(document, name, node)
        except UnsupportedError as problem:
            document.note(f"The security scheme {name!r} is left out: {problem}.")
    return schemes


def check_auth(auth: Mapping[str, str], document: Document) -> None:
    """A value for a scheme the document does not have is a mistake worth hearing of."""
    known = mapping_of(mapping_of(document.root.get("components")).get("securitySchemes"))
    for name in auth:
        if name not in known:
            raise ConfigurationError(
                f"`auth` names the security scheme {name!r}, which the document does not have; it has "
                f"{', '.join(map(repr, known)) or 'none'}."
            )


def choose_schemes(
    security: Sequence[Json], schemes: Mapping[str, Scheme], auth: Mapping[str, str]
) -> tuple[tuple[Scheme, ...], tuple[str, ...]]:
    """The schemes to use for an operation, and the names of those that have no value but are needed."""
    alternatives = [tuple(mapping_of(one)) for one in security]
    for names in alternatives:
        if names and all(name in auth and name in schemes for name in names):
            return tuple(schemes[name] for name in names), ()
    if not alternatives or () in alternatives:
        return (), ()
    return (), alternatives[0]


def obtain(scheme: Scheme, auth: Mapping[str, str], env: Mapping[str, str] | None) -> Credential:
    """The credential to send now."""
    given = auth[scheme.name]
    value = resolve_env_reference(given, env)
    if not value:
        what = f"the environment variable {given[5:].strip()}" if is_env_reference(given) else "a value"
        raise MissingCredentialError(f"set {what} (security scheme {scheme.name!r})")
    sent = value
    if scheme.form == "basic":
        from base64 import b64encode  # noqa: PLC0415 - one of many schemes

        sent = f"Basic {b64encode(value.encode()).decode()}"
    elif scheme.form == "bearer":
        sent = f"Bearer {value}"
    if not (sent.isascii() and sent.isprintable()):
        raise MissingCredentialError(
            f"the value for the security scheme {scheme.name!r} has characters that HTTP does not allow"
        )
    return Credential(scheme.place, scheme.field, sent, (value, sent.rpartition(" ")[2]))


def _read_scheme(document: Document, name: str, node: Json) -> Scheme:
    scheme = document.follow(node)
    kind = scheme.get("type")
    if kind == "apiKey":
        place, field = scheme.get("in"), text_of(scheme.get("name"))
        if place not in ("header", "query", "cookie"):
            raise UnsupportedError(f"an API key in {str(place)[:20]!r} is not supported")
        if not is_token(field) or field.lower() in _FRAMING:
            raise UnsupportedError(f"{field[:40]!r} cannot hold an API key")
        return Scheme(name, place, field)
    if kind == "http":
        way = text_of(scheme.get("scheme")).lower()
        if way not in ("bearer", "basic"):
            raise UnsupportedError(f"HTTP authentication {way[:20]!r} is not supported")
        return Scheme(name, "header", "Authorization", "bearer" if way == "bearer" else "basic")
    if kind in ("oauth2", "openIdConnect"):
        document.note(f"The security scheme {name!r} ({kind}): a token you give is sent; none is fetched.")
        return Scheme(name, "header", "Authorization", "bearer")
    raise UnsupportedError(f"the type {str(kind)[:20]!r} is not supported")


def read_security(document: Document, operation: Mapping[str, Json]) -> list[Json]:
    """The alternatives an operation names, else those of the document."""
    return list_of(operation.get("security", document.root.get("security")))
