from __future__ import annotations

from pathlib import Path

import pytest

pytest.register_assert_rewrite("robota.testing.store_conformance")

from robota.sessions.session_store import SessionStore, SessionStorePort  # noqa: E402
from robota.testing.store_conformance import StoreConformance  # noqa: E402


class TestSessionStore(StoreConformance):
    def make_store(self, directory: Path) -> SessionStorePort:
        return SessionStore(directory)
