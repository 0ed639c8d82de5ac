"""What a transport with several sessions needs of the program around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Unpack

from msgspec import Struct

if TYPE_CHECKING:
    from robota.sdk.assembly import MoreOptions
    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.kept_sessions import SessionStore


class OfferedModel(Struct, frozen=True):
    """A model that a session may change to."""

    id: str
    title: str = ""


class SessionMaker(Protocol):
    """Makes sessions; whoever gets one shuts it down."""

    @property
    def store(self) -> SessionStore | None:
        """Where sessions are kept; `None` if they are not."""
        ...

    async def open(
        self,
        cwd: str | None = None,
        *,
        resume: str | None = None,
        fork: bool = False,
        add_dirs: Sequence[str] = (),
        **more: Unpack[MoreOptions],
    ) -> InteractiveSession:
        """A session in a directory: a new one, or one of the store, or a copy of that."""
        ...

    def models(self) -> Sequence[OfferedModel]:
        """The models of the provider, as far as they are known here."""
        ...

    async def choose_provider_again(self) -> None:
        """Look anew who answers: sessions that are opened from now on ask them."""
        ...
