"""Errors on their way from a host to its client: the same type, words and facts on both sides.

Our own errors cross as they are, minus the host's secrets. Of a foreign exception, which may say anything,
only its type is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from robota.core.errors import (
    AbortError,
    AuthenticationError,
    CacheIntegrityError,
    CircuitBreakerOpenError,
    ConfigurationError,
    ModelNotAvailableError,
    NetworkError,
    ProviderError,
    RateLimitError,
    RobotaError,
    StorageError,
    StructuredOutputError,
    ValidationError,
)
from robota.core.jsontext import decode
from robota.core.messages import Json, JsonObject
from robota.providers.wire.errors import Refusal, describe_refusal, hide_secrets, tame
from robota.providers.wire.reply import text_of

_MAX_MESSAGE = 2000
_MAX_MODELS = 100

_SERVICE_FACTS = ("provider", "status", "request_id", "retry_after")
_ERRORS: dict[str, tuple[Callable[..., RobotaError], tuple[str, ...]]] = {
    **{
        kind.code: (kind, _SERVICE_FACTS)
        for kind in (ProviderError, AuthenticationError, RateLimitError, NetworkError)
    },
    **{
        kind.code: (kind, ())
        for kind in (ConfigurationError, StorageError, StructuredOutputError, CacheIntegrityError, AbortError)
    },
    ValidationError.code: (ValidationError, ("field",)),
    CircuitBreakerOpenError.code: (CircuitBreakerOpenError, ("retry_after",)),
}
"""What an error is made of besides its words, by its code."""
_FACTS = {
    "provider": "provider",
    "status": "status",
    "request_id": "requestId",
    "retry_after": "retryAfter",
    "model": "model",
    "reason": "reason",
    "available_models": "availableModels",
    "field": "field",
}
"""Attribute of an error -> its name on the wire."""


def describe_error(error: Exception, provider: str, secrets: Sequence[str] = ()) -> JsonObject:
    """What the client is told; `provider` is the one that failed."""
    if not isinstance(error, RobotaError):
        message = (
            f"Provider {provider!r} failed on the host ({type(error).__name__}); the host's log says more."
        )
        return {"code": ProviderError.code, "message": message, "provider": provider}
    told: JsonObject = {"code": error.code, "message": hide_secrets(str(error), secrets)}
    for attribute, name in _FACTS.items():
        value = getattr(error, attribute, None)
        if value is not None and value != "":
            told[name] = value
    return told


def http_status(error: Exception) -> int:
    """The status of an answer that is nothing but this error.

    What a vendor said to the host is in the error; the status is about the host, so that a client whose key
    is good does not read 401 because the host's key is bad.
    """
    if isinstance(error, ConfigurationError | ValidationError):
        return 400
    if isinstance(error, ModelNotAvailableError):
        return 404
    return 429 if isinstance(error, RateLimitError) else 502


def read_error(told: Json, secrets: Sequence[str] = ()) -> RobotaError:
    """The error that `describe_error` told of; a code that is not known here is a `ProviderError`.

    `secrets` are the client's own, which a host may repeat.
    """
    if not isinstance(told, dict) or not isinstance(told.get("code"), str):
        raise ValueError("an error without a code")
    told = {name: _tamed(value, secrets) for name, value in told.items()}
    code, message = told["code"], str(told.get("message") or "The host gave no reason.")
    if code == ModelNotAvailableError.code:
        models = told.get("availableModels")
        available = [str(name) for name in models] if isinstance(models, list) else []
        return ModelNotAvailableError(
            text_of(told, "model"),
            text_of(told, "provider"),
            available_models=available,
            reason=text_of(told, "reason"),
        )
    kind, facts = _ERRORS.get(code, (ProviderError, _SERVICE_FACTS))
    return kind(message, **{name: _read_fact(name, told) for name in facts})


def describe_host_refusal(refusal: Refusal, provider: str, secrets: Sequence[str]) -> RobotaError:
    """The error for an answer that is not 200: the host's own, or that of a proxy or of something else."""
    try:
        answer = decode(refusal.body)
        if answer["error"]["code"] in (*_ERRORS, ModelNotAvailableError.code):
            return read_error(answer["error"], secrets)
    except (ValueError, LookupError, TypeError):
        pass
    return describe_refusal(refusal, provider, secrets)


def _tamed(value: Json, secrets: Sequence[str]) -> Json:
    if isinstance(value, list):
        return [_tamed(item, secrets) for item in value[:_MAX_MODELS] if isinstance(item, str)]
    return tame(value, secrets, _MAX_MESSAGE) if isinstance(value, str) else value


def _read_fact(attribute: str, told: JsonObject) -> Json:
    value = told.get(_FACTS[attribute])
    if attribute in ("status", "retry_after"):
        wanted = int if attribute == "status" else int | float
        return value if isinstance(value, wanted) and not isinstance(value, bool) else None
    return value if value and isinstance(value, str) else "" if attribute == "provider" else None
