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
    """Dollars; `None` when no price is known, and for a session that is not open: only its whole journal
    would tell."""
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
    provider: str | None = None
    branch: str = ""
    """What is checked out in its directory; empty outside a repository."""
    trusted: bool | None = None
    """Whether nothing that its directory wants is kept from it; `None` while nobody has looked."""
    trust: tuple[str, ...] = ()
    """The question whether the user trusts the directory, line by line; empty when there is none."""
    trust_id: str = ""
    """Names that question in the answer."""


class SessionPage(Struct, frozen=True, kw_only=True):
    """A part of the list of sessions."""

    sessions: tuple[SessionFacts, ...] = ()
    next: str | None = None
