"""One prompt on its way through a session, as front ends follow it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from robota.core.bus import EventBus
from robota.core.errors import RobotaError, ValidationError
from robota.core.events import (
    Event,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    TextDelta,
    ToolEnded,
    ToolStarted,
)
from robota.core.messages import AssistantMessage, HistoryEntry, UserMessage
from robota.core.run import RunResult
from robota.sdk.commands.effects import CommandResult
from robota.sdk.execution import ExecutionResult
from robota.sdk.listeners import Listeners
from robota.sdk.timeline import ShownHistory, remark_entry, summarize, summary_entry, tool_entry
from robota.sdk.tool_states import ToolState, ToolStates
from robota.sessions.session import Session

INTERRUPTED = "Interrupted by user."


class Turn:
    """The turn under way: what was said, which tools ran. It is the same object for every turn."""

    __slots__ = ("_calls", "_deltas", "_ended", "_events", "_listeners", "_session", "tools")

    def __init__(self, events: EventBus, listeners: Listeners) -> None:
        self._events = events
        self._listeners = listeners
        self._session: Session | None = None
        self._deltas: list[str] = []
        self._ended: list[ToolState] = []
        self._calls: list[ToolEnded] = []
        self.tools = ToolStates()

    @property
    def text(self) -> str:
        if len(self._deltas) > 1:
            self._deltas[:] = ["".join(self._deltas)]
        return self._deltas[0] if self._deltas else ""

    def follow(self, session: Session) -> None:
        """Listen to this session from now on."""
        self._session = session
        # Behind the journal, so that what is added to the timeline comes after what it is about; and to no
        # more than is needed, because events that nobody hears are not made.
        for kind, handler in _HANDLERS.items():
            self._events.on(kind, partial(handler, self))

    async def take(self, run: Awaitable[RunResult[Any] | CommandResult | None]) -> ExecutionResult[Any]:
        """Run a prompt or a command, and tell how it ended."""
        self._deltas.clear()
        self._ended.clear()
        self._calls.clear()
        self.tools.clear()
        self._listeners.emit("thinking", True)
        failure: Exception | None = None
        result: RunResult[Any] | CommandResult | None = None
        try:
            result = await run
        except RobotaError as error:
            failure = error
        except Exception as error:
            failure = error
            raise
        finally:
            ended = self._tell_end(result, failure)
            self._listeners.emit("thinking", False)
        return ended

    def _tell_end(
        self, result: RunResult[Any] | CommandResult | None, failure: Exception | None
    ) -> ExecutionResult[Any]:
        ended = self._describe(result, failure)
        if ended.error is not None:
            self._listeners.emit("error", ended.error)
        elif ended.interrupted:
            self._listeners.emit("interrupted", ended)
        else:
            self._listeners.emit("complete", ended)
        if ended.context_state is not None:
            self._listeners.emit("context_update", ended.context_state)
        return ended

    def _describe(
        self, result: RunResult[Any] | CommandResult | None, failure: Exception | None
    ) -> ExecutionResult[Any]:
        session = self._session
        state = None if session is None else session.context_state
        if isinstance(result, CommandResult):
            refused = None if result.success else ValidationError(result.message)
            return ExecutionResult(
                text=result.message, error=refused, command=result, context_state=state, history=self._shown()
            )
        if result is None:
            return ExecutionResult(
                error=failure, interrupted=failure is None, stop_reason="aborted", context_state=state
            )
        interrupted = result.interrupted
        return ExecutionResult(
            text=self._said_so_far() if interrupted else result.text,
            error=None if interrupted else result.error,
            interrupted=interrupted,
            parsed=result.parsed,
            usage=result.usage,
            rounds=result.rounds,
            stop_reason=result.stop_reason,
            tool_summaries=summarize(self._calls),
            context_state=state,
            history=self._shown(),
        )

    def _shown(self) -> Sequence[HistoryEntry]:
        return () if self._session is None else ShownHistory(self._session.agent.conversation)

    def _said_so_far(self) -> str:
        """What the model had said in this turn before it was stopped."""
        said: list[str] = []
        for message in reversed([] if self._session is None else self._session.messages):
            if isinstance(message, UserMessage) and "origin" not in message.metadata:
                break
            if isinstance(message, AssistantMessage) and message.content.strip():
                said.append(message.content)
        return "\n\n".join(reversed(said))

    # --- what is heard ----------------------------------------------------------------------------------

    def hear_text(self, event: TextDelta) -> None:
        self._deltas.append(event.text)
        self._listeners.emit("text_delta", event.text)

    def hear_tool(self, event: ToolStarted) -> None:
        state = self.tools.start(event)
        self._remember(state)
        self._listeners.emit("tool_start", state)

    def hear_result(self, event: ToolEnded) -> None:
        state = self.tools.end(event)
        self._ended.append(state)
        self._calls.append(event)
        self._remember(state)
        self._listeners.emit("tool_end", state)

    def hear_end(self, event: Event) -> None:
        """While the run still counts as one, so that what is added here is saved with it."""
        if self._session is None:
            return
        if self._ended:
            self._session.add_history_entry(summary_entry(self._ended))
        if isinstance(event, RunInterrupted):
            self._session.add_history_entry(remark_entry(INTERRUPTED))
        elif isinstance(event, RunFailed):
            self._session.add_history_entry(remark_entry(f"Error: {event.message}"))

    def _remember(self, state: ToolState) -> None:
        if self._session is not None:
            self._session.add_history_entry(tool_entry(state))


_HANDLERS: dict[type[Event], Callable[[Any, Any], object]] = {
    TextDelta: Turn.hear_text,
    ToolStarted: Turn.hear_tool,
    ToolEnded: Turn.hear_result,
    RunCompleted: Turn.hear_end,
    RunInterrupted: Turn.hear_end,
    RunFailed: Turn.hear_end,
}
