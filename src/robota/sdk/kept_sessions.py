"""The sessions that are kept, and one of them as it was left."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError, SessionNotFoundError, ValidationError
from robota.core.given import nearest
from robota.sessions.journal.port import SessionLockedError
from robota.sessions.store.session_store import SessionStore, SessionStorePort

if TYPE_CHECKING:
    from robota.sessions.start import SessionStart
    from robota.sessions.store.summary import SessionSummary as SessionSummary

__all__ = [
    "SessionLockedError",
    "SessionStore",
    "create_project_session_store",
    "find_last_session",
    "find_session",
    "require_session",
    "restore_session",
]


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


def find_session(store: SessionStore, wanted: str, cwd: str) -> str:
    """The id of the session that somebody means by an id or a name; those of `cwd` come first."""
    with suppress(ValidationError):  # a name may have any letters, an id not
        if store.exists(wanted):
            return wanted
    known = store.list()
    named = [summary for summary in known if summary.name == wanted]
    found = [summary for summary in named if summary.cwd == cwd] or named
    if len(found) > 1:
        ids = ", ".join(summary.id for summary in found)
        raise ConfigurationError(f"Several sessions are called {wanted!r}; name one by its id: {ids}.")
    if found:
        return found[0].id
    names = [summary.name for summary in known if summary.name]
    near = nearest(wanted, [*(summary.id for summary in known), *names], 0.4)
    hint = f" Did you mean {near}?" if near else ""
    raise SessionNotFoundError(f"There is no session {wanted} in {store.base_dir}.{hint}")


def find_last_session(store: SessionStore, cwd: str) -> str | None:
    """The id of the session in a directory that was used last."""
    return next((summary.id for summary in store.list(cwd=cwd) if not summary.problem), None)


def restore_session(store: SessionStorePort | None, session_id: str, *, fork: bool = False) -> SessionStart:
    """An earlier session as it was left."""
    from robota.sessions.start import restore  # noqa: PLC0415 - for those who go on

    return restore(require_session(store, session_id), session_id, fork=fork)
