"""What Google's services say when they refuse: `google.rpc.Status` with typed details, as our errors.

Three things are only in the details: that a key is wrong (the status is a plain 400), how long to wait, and
which quota is used up. Everything else is `robota.providers.wire.errors`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robota.core.errors import AuthenticationError, ProviderError, RateLimitError, RobotaError
from robota.core.jsontext import decode, object_of, objects_of
from robota.core.messages import Json, JsonObject
from robota.core.retry import parse_retry_after
from robota.providers.wire.errors import Refusal, describe_refusal, quote

_KEY_REASONS = ("API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED")


def describe_google_refusal(refusal: Refusal, provider: str, secrets: Sequence[str]) -> RobotaError:
    status = _read_status(refusal.body)
    error = _explain(status, refusal.status, provider, secrets)
    if error is None:
        error = describe_refusal(refusal, provider, secrets)
    if isinstance(error, ProviderError) and error.status == 404 and error.problem:
        fix = "check the model name, base_url and api_version"
        error = ProviderError(f"{error.problem}; {fix}.", provider=provider, status=404)
    if isinstance(error, RateLimitError | ProviderError) and error.retry_after is None:
        error.retry_after = _read_delay(status)
    return error


def describe_status(error: Json, provider: str, secrets: Sequence[str]) -> RobotaError | None:
    """The error for a status that came inside a reply, if it says more than that the reply broke off."""
    if not isinstance(error, dict):
        return None
    code = error.get("code")
    return _explain(error, code if isinstance(code, int) else 0, provider, secrets)


def _explain(status: JsonObject, code: int, provider: str, secrets: Sequence[str]) -> RobotaError | None:
    """The error when Google says more than the HTTP status."""
    message = quote(str(status.get("message") or ""), secrets)
    said = f"{code}: {message}"
    reasons = [detail.get("reason") for detail in _details(status, "ErrorInfo")]
    if any(reason in _KEY_REASONS for reason in reasons) or message.startswith("API key not valid"):
        return _refuse_key(
            f"{provider} refused the API key ({said})",
            "check it, or make one at aistudio.google.com/apikey",
            provider,
            code,
        )
    if code in (401, 403) and not any(secrets):
        return _refuse_key(
            f"{provider} wants an API key and got none ({said})",
            "pass api_key or set GEMINI_API_KEY",
            provider,
            code,
        )
    if "thought signature" in message.lower() or "thought_signature" in message:
        return ProviderError(
            f"{provider} does not accept the signatures in this history ({said}); compact the conversation, "
            "or continue with the model that wrote it.",
            provider=provider,
            status=code,
        )
    return None


def _refuse_key(problem: str, fix: str, provider: str, code: int) -> AuthenticationError:
    error = AuthenticationError(f"{problem}; {fix}.", provider=provider, status=code)
    error.problem = problem
    return error


def _read_status(body: bytes) -> JsonObject:
    """The status in an error body, which is an object or, for streams, an array with one."""
    try:
        answer = decode(body)
    except ValueError:
        return {}
    if isinstance(answer, list):
        answer = answer[0] if answer else None
    return object_of(object_of(answer).get("error"))


def _read_delay(status: JsonObject) -> float | None:
    for detail in _details(status, "RetryInfo"):
        delay = str(detail.get("retryDelay") or "").removesuffix("s")
        if delay.replace(".", "", 1).isdecimal():
            return parse_retry_after(delay, 0)
    return None


def _details(status: JsonObject, kind: str) -> Iterator[JsonObject]:
    for detail in objects_of(status.get("details")):
        if str(detail.get("@type") or "").endswith(f"google.rpc.{kind}"):
            yield detail
