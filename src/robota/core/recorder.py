"""How a run puts messages into the conversation and tells the world about it.

Everything here is synchronous: between deciding and recording there is no await, so no cancellation can
leave a half-written turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from robota.core.events import HistoryMutation, ReplayEvent, TurnEvent
from robota.core.messages import AssistantMessage, Json, Message, ToolMessage
from robota.core.ports import timestamp
from robota.core.tool import INTERRUPTED

if TYPE_CHECKING:
    from robota.core.robota import Robota
    from robota.core.run import RunState


class Recorder:
    """The pen of one run."""

    __slots__ = (
        "_spare_ids", "conversation", "conversation_id", "events", "execution_id", "plugins", "ports",
        "round",
    )  # fmt: skip

    def __init__(self, agent: Robota, execution_id: str = "") -> None:
        self.conversation = agent.conversation
        self.conversation_id = agent.conversation_id
        self.events = agent.events
        self.plugins = agent.chain
        self.ports = agent.config.ports
        self.execution_id = execution_id or agent.config.ports.new_id()
        self.round = 0
        self._spare_ids = 0

    def tell(self, kind: type[TurnEvent], **fields: Any) -> None:
        """A turn event: numbered whether or not anybody listens."""
        events = self.events
        seq = events.next_seq()
        if events.wants(kind):
            events.emit(kind(execution_id=self.execution_id, seq=seq, **fields))

    def tell_transient(self, kind: type[TurnEvent], **fields: Any) -> None:
        """A turn event that is not worth a place in the journal: it repeats the number before it."""
        events = self.events
        if events.wants(kind):
            events.emit(kind(execution_id=self.execution_id, seq=events.seq, **fields))

    def log(self, kind: type[ReplayEvent], **fields: Any) -> None:
        """A replay event: built only for those who asked."""
        events = self.events
        if events.wants(kind):
            events.emit(
                kind(
                    execution_id=self.execution_id,
                    seq=events.seq,
                    conversation_id=self.conversation_id,
                    round=self.round,
                    **fields,
                )
            )

    def record(self, message: Message) -> None:
        self.conversation.append(message)
        self.announce(message)

    def announce(self, message: Message) -> None:
        """Tell about a message that is in the conversation now."""
        self.log(HistoryMutation, message=message, index=len(self.conversation) - 1)
        self.plugins.later("on_message_added", message)

    def say(self, text: str, metadata: Mapping[str, Json], state: RunState) -> None:
        """An answer of the engine itself, where the model has none."""
        message = AssistantMessage(text, metadata=metadata, **self.identity())
        state.note_message(message)
        self.record(message)

    def answer_open_calls(self) -> None:
        """Give every call that is still without a result one that says why."""
        for call in self.conversation.open_calls:
            metadata = {"success": False, "toolName": call.name, "round": self.round, "error": "interrupted"}
            text = f"Error: {INTERRUPTED}"
            self.record(ToolMessage(text, call.id, call.name, metadata=metadata, **self.identity()))

    def identity(self) -> dict[str, Any]:
        """Id and time stamp for a new message, from the run's own sources."""
        ports = self.ports
        return {"id": ports.new_id(), "timestamp": timestamp(ports.now())}

    def spare_call_id(self) -> str:
        """An id for a call that the provider gave none, or one that is taken."""
        self._spare_ids += 1
        return f"call_{self.execution_id}-{self._spare_ids}"
