"""Sessions as a host tells its clients about them."""

from __future__ import annotations

from msgspec import Struct

from robota.core.questions import AnyQuestion


class SessionFacts(Struct, frozen=True, kw_only=True, rename="camel"):
    """A session in a list."""

    id: str
    name: str | None = None
    cwd: str = ""
    preview: str = ""
    updated_at: str = ""
    created_at: str = ""
    message_count: int | None = None
    model: str | None = None
    cost: float | None = None
    """Dollars; not known of a session that is not open."""
    state: str = "stored"
    """running | asks | idle | failed | stored (not open in this process)"""


class SessionDetails(SessionFacts, frozen=True, kw_only=True, rename="camel"):
    """A session by itself."""

    last_event: int = 0
    executing: bool = False
    pending: str | None = None
    permission_mode: str | None = None
    questions: tuple[AnyQuestion, ...] = ()
    problems: tuple[str, ...] = ()
    read_only: bool = False


class SessionPage(Struct, frozen=True, kw_only=True):
    """A part of the list of sessions."""

    sessions: tuple[SessionFacts, ...] = ()
    next: str | None = None
