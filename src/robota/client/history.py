"""The timeline of a session on another host: as it was when we came, and what its events have added since."""

from __future__ import annotations

from typing import Any

from msgspec import convert

from robota.core.events import (
    PromptSteered,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    TextDelta,
    ToolEnded,
    ToolStarted,
    TurnEvent,
)
from robota.core.messages import (
    AssistantMessage,
    HistoryEntry,
    JsonObject,
    Message,
    UserMessage,
    message_to_history_entry,
)
from robota.sdk.timeline import summary_entry, tool_entry
from robota.sdk.tool_states import ToolState, ToolStates


class RemoteHistory:
    """Entries as front ends show them, and the turn under way."""

    def __init__(self) -> None:
        self.entries: list[HistoryEntry] = []
        self.tools = ToolStates()
        self.calls: list[ToolEnded] = []
        """Those of the turn that have ended."""
        self._ended: list[ToolState] = []
        self._deltas: list[str] = []
        self._round: list[str] = []
        """What was said since the last call of a tool."""

    @property
    def streaming_text(self) -> str:
        return "".join(self._deltas)

    def load(self, entries: list[JsonObject]) -> None:
        self.entries = [_read(entry) for entry in entries]

    def take(self, event: TurnEvent) -> ToolState | None:
        """Add what an event tells; the state of the tool that it is about."""
        match event:
            case RunStarted():
                self.tools.clear()
                for told in (self.calls, self._ended, self._deltas, self._round):
                    told.clear()
                self._add(UserMessage(event.display or event.prompt))
            case PromptSteered(prompt=prompt):
                self._end_round("complete")
                self._add(UserMessage(prompt))
            case TextDelta(text=text):
                self._deltas.append(text)
                self._round.append(text)
            case ToolStarted():
                self._end_round("complete")
                state = self.tools.start(event)
                self.entries.append(tool_entry(state))
                return state
            case ToolEnded():
                state = self.tools.end(event)
                self.calls.append(event)
                self._ended.append(state)
                self.entries.append(tool_entry(state))
                return state
            case RunCompleted() | RunInterrupted() | RunFailed():
                if self._ended:
                    self.entries.append(summary_entry(self._ended))
                self._end_round("interrupted" if isinstance(event, RunInterrupted) else "complete")
        return None

    def _end_round(self, state: Any) -> None:
        said = "".join(self._round).strip()
        self._round.clear()
        if said:
            self._add(AssistantMessage(said, state=state))

    def _add(self, message: Message) -> None:
        self.entries.append(message_to_history_entry(message))


def _read(entry: JsonObject) -> HistoryEntry:
    if entry.get("category") != "chat":
        return convert(entry, HistoryEntry)
    message: Message = convert(entry["data"], Message)
    return message_to_history_entry(message)
