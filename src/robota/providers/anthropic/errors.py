"""What the Messages API says when it refuses, where only its own wording tells what it is about."""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.errors import ModelNotAvailableError, ProviderError, RobotaError
from robota.providers.wire.channel import HttpChannel
from robota.providers.wire.errors import Refusal, describe_refusal


class MessagesChannel(HttpChannel):
    """The way to a Messages endpoint."""

    def describe(self, refusal: Refusal) -> RobotaError:
        return describe_messages_refusal(refusal, self.provider, self.secrets)


def describe_messages_refusal(refusal: Refusal, provider: str, secrets: Sequence[str]) -> RobotaError:
    """The error for an answer that is not 200, with the next step."""
    error = describe_refusal(refusal, provider, secrets)
    return _explain(error, refusal.model) if isinstance(error, ProviderError) else error


def _explain(error: ProviderError, model: str) -> RobotaError:
    said = str(error)
    if error.status == 404 and f"model: {model}" in said:
        return ModelNotAvailableError(model, error.provider)
    if error.status == 400 and "prompt is too long" in said:
        what, fix = "cannot take a conversation this long", "compact it or use a model with a larger window"
    elif error.status == 400 and "credit balance" in said:
        what, fix = "says that the account has no credit left", "check the billing page of the service"
    else:
        return error
    quote = said[said.find("(") : said.rfind(")") + 1]
    return ProviderError(
        f"{error.provider} {what} {quote}; {fix}.",
        provider=error.provider,
        status=error.status,
        request_id=error.request_id,
    )
