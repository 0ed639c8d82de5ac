"""What went wrong between us and a model service, as the error to raise: one sentence with the next step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.core.errors import (
    AuthenticationError,
    ModelNotAvailableError,
    NetworkError,
    ProviderError,
    RateLimitError,
    RobotaError,
)
from robota.core.jsontext import decode
from robota.core.messages import Json
from robota.core.ports import REAL_WORLD
from robota.core.retry import parse_retry_after
from robota.http.errors import FailureKind, HttpError

# --- what services mean by their words -------------------------------------------------------------------


class Reason(Struct, frozen=True):
    """What services say in words alone: a refusal whose status does not tell what to do.

    It is known by words of which one from every group must be there.
    """

    what: str
    fix: str
    groups: tuple[tuple[str, ...], ...]
    """All in lower case."""


NO_CREDIT = Reason(
    "says that the account has no credit left",
    "check the billing page of the service",
    (
        (
            "insufficient_quota",
            "insufficient balance",
            "credit balance",
            "billing_hard_limit",
            "out of credits",
        ),
    ),
)
TOO_LARGE = Reason(
    "finds the request too large",
    "compact the conversation or send smaller files",
    (("image", "payload", "request", "file", "body"), ("exceeds", "too large", "too big", "entity too")),
)
TOO_LONG = Reason(
    "cannot take a conversation this long",
    "compact it or use a model with a larger window",
    (
        (
            "context_length",
            "context_size",
            "context length",
            "context window",
            "prompt is too long",
            "input token count",
        ),
    ),
)
FILTERED = Reason(
    "refused this content by its filter",
    "say it in other words or leave the passage out",
    (
        (
            "content_filter",
            "content filter",
            "content management policy",
            "content_policy",
            "responsibleaipolicyviolation",
            "safety system",
            "usage policy",
            "data_inspection_failed",
            "inappropriate content",
            "content exists risk",
        ),
    ),
)
BAD_IMAGE = Reason(
    "cannot read an image of this conversation",
    "send PNG, JPEG, GIF or WebP, or leave the image out",
    (
        ("image",),
        (
            "unsupported image",
            "invalid image",
            "invalid_image",
            "invalid base64 image",
            "image_parse",
            "image format",
            "valid image",
            "image is not valid",
            "process image",
            "process input image",
            "decode image",
            "load image",
            "media type",
            "media_type",
            "mime type",
        ),
    ),
)
BAD_FILE = Reason(
    "cannot read a file of this conversation",
    "send a type that it takes, such as PDF, or leave the file out",
    (("file",), ("invalid file", "file data", "file type", "unsupported file", "mime type")),
)
_NOT_SUPPORTED = ("not support", "unsupported", "only supported", "found that support", "not enabled")
NO_TOOLS = Reason(
    "cannot use tools with this model",
    "choose a model that can, or run without tools",
    (("tool", "function call"), _NOT_SUPPORTED),
)
NO_VISION = Reason(
    "cannot look at images with this model",
    "choose a model that can, or leave the images out",
    (("image", "vision", "multimodal"), _NOT_SUPPORTED),
)
REASONS = (NO_CREDIT, FILTERED, TOO_LONG, BAD_IMAGE, BAD_FILE, NO_TOOLS, NO_VISION, TOO_LARGE)
"""The first that fits stands."""


def find_reason(said: str, codes: Sequence[str]) -> Reason | None:
    """The reason behind a service's words and its own codes."""
    if any("context" in code for code in codes):
        return TOO_LONG
    text = " ".join((said, *codes)).lower()
    return next(
        (reason for reason in REASONS if all(any(word in text for word in group) for group in reason.groups)),
        None,
    )


# --- errors -------------------------------------------------------------------------------------------

_MAX_QUOTE = 400
_FIXES = {
    401: ("refused the API key", "check the key or set another one"),
    402: (NO_CREDIT.what, NO_CREDIT.fix),
    403: ("does not allow this with the given key", "check what the key may do, or use another model"),
    408: ("waited too long for the request", "try again"),
    413: (TOO_LARGE.what, TOO_LARGE.fix),
    429: ("asks for patience", "wait a moment and try again, or check the limits of your plan"),
}
_MISSING = ("not found", "not exist", "not available", "unknown model")
_STATUS_OF_TYPE = {
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "api_error": 500,
}


class Refusal(Struct, frozen=True):
    """An answer that is not 200."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    model: str
    url: str


DescribeRefusal: TypeAlias = Callable[[Refusal, str, Sequence[str]], RobotaError]
"""The error for a refusal by the provider of that name; the texts are secrets."""


def describe_refusal(refusal: Refusal, provider: str, secrets: Sequence[str]) -> RobotaError:
    """The error for an HTTP status, with what the service said about it."""
    said, words = _read_error_body(refusal.body)
    said = quote(said, secrets)
    status, headers = refusal.status, refusal.headers
    if status in (400, 404) and refusal.model and _is_about_model(refusal.model, said, words):
        told = "" if said == f"model: {refusal.model}" else said
        return ModelNotAvailableError(refusal.model, provider, reason=told)
    reason = find_reason(said, words) if status not in (401, 403) else None
    what, fix = _explain(refusal, reason, secrets)
    words_of_it = f"{status}: {said}" if said else str(status)
    if reason is NO_CREDIT:
        status = 402  # whatever it said: waiting does not help
    problem = f"{provider} {what} ({words_of_it})"
    error = _error_type(status)(
        f"{problem}; {fix}.",
        provider=provider,
        status=status,
        request_id=read_request_id(headers, secrets),
        retry_after=_retry_after(headers),
    )
    error.problem = problem
    return error


class Peer(Struct, frozen=True):
    """Whose reply it is, for the words of an error."""

    provider: str
    request_id: str | None = None
    secrets: Sequence[str] = ()
    begun: bool = True
    """Whether a reply had begun, when it came to an error."""


def describe_error_event(error: Json, peer: Peer) -> RobotaError:
    """The error for an error object in an answer whose status was 200."""
    said, words = _read_error(error)
    status = next(filter(None, map(_status_of, words)), None)
    said = quote(said, peer.secrets) or quote(" ".join(words), peer.secrets) or "no reason given"
    reason = find_reason(said, words)
    if reason is not None:
        what, fix, status = reason.what, reason.fix, 402 if reason is NO_CREDIT else status or 400
    elif peer.begun:
        what, fix = "broke off its reply", "try again"
    else:
        what, fix = "answered with an error", "check the base URL and the model, or try again"
    return _error_type(status or 0)(
        f"{peer.provider} {what} ({said}); {fix}.",
        provider=peer.provider,
        status=status,
        request_id=peer.request_id,
    )


FAILURES: dict[FailureKind | Literal["no_tls"], str] = {
    "dns": "{provider} could not be reached at {origin} ({detail}); check the host name and the network.",
    "refused": "{provider} could not be reached at {origin} ({detail}); is the server running?",
    "connect": "{provider} could not be reached at {origin} ({detail}); is the server running?",
    "connect_timeout": "{provider} could not be reached at {origin} in time; "
    "check the address and the network.",
    "certificate": "The certificate of {origin} is not trusted ({detail}); "
    "set SSL_CERT_FILE to your CA bundle.",
    "tls": "{provider} at {origin} could not agree on encryption ({detail}); check the base URL.",
    "no_tls": "{provider} at {origin} does not speak TLS; use http:// in the base URL if that is meant.",
    "trust": "{provider} at {origin} was not contacted: {detail}; correct or unset the variable.",
    "proxy": "The proxy on the way to {origin} failed ({detail}); check HTTPS_PROXY and NO_PROXY.",
    "descriptors": "{provider} was not contacted: this process may open no more files and connections "
    "({detail}); close some, or raise the limit (ulimit -n).",
    "silence": "{provider} at {origin} stopped answering ({detail}); try again.",
    "closed": "The connection to {provider} at {origin} broke ({detail}); try again.",
    "protocol": "The connection to {provider} at {origin} broke ({detail}); try again.",
}
"""How there was no answer, or none to the end, and what to do."""
_LASTING = ("dns", "certificate", "tls", "trust")


def describe_failure(
    error: Exception, provider: str, origin: str, secrets: Sequence[str] = ()
) -> NetworkError:
    """The error for no answer, or none to the end; httpx2's own errors come from clients handed in."""
    cause = error
    if not isinstance(error, HttpError):
        from robota.http.detour import explain  # noqa: PLC0415 - httpx2 raised the error, so it is loaded

        error = explain(error)
    detail = quote(str(error), secrets)
    kind = "no_tls" if error.kind == "tls" and "WRONG_VERSION_NUMBER" in detail else error.kind
    text = FAILURES[kind].format(provider=provider, origin=origin, detail=detail)
    failure = NetworkError(text, provider=provider)
    failure.lasting = error.kind in _LASTING
    failure.__cause__ = cause
    return failure


_HELD = ("api_key", "auth_token", "access_token", "aws_secret_key", "aws_session_token")
SHORTEST_SECRET = 8
"""Keys of local servers are words such as `x` or `test`; replacing them would only garble the message."""


def hide_secrets(text: str, secrets: Sequence[str]) -> str:
    hidden = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
    for secret in hidden:
        text = text.replace(secret, "***")
    if "%" in text:  # in an address a secret may be written in another way
        from urllib.parse import quote as percent_encoded  # noqa: PLC0415 - 5 ms, for few texts

        for secret in hidden:
            text = text.replace(percent_encoded(secret, safe=""), "***")
    return text


def secrets_of(client: object) -> tuple[str, ...]:
    """What a vendor's client object holds that no error may repeat."""
    held = (getattr(client, name, None) for name in _HELD)
    return tuple(value for value in held if value and isinstance(value, str))


def tame(text: str, secrets: Sequence[str], limit: int = _MAX_QUOTE) -> str:
    """What a service said, fit to be shown: no secret, one line, nothing a terminal obeys, not long."""
    line = " ".join(hide_secrets(text, secrets).split())  # hidden before it is cut: half a key is one, too
    if not line.isprintable():
        line = "".join(filter(str.isprintable, line))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def quote(text: str, secrets: Sequence[str], limit: int = _MAX_QUOTE) -> str:
    """The same as part of a sentence of ours."""
    return tame(text, secrets, limit).rstrip(".")


def read_request_id(headers: Mapping[str, str], secrets: Sequence[str]) -> str | None:
    """The service's name for the request, by which its people find it."""
    return tame(headers.get("x-request-id") or headers.get("request-id") or "", secrets) or None


def _explain(refusal: Refusal, reason: Reason | None, secrets: Sequence[str]) -> tuple[str, str]:
    status = refusal.status
    if status == 401 and not secrets:
        return "wants an API key and got none", "pass api_key"
    if reason is not None and (reason is NO_CREDIT or status not in _FIXES):
        return reason.what, reason.fix
    if status in _FIXES:
        return _FIXES[status]
    if status == 404:
        return (
            f"knows no {refusal.url.partition('?')[0].rpartition('@')[2]}",
            "check the model name and the base URL, which usually ends in /v1",
        )
    if 300 <= status < 400:
        return (
            f"moved to {quote(refusal.headers.get('location', 'another place'), secrets)}",
            "set the base URL to its new address",
        )
    if status >= 500:
        return "failed", "try again in a moment"
    return "rejected the request", "check the model's limits and the request's settings"


def _status_of(word: str) -> int | None:
    if len(word) == 3 and word.isdecimal():
        return int(word) if 400 <= int(word) < 600 else None
    return 529 if "overloaded" in word else _STATUS_OF_TYPE.get(word)


def _error_type(status: int) -> type[ProviderError] | type[AuthenticationError] | type[RateLimitError]:
    if status in (401, 403):
        return AuthenticationError
    return RateLimitError if status == 429 else ProviderError


def _retry_after(headers: Mapping[str, str]) -> float | None:
    millis = parse_retry_after(headers.get("retry-after-ms"), REAL_WORLD.now())
    return (
        parse_retry_after(headers.get("retry-after"), REAL_WORLD.now()) if millis is None else millis / 1000
    )


def _is_about_model(model: str, said: str, words: Sequence[str]) -> bool:
    text = said.lower()
    missing = said == f"model: {model}" or any(word in text for word in _MISSING)
    return "model_not_found" in words or ("model" in text and missing)


def _read_error_body(body: bytes) -> tuple[str, tuple[str, ...]]:
    try:
        answer = decode(body)
    except ValueError:
        text = body.decode("utf-8", "replace").strip()
        return ("" if text.startswith("<") else _one_line(text)), ()
    if isinstance(answer, list) and answer:
        answer = answer[0]  # as Google wraps it
    return _read_error(answer.get("error") or answer if isinstance(answer, dict) else answer)


def _read_error(error: Json) -> tuple[str, tuple[str, ...]]:
    """What the service said, and its own words for it; empty when there is nothing readable."""
    if not isinstance(error, dict):
        return (_one_line(error) if isinstance(error, str) else ""), ()
    message = error.get("message") or error.get("detail") or ""
    words = tuple(str(error[key]) for key in ("code", "type", "status") if error.get(key))
    said = _one_line(message if isinstance(message, str) else str(message))
    behind = _read_wrapped(error.get("metadata"))
    return (_one_line(f"{said}: {behind}") if behind else said), words


def _read_wrapped(metadata: Json) -> str:
    """What the service behind a gateway said, which the gateway's own words do not tell."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not raw:
        return ""
    said, _ = _read_error_body(raw.encode()) if isinstance(raw, str) else _read_error(raw)
    service = metadata.get("provider_name")
    return f"{said} (from {service})" if said and isinstance(service, str) and service else said


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
