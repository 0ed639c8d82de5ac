"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def robota_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing a test starts writes into the home of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "ROBOTA_HOME", str(tmp_path_factory.mktemp("robota-home")))
        yield


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
