"""One session of a connection: prompts come in, everything that happens goes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    PromptResponse,
    SessionInfoUpdate,
    StopReason,
    UnstructuredCommandInput,
    Usage,
)

from robota.core.messages import TokenUsage
from robota.transports.acp.client import AcpClient, Update
from robota.transports.acp.content import ContentBlock, read_blocks
from robota.transports.acp.history import tell_history
from robota.transports.acp.modes import describe_options
from robota.transports.acp.permissions import Desk
from robota.transports.acp.updates import Updates
from robota.transports.session_maker import OfferedModel

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult
    from robota.sdk.interactive import InteractiveSession

NOT_HERE = frozenset({"exit", "resume", "reset"})
"""Commands that need a program which can be left, or a list to choose from: the editor has its own."""
_STOPS: dict[str, StopReason] = {
    "max_tokens": "max_tokens",
    "context_overflow": "max_tokens",
    "max_rounds": "max_turn_requests",
    "refusal": "refusal",
    "content_filter": "refusal",
}
TITLE = 80


class AcpSession:
    """A session and its client."""

    def __init__(
        self, session: InteractiveSession, client: AcpClient, models: Sequence[OfferedModel]
    ) -> None:
        self.session = session
        self.models = models
        self._client = client
        self.updates = Updates(session, self.send)
        self._commands: list[AvailableCommand] = []
        self._title = ""
        self._turns = 0
        self._stop = session.events.subscribe(self.updates.hear)
        self._desk = Desk(session, client)
        self._cancels = 0
        session.questions.attach(self._desk.answer)
        self.updates.tell_mode()

    def send(self, update: Update) -> None:
        self._client.update(self.session.session_id, update)

    # --- turns -------------------------------------------------------------------------------------------

    async def prompt(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        """Take one prompt to its end; raises what kept it from one."""
        prompt = read_blocks(blocks)
        self._turns += 1
        self.updates.spoke = False
        cancels = self._cancels
        try:
            await self._desk.settle_trust()
            if self._cancels != cancels:
                return PromptResponse(stop_reason="cancelled")
            result = await self.session.submit(prompt)
        finally:
            self._turns -= 1
        if result.command is not None and result.text:
            self.updates.say(result.text)
        self.announce()
        if result.error is not None:
            raise result.error
        return PromptResponse(stop_reason=_stop_reason(result), usage=describe_usage(result.usage))

    def cancel(self) -> None:
        if self._turns:
            self._cancels += 1
            self.session.abort()

    # --- what the client should know ---------------------------------------------------------------------

    def announce(self) -> None:
        """Commands, mode, model and title, as far as they have changed."""
        self.updates.tell_mode()
        commands = self._list_commands()
        if commands != self._commands:
            self._commands = commands
            self.send(
                AvailableCommandsUpdate(
                    session_update="available_commands_update", available_commands=commands
                )
            )
        title = self._find_title()
        if title and title != self._title:
            self._title = title
            self.send(SessionInfoUpdate(session_update="session_info_update", title=title))

    def tell_options(self) -> None:
        options: Any = describe_options(self.session, self.models)
        self.send(ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    def tell_history(self) -> None:
        for update in tell_history(self.session.session.history, self.session.cwd):
            self.send(update)

    def _list_commands(self) -> list[AvailableCommand]:
        return [
            AvailableCommand(
                name=command.name,
                description=command.description,
                input=AvailableCommandInput(root=UnstructuredCommandInput(hint=command.argument_hint))
                if command.argument_hint
                else None,
            )
            for command in self.session.commands.commands()
            if command.user_invocable and command.name not in NOT_HERE
        ]

    def _find_title(self) -> str:
        if self.session.name:
            return self.session.name
        first = next((entry.data for entry in self.session.full_history if entry.type == "user"), None)
        words = " ".join(first.content.split()) if first is not None else ""
        return words if len(words) <= TITLE else f"{words[: TITLE - 1]}…"

    async def close(self) -> None:
        """Stop what runs and save."""
        self.cancel()
        try:
            await self.session.shutdown("other")
        finally:
            self._stop()


def _stop_reason(result: ExecutionResult[Any]) -> StopReason:
    return "cancelled" if result.interrupted else _STOPS.get(result.stop_reason, "end_turn")


def describe_usage(usage: TokenUsage) -> Usage:
    return Usage(
        total_tokens=usage.total_tokens,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        thought_tokens=usage.reasoning_tokens or None,
        cached_read_tokens=usage.cache_read_tokens or None,
        cached_write_tokens=usage.cache_write_tokens or None,
    )
