"""`TerminalHost`: what the command line does for a front end, because the effect is not the session's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


class KeptSession(Struct, frozen=True, kw_only=True):
    """A session to choose from."""

    id: str
    name: str = ""
    updated: str = ""
    """When it was used last, in ISO 8601."""
    messages: int | None = None
    preview: str = ""
    """Its first prompt, in one short line."""


class TerminalHost(Protocol):
    """Made by whoever chose the provider and opened the session."""

    def list_sessions(self) -> Sequence[KeptSession]:
        """The sessions of this directory, the last one first; without the present one."""
        ...

    async def open_session(self, session_id: str | None, *, fork: bool = False) -> InteractiveSession:
        """Open an earlier session, or a new one, and put the present one away. A `RobotaError` says why that
        cannot be done, and the present one goes on."""
        ...

    async def use_provider(self, profile: str) -> str:
        """Have another provider profile answer in the present session; a sentence about it."""
        ...

    async def reset_settings(self) -> str:
        """Delete the user's settings; a sentence about it. The front end leaves after that."""
        ...
