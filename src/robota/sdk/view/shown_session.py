"""`ShownSession`: what somebody who shows a session needs of it, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from robota.core.errors import ConfigurationError

if TYPE_CHECKING:
    from robota.core.bus import EventBus, Unsubscribe
    from robota.core.messages import HistoryEntry, Message, Prompt
    from robota.sdk.commands.effects import CommandResult
    from robota.sdk.commands.registry import CommandRegistry
    from robota.sdk.execution import ExecutionResult
    from robota.sessions.questions import QuestionHandler


class Asked(Protocol):
    """Where the questions of a session come from."""

    def attach(self, handler: QuestionHandler, /) -> Unsubscribe: ...


class ShownSession(Protocol):
    """An `InteractiveSession`, or one on another host."""

    events: EventBus
    commands: CommandRegistry

    @property
    def questions(self) -> Asked: ...
    @property
    def session_id(self) -> str: ...
    @property
    def cwd(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def is_executing(self) -> bool: ...
    @property
    def is_ready_made(self) -> bool: ...
    @property
    def pending_prompt(self) -> str | None: ...
    @property
    def permission_mode(self) -> str: ...
    @property
    def full_history(self) -> Sequence[HistoryEntry]: ...
    @property
    def messages(self) -> Sequence[Message]: ...

    async def ready(self) -> object: ...
    async def submit(self, prompt: Prompt, display_input: str | None = None) -> ExecutionResult[Any]: ...
    async def execute_command(self, name: str, args: str = "") -> CommandResult | None: ...
    def steer(self, prompt: Prompt) -> None: ...
    def abort(self) -> None: ...
    def cancel_queue(self) -> None: ...

    def describe_trust(self) -> list[str]: ...
    async def trust_project(self) -> None: ...
    def describe_outside_imports(self) -> list[str]: ...
    async def allow_outside_imports(self) -> None: ...


def hide_secrets(session: ShownSession, text: str) -> str:
    """A text for a file, without secrets, as the journal of the session would have it. The keys that a
    session on another host knows are not known here."""
    from robota.sdk.interactive import InteractiveSession  # noqa: PLC0415 - they would load each other
    from robota.sessions.redaction import Redactor  # noqa: PLC0415 - its tables are built on first use

    if isinstance(session, InteractiveSession):
        with suppress(ConfigurationError):  # it is not made yet
            return session.session.log.secrets.redactor.text(text)
    return Redactor().text(text)
