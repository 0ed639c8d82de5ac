"""How a connection comes about: to the addresses of a host, of which the first that answers is taken; and
whom to trust: the certificates of the system, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine, Sequence
from itertools import chain, zip_longest
from typing import Any, TypeAlias

from robota._lazy_pattern import lazy_pattern
from robota.http.connection import Connection
from robota.http.errors import HttpError
from robota.http.url import Url

Connect: TypeAlias = Callable[[str], Coroutine[Any, Any, Connection]]
HEAD_START_SECONDS = 0.25
"""How long an address has for itself before the next one is tried beside it (RFC 8305 calls for so much)."""


async def look_up(host: str, port: int) -> list[str]:
    """The addresses of a host, the best first and the two kinds in turn."""
    name = host.encode("ascii")  # text would be sent through the codec of international names: 3 ms to load
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise _explain(error) from error
    by_kind: dict[int, list[str]] = {}
    for kind, _, _, _, address in found:
        by_kind.setdefault(kind, []).append(str(address[0]))
    in_turn = chain.from_iterable(zip_longest(*by_kind.values()))
    return list(dict.fromkeys(address for address in in_turn if address is not None))


async def dial(
    url: Url, addresses: Sequence[str], make: Callable[[], Connection], *, tls: ssl.SSLContext | None
) -> Connection:
    """A connection to one of the addresses, whose certificate is checked for the host of the URL."""
    options: dict[str, Any] = {}
    if url.scheme == "https":
        options = {"ssl": tls or trusting_context(), "server_hostname": url.host}
    loop = asyncio.get_running_loop()

    async def connect(address: str) -> Connection:
        try:
            _, connection = await loop.create_connection(make, address, url.port, **options)
        except OSError as error:
            raise _explain(error) from error
        return connection

    return await (connect(addresses[0]) if len(addresses) == 1 else _race(connect, addresses))


async def _race(connect: Connect, addresses: Sequence[str]) -> Connection:
    """The first connection that comes about. (The loop's own way to race loses a socket when cancelled.)"""
    waiting = list(reversed(addresses))
    attempts: list[asyncio.Task[Connection]] = []
    running: set[asyncio.Task[Connection]] = set()
    winner: asyncio.Task[Connection] | None = None
    try:
        while True:
            if waiting:
                attempts.append(asyncio.create_task(connect(waiting.pop())))
                running.add(attempts[-1])
            head_start = HEAD_START_SECONDS if waiting else None
            done, running = await asyncio.wait(
                running, timeout=head_start, return_when=asyncio.FIRST_COMPLETED
            )
            winner = next((task for task in done if task.exception() is None), None)
            if winner is not None:
                return winner.result()
            for task in done:
                failure = task.exception()
                assert failure is not None
                if not (waiting or running) or _is_somebody_else(failure):
                    raise failure
    finally:
        for task in attempts:
            if task is not winner:
                task.cancel()
                task.add_done_callback(_hang_up)


def _is_somebody_else(failure: BaseException) -> bool:
    """Somebody answered at the address, but not who was meant: another address would make no difference."""
    return not isinstance(failure, HttpError) or failure.kind in ("certificate", "tls")


def _hang_up(task: asyncio.Task[Connection]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


def is_out_of_descriptors() -> bool:
    """Whether nothing more can be opened. Asked after a failure: looking up a host hides this reason."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def _explain(error: OSError) -> HttpError:
    """Why there is no connection."""
    if is_out_of_descriptors():
        return HttpError("descriptors", os.strerror(errno.EMFILE))
    match error:
        case TimeoutError():
            return HttpError("connect_timeout", "the host did not answer in time")
        case socket.gaierror():
            return HttpError("dns", f"the host was not found: {error.strerror or error}")
        case ssl.SSLCertVerificationError():
            return HttpError("certificate", str(error.verify_message or error).rstrip("."))
        case ssl.SSLError():
            return HttpError("tls", str(error))
        case ConnectionRefusedError():
            return HttpError("refused", str(error))
        case _:
            return HttpError("connect", str(error) or type(error).__name__)


_USUAL_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/ca-bundle.pem",
)
"""For a Python whose OpenSSL was built to look elsewhere."""
_HASHED_NAME = lazy_pattern(r"[0-9a-fA-F]{8}\.\d")
"""How OpenSSL finds a certificate in a directory; files of other names are as good as none."""


def trusting_context() -> ssl.SSLContext:
    """The context for certificates of public or company authorities: 23 ms, once per process."""
    return _load(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@functools.cache
def _load(file: str, directory: str) -> ssl.SSLContext:
    if not file and not directory:
        if sys.platform in ("darwin", "win32"):
            import truststore  # noqa: PLC0415 - where OpenSSL cannot ask the system

            return _speak_http(truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        file, directory = _find_store(ssl.get_default_verify_paths())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if directory and not os.path.isdir(directory):  # which OpenSSL does not mind
        raise HttpError("trust", f"SSL_CERT_DIR names {directory}, which is not a directory")
    try:
        if file or directory:
            context.load_verify_locations(file or None, directory or None)
    except OSError as error:  # ssl.SSLError is one
        why = "it holds no certificates in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        source = (
            "SSL_CERT_FILE names" if os.environ.get("SSL_CERT_FILE") else "the system's certificates are in"
        )
        raise HttpError("trust", f"{source} {file or directory}, which cannot be used: {why}") from error
    return _speak_http(context)


def _speak_http(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_alpn_protocols(["http/1.1"])
    return context


def _find_store(paths: ssl.DefaultVerifyPaths) -> tuple[str, str]:
    """Where the system's certificates are: a file, a directory, or both."""
    file = paths.openssl_cafile if os.path.isfile(paths.openssl_cafile) else ""
    directory = paths.openssl_capath if os.path.isdir(paths.openssl_capath) else ""
    if directory and not any(map(_HASHED_NAME.fullmatch, os.listdir(directory))):
        directory = ""
    if not file and not directory:
        file = next(filter(os.path.isfile, _USUAL_FILES), "")
    return file, directory
