"""What a transport with several sessions needs of the program around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, Unpack

from msgspec import Struct

if TYPE_CHECKING:
    from robota.sdk.assembly import MoreOptions
    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.kept_sessions import SessionStore


class OfferedModel(Struct, frozen=True):
    """A model that a session may change to."""

    id: str
    title: str = ""


class SessionWish(Struct, frozen=True, kw_only=True):
    """What a client says of the session it wants; what it leaves out is as the server was started."""

    cwd: str | None = None
    """Else where the session was left, or where the server was started."""
    name: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    resume: str | None = None
    """The id of a session that is kept, to go on with."""
    fork: bool = False
    """Go on in a copy of it."""
    add_dirs: tuple[str, ...] = ()
    """Directories that belong to the workspace too."""


SessionFactory: TypeAlias = Callable[[SessionWish], Awaitable["InteractiveSession"]]


class SessionMaker(Protocol):
    """Makes sessions; whoever gets one shuts it down."""

    @property
    def store(self) -> SessionStore | None:
        """Where sessions are kept; `None` if they are not."""
        ...

    async def open(self, wish: SessionWish, /, **more: Unpack[MoreOptions]) -> InteractiveSession:
        """A session as somebody wishes: a new one, or one of the store, or a copy of that."""
        ...

    def models(self) -> Sequence[OfferedModel]:
        """The model that answers, and the others of its provider, as far as they are known here."""
        ...

    async def choose_provider_again(self) -> None:
        """Look anew who answers: sessions that are opened from now on ask them."""
        ...


async def made_ready(session: InteractiveSession) -> InteractiveSession:
    """The session with its files read, before anybody can find it: they may be unusable."""
    made = False
    try:
        await session.ready()
        made = True
    finally:
        if not made:
            await session.shutdown("other")
    return session
