from __future__ import annotations

from pathlib import Path

from robota.sessions.store.session_store import SessionStore, SessionStorePort
from robota.testing.store_conformance import StoreConformance


class TestSessionStore(StoreConformance):
    def make_store(self, directory: Path) -> SessionStorePort:
        return SessionStore(directory)
