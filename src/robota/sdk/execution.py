"""How one submitted prompt ended, for whoever submitted it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Self, cast

from msgspec import Struct

from robota.core.context import ContextWindowState
from robota.core.errors import AbortError
from robota.core.messages import HistoryEntry, StopReason, TokenUsage
from robota.core.run import ABORTED, OutputT
from robota.sdk.commands.effects import CommandResult
from robota.sdk.tool_states import ToolSummary


class ExecutionResult(Struct, Generic[OutputT], frozen=True, kw_only=True):
    """The answer, or why there is none. Neither an abort nor a failing model raises by itself."""

    text: str = ""
    """The answer; after an abort, what had been said until then."""
    error: Exception | None = None
    interrupted: bool = False
    parsed: OutputT | None = None
    usage: TokenUsage = TokenUsage()
    rounds: int = 0
    stop_reason: StopReason = "end_turn"
    tool_summaries: tuple[ToolSummary, ...] = ()
    context_state: ContextWindowState | None = None
    history: Sequence[HistoryEntry] = ()
    """The timeline as it is after the turn."""
    command: CommandResult | None = None
    """The answer of the command, when the prompt called one; its words are the text."""

    @property
    def response(self) -> str:
        return self.text

    @property
    def success(self) -> bool:
        return self.error is None and not self.interrupted

    @property
    def output(self) -> OutputT:
        """The validated value of `submit(output=…)`; raises what kept it from being there."""
        return cast("OutputT", self.raise_for_error().parsed)

    def raise_for_error(self) -> Self:
        """Raise what ended the turn before its answer, `AbortError` for an abort."""
        if self.error is not None:
            raise self.error
        if self.interrupted:
            raise AbortError(ABORTED)
        return self
