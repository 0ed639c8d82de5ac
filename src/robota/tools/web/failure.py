"""Why an exchange over the network failed, in words a model can act on.

Sentences are made here from the kind of failure and the host's name: a URL may have a key in it.
"""

from __future__ import annotations

import socket
from typing import Literal, TypeAlias, assert_never

from robota.http.errors import HttpError
from robota.http.url import Url

FailureCode: TypeAlias = Literal[
    "invalid_url", "forbidden_address", "dns", "refused", "reset", "timeout", "certificate", "protocol",
    "network", "http_status", "too_large", "binary", "redirects", "configuration",
]  # fmt: skip

RETRY_ONCE = "You may retry once."
DO_NOT_RETRY = "Do not retry."


class FetchError(Exception):
    """An exchange that gave nothing to use: a fact, and advice on what to do next."""

    def __init__(self, code: FailureCode, fact: str, advice: str = "") -> None:
        super().__init__(f"{fact} {advice}".rstrip())
        self.code = code
        self.fact = fact
        self.advice = advice


def describe_failure(error: HttpError, url: Url) -> FetchError:
    """What a failure of the HTTP client means."""
    where = url.host
    match error.kind:
        case "dns":
            return _unknown_host(error.__cause__, where)
        case "refused":
            return FetchError(
                "refused",
                f"{where} refused the connection on port {url.port}.",
                "Check the address; retry only if the service is just starting.",
            )
        case "certificate":
            return FetchError(
                "certificate", f"The certificate of {where} was not accepted: {error}.", DO_NOT_RETRY
            )
        case "tls":
            return FetchError("certificate", f"{where} does not speak TLS as it should.", DO_NOT_RETRY)
        case "connect_timeout" | "silence":
            return FetchError("timeout", f"{where} did not answer in time.", RETRY_ONCE)
        case "closed":
            return FetchError(
                "reset", f"{where} closed the connection before its answer was complete.", RETRY_ONCE
            )
        case "protocol":
            return FetchError("protocol", f"{where} did not answer in proper HTTP: {error}.", DO_NOT_RETRY)
        case "connect" | "proxy":
            return FetchError("network", f"{where} could not be reached.", RETRY_ONCE)
        case _:
            assert_never(error.kind)


def too_slow(url: Url, seconds: float) -> FetchError:
    return FetchError("timeout", f"{url.host} did not answer within {seconds:g} s.", RETRY_ONCE)


def bad_status(status: int, who: str = "") -> FetchError:
    """`HTTP 404 Not Found.` and whether to try again; the words are ours, not the server's."""
    from http import HTTPStatus  # noqa: PLC0415 - only for refusals

    try:
        phrase = f" {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = ""
    if status >= 500:
        advice = "The server has a problem; you may retry later."
    elif status in (408, 429):
        advice = "The server asks for patience; retry later, not at once."
    else:
        advice = DO_NOT_RETRY
    return FetchError("http_status", f"{who} HTTP {status}{phrase}.".lstrip(), advice)


def _unknown_host(cause: BaseException | None, where: str) -> FetchError:
    if cause is None:
        return FetchError("dns", f"The host {where!r} has no address.")
    if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_AGAIN:
        return FetchError("dns", f"The name {where!r} cannot be looked up at the moment.", RETRY_ONCE)
    return FetchError("dns", f"The host {where!r} was not found. Check its spelling.", DO_NOT_RETRY)
