"""The sessions that are kept, and one of them as it was left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError, SessionNotFoundError
from robota.core.given import nearest
from robota.sessions.store.session_store import SessionStore, SessionStorePort

if TYPE_CHECKING:
    from robota.sessions.start import SessionStart

__all__ = ["SessionStore", "create_project_session_store", "require_session", "restore_session"]


def create_project_session_store(base_dir: str | None = None) -> SessionStore:
    """Where the sessions of this user are kept; a project cannot move it."""
    return SessionStore(base_dir)


def require_session(store: SessionStorePort | None, session_id: str) -> SessionStore:
    """The store, if it has that session; else an error with the one that was probably meant."""
    if not isinstance(store, SessionStore):
        raise ConfigurationError(
            f"Session {session_id} can be resumed only from the store it is kept in: pass session_store."
        )
    if not store.exists(session_id):
        near = nearest(session_id, [summary.id for summary in store.list()], 0.4)
        hint = f" Did you mean {near}?" if near else ""
        raise SessionNotFoundError(f"There is no session {session_id} in {store.base_dir}.{hint}")
    return store


def restore_session(store: SessionStorePort | None, session_id: str, *, fork: bool = False) -> SessionStart:
    """An earlier session as it was left."""
    from robota.sessions.start import restore  # noqa: PLC0415 - for those who go on

    return restore(require_session(store, session_id), session_id, fork=fork)
