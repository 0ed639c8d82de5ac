"""`TerminalHost`: what the command line does for a front end, because the effect is not the session's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from robota.core.tool import ToolResult
    from robota.sdk.checkpoints import Checkpoint
    from robota.sdk.kept_sessions import SessionSummary
    from robota.sdk.session_facts import SessionFacts
    from robota.sdk.view.model import Status
    from robota.sdk.view.shown_session import ShownSession


class KeptSession(Struct, frozen=True, kw_only=True):
    """A session to choose from."""

    id: str
    name: str = ""
    updated: str = ""
    """When it was used last, in ISO 8601."""
    messages: int | None = None
    preview: str = ""
    """Its first prompt, in one short line."""

    @classmethod
    def of(cls, known: SessionFacts | SessionSummary) -> KeptSession:
        """As a store, or a host, knows it."""
        return cls(
            id=known.id,
            name=known.name or "",
            updated=known.updated_at,
            messages=known.message_count,
            preview=known.preview,
        )


class TerminalHost(Protocol):
    """Made by whoever chose the provider and opened the session."""

    def setting(self, name: str) -> Any:
        """What the user set, where the session has nothing else; `None` for what nobody set."""
        ...

    def read_status(self, session: ShownSession) -> Status:
        """How a session stands."""
        ...

    def stop_turn(self) -> None:
        """The terminal is left in the middle of a turn: end it, unless it goes on elsewhere."""
        ...

    async def list_sessions(self) -> Sequence[KeptSession]:
        """The sessions to choose from, the last one first; without the present one."""
        ...

    async def list_checkpoints(self) -> Sequence[Checkpoint]:
        """The prompts that the present session can go back to."""
        ...

    async def run_shell_line(self, command: str, hear: Callable[[str], None]) -> ToolResult:
        """A command of the user's own, beside the conversation; `hear` is told what it prints."""
        ...

    async def open_session(self, session_id: str | None, *, fork: bool = False) -> ShownSession:
        """Open an earlier session, or a new one, and put the present one away. A `RobotaError` says why that
        cannot be done, and the present one goes on."""
        ...

    async def list_models(self) -> Sequence[str]:
        """The models that the present provider can be asked for; none where it cannot say."""
        ...

    async def use_provider(self, profile: str) -> str:
        """Have another provider profile answer in the present session; a sentence about it."""
        ...

    async def reset_settings(self) -> str:
        """Delete the user's settings; a sentence about it. The front end leaves after that."""
        ...
