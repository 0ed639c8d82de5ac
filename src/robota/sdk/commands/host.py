"""What a command may use of the session that it is called in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from robota.sdk.commands.registry import CommandRegistry
    from robota.sessions.session import Session


class CommandHost(Protocol):
    @property
    def session(self) -> Session: ...
    @property
    def commands(self) -> CommandRegistry: ...
