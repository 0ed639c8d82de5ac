"""An authority of our own, and contexts of servers that it vouches for."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


class Authority:
    def __init__(self, directory: Path) -> None:
        import trustme  # with `cryptography` a tenth of a second, for few tests

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
