"""An authority of our own, and contexts of servers that it vouches for."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from robota.http import tls


class Authority:
    def __init__(self, directory: Path) -> None:
        self._ca = trustme.CA()
        self.file = directory / "authority.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def server(self, *names: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names).configure_cert(context)
        return context

    def into(self, directory: Path) -> None:
        """Lay the certificate down where OpenSSL looks for it in a directory."""
        command = ["openssl", "x509", "-hash", "-noout", "-in", str(self.file)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (directory / f"{done.stdout.strip()}.0").symlink_to(self.file)

    def client(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._ca.configure_trust(context)
        return context


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def fresh_trust(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No variable names certificates, and none are remembered."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    tls._load.cache_clear()
    yield monkeypatch
    tls._load.cache_clear()
