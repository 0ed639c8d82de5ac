"""Why an exchange over the network failed, in words a model can act on.

Sentences are made here from the kind of failure and the host's name, never from a library's own message,
which may repeat a URL with a key in it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Literal, TypeAlias

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


def describe_failure(error: BaseException, url: Url) -> FetchError:
    """What a failure of the network or of an HTTP library means."""
    import ssl  # noqa: PLC0415 - loaded by whoever made the connection

    where = url.host
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                reason = str(cause.verify_message or "it is not valid").rstrip(".")
                return FetchError(
                    "certificate", f"The certificate of {where} was not accepted: {reason}.", DO_NOT_RETRY
                )
            case ssl.SSLWantReadError() | ssl.SSLWantWriteError():
                continue  # how a handshake waits, not how it fails
            case ssl.SSLError():
                return FetchError("certificate", f"{where} does not speak TLS as it should.", DO_NOT_RETRY)
            case socket.gaierror():
                return _unknown_host(cause, where)
            case ConnectionRefusedError():
                return FetchError(
                    "refused",
                    f"{where} refused the connection on port {url.port}.",
                    "Check the address; retry only if the service is just starting.",
                )
            case ConnectionResetError() | BrokenPipeError():
                return incomplete(url)
    return _by_library(error, url)


def incomplete(url: Url) -> FetchError:
    return FetchError(
        "reset", f"{url.host} closed the connection before its answer was complete.", RETRY_ONCE
    )


def too_slow(url: Url, seconds: float) -> FetchError:
    return FetchError("timeout", f"{url.host} did not answer within {seconds:g} s.", RETRY_ONCE)


def bad_protocol(url: Url, what: str) -> FetchError:
    return FetchError("protocol", f"{url.host} did not answer in proper HTTP: {what}.", DO_NOT_RETRY)


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


def _unknown_host(error: socket.gaierror, where: str) -> FetchError:
    if error.errno == socket.EAI_AGAIN:
        return FetchError("dns", f"The name {where!r} cannot be looked up at the moment.", RETRY_ONCE)
    return FetchError("dns", f"The host {where!r} was not found. Check its spelling.", DO_NOT_RETRY)


def _by_library(error: BaseException, url: Url) -> FetchError:
    import httpx2  # noqa: PLC0415 - whoever gets here has loaded it

    if isinstance(error, httpx2.TimeoutException):
        return FetchError("timeout", f"{url.host} did not answer in time.", RETRY_ONCE)
    if isinstance(error, httpx2.RemoteProtocolError):
        text = str(error)  # the library tells these two apart by words only
        if "without" in text or "disconnected" in text:
            return incomplete(url)
        what = "its headers have no end" if "too long" in text else "its answer is malformed"
        return bad_protocol(url, what)
    return FetchError("network", f"{url.host} could not be reached.", RETRY_ONCE)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, members of groups included."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        waiting += [one.__context__, one.__cause__]
