"""Whom to trust: the certificates of the system, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING

from robota._lazy_pattern import lazy_pattern
from robota.http.errors import HttpError

if TYPE_CHECKING:
    import ssl

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
    import ssl  # noqa: PLC0415 - plain HTTP does without

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
