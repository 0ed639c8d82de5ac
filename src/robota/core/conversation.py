"""The one record of a conversation: append-only, changed only by synchronous code.

Two views of the same messages. The *timeline* keeps everything that ever happened. The *model's view* is what
a provider is sent: it begins again at a compaction mark, says so when an answer was interrupted, and gives
every tool call an id of its own even when a provider reused one; stored messages are never touched. A rewind
sets the end of both aside, from where it comes back as long as nothing else was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from robota.core.context import ContextTally
from robota.core.encoded import EncodedHistory, MessageView
from robota.core.messages import (
    AssistantMessage,
    HistoryEntry,
    Json,
    Message,
    MessageState,
    ReasoningBlock,
    SystemMessage,
    ToolCall,
    ToolMessage,
    message_to_history_entry,
)
from robota.core.ports import REAL_WORLD, Ports, timestamp
from robota.core.reply import PendingAssistant


class CallNames(Struct, eq=False, gc=False):
    """Ids of tool calls as the model sees them: each its own, even when a provider reused one."""

    renamed: dict[str, str] = {}
    """Calls of the last answer whose ids were used before, and what they are called instead."""
    _seen: dict[str, int] = {}

    def rename(self, message: AssistantMessage) -> AssistantMessage:
        """An answer with its calls under names that no earlier call has."""
        if not message.tool_calls:
            return message
        seen = self._seen
        repeated = [call.id for call in message.tool_calls if call.id in seen]
        for call in message.tool_calls:
            seen.setdefault(call.id, 1)  # first all of its own: no new name may hit one of them
        self.renamed = {used: self._unused(used) for used in repeated}
        if not repeated:
            return message
        calls = tuple(replace(call, id=self.renamed.get(call.id, call.id)) for call in message.tool_calls)
        return replace(message, tool_calls=calls)

    def _unused(self, wanted: str) -> str:
        seen = self._seen
        while True:
            seen[wanted] += 1
            other = f"{wanted}_{seen[wanted]}"
            if other not in seen:
                seen[other] = 1
                return other


INTERRUPTION_NOTE = "\n\n[This response was interrupted by the user]"
SUMMARY_HEADING = "[Context Summary]"


class ConversationStore:
    """The messages of a conversation and everything else on its timeline; append-only."""

    __slots__ = (
        "_entries", "_messages", "_names", "_open_calls", "_pending", "_ports", "_starts", "_system",
        "_view", "aside", "encoded", "epoch", "tally",
    )  # fmt: skip

    def __init__(self, ports: Ports = REAL_WORLD) -> None:
        self._ports = ports
        self._entries: list[Message | HistoryEntry] = []
        self._messages: list[Message] = []
        self.aside: list[list[Message | HistoryEntry]] = []
        """What rewinds took away, the latest last."""
        self._pending: PendingAssistant | None = None
        self._open_calls: dict[str, ToolCall] = {}
        self._system: SystemMessage | None = None
        self.epoch = 0
        """Grows whenever the model's view begins again."""
        self._view: list[Message] = []
        self._starts: list[int] = []
        self._names = CallNames()
        self.encoded = EncodedHistory(self._view, self._starts)
        self.tally = ContextTally()

    # --- reading -------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """Every message of the conversation, as stored."""
        return list(self._messages)

    @property
    def timeline(self) -> Sequence[Message]:
        """The same, as it is now, without a copy."""
        return MessageView(self._messages)

    @property
    def history(self) -> list[HistoryEntry]:
        """The whole timeline: chat entries and event entries in order."""
        return [
            entry if isinstance(entry, HistoryEntry) else message_to_history_entry(entry)
            for entry in self._entries
        ]

    @property
    def system(self) -> SystemMessage | None:
        """The system message in force."""
        return self._system

    @property
    def open_calls(self) -> Sequence[ToolCall]:
        """Calls of the last answer that have no result yet."""
        return tuple(self._open_calls.values())

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def entries(self) -> Sequence[Message | HistoryEntry]:
        """The whole timeline, messages as they are."""
        return self._entries

    def messages_for_api(self) -> Sequence[Message]:
        """The model's view as it is now; it stays as it is while the conversation grows."""
        return MessageView(self._view)

    # --- appending -----------------------------------------------------------------------------------

    def append(self, message: Message) -> int:
        """Record a message and return its index. Nothing recorded is ever changed."""
        self._entries.append(message)
        self._messages.append(message)
        if isinstance(message, SystemMessage):
            self._set_system(message)
        else:
            self.aside = self.aside and []
            self._append_to_view(message)
        return len(self._messages) - 1

    def add_entry(self, entry: HistoryEntry) -> None:
        """Put a ready-made event into the timeline; the model does not see it."""
        if entry.category == "chat":
            raise ValueError("add_entry takes event entries; record a message with append().")
        self._entries.append(entry)

    def clear(self) -> None:
        """Begin an empty conversation; the system message stays."""
        self._begin_again([])

    def rewind(self, count: int) -> None:
        """Go back to the first `count` messages; what followed is set aside. The system message stays."""
        places = (at for at, entry in enumerate(self._entries) if not isinstance(entry, HistoryEntry))
        kept = next(islice(places, count, None), len(self._entries))
        aside = [*self.aside, self._entries[kept:]]
        self._begin_again(self._entries[:kept])
        self.aside = aside

    def take_back_rewind(self) -> bool:
        """Have again what the last rewind set aside; false when there is nothing, or something was said."""
        if not self.aside:
            return False
        *aside, rest = self.aside
        self._begin_again([*self._entries, *rest])
        self.aside = aside
        return True

    def _begin_again(self, entries: list[Message | HistoryEntry]) -> None:
        system, self._system = self._system, None
        self._entries, self._messages, self._pending, self._open_calls = [], [], None, {}
        self.aside = []
        self._restart([])
        for entry in entries:
            self.restore(entry)
        if system is not None and self._system is not system:
            self.append(system)

    def adopt(self, other: ConversationStore, behind: int) -> None:
        """Become another conversation, with what this one has behind its first entries at the end."""
        news = self._entries[behind:]
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))
        for entry in news:
            self.restore(entry)

    def reopen(self, count: int) -> None:
        """Take back the last results, which were made up for calls that a crash cut: they get real ones."""
        taken = {id(message) for message in self._messages[-count:]}
        self._entries = [entry for entry in self._entries if id(entry) not in taken]
        del self._messages[-count:]
        self._restart(self._view[0 if self._system is None else 1 : -count], prepared=True)
        self._open_calls = _find_open_calls(self._messages)

    # --- the answer being streamed ---------------------------------------------------------------------

    def begin_assistant(self) -> PendingAssistant:
        """Open the buffer before the model is called, so that there is always something to commit."""
        if self._pending is None:
            self._pending = PendingAssistant()
        return self._pending

    def append_streaming(self, delta: str) -> None:
        self.begin_assistant().text.append(delta)

    def append_tool_call(self, call: ToolCall) -> None:
        """Add a call; the same id twice in one answer is one call."""
        self.begin_assistant().calls.setdefault(call.id, call)

    def append_reasoning(self, block: ReasoningBlock) -> None:
        self.begin_assistant().reasoning.append(block)

    def commit_assistant(
        self, state: MessageState, metadata: Mapping[str, Json] | None = None
    ) -> AssistantMessage | None:
        """Record the streamed answer, however it ended; text is kept whatever else there is."""
        pending, self._pending = self._pending, None
        if pending is None:
            return None
        message = AssistantMessage(
            "".join(pending.text),
            tuple(pending.calls.values()),
            state,
            tuple(pending.reasoning),
            id=self._ports.new_id(),
            timestamp=timestamp(self._ports.now()),
            metadata=metadata or {},
        )
        self.append(message)
        return message

    def discard_pending(self) -> None:
        self._pending = None

    @property
    def has_pending_assistant(self) -> bool:
        return self._pending is not None

    @property
    def pending_content(self) -> str:
        return "".join(self._pending.text) if self._pending is not None else ""

    # --- compaction ------------------------------------------------------------------------------------

    def mark_compaction(self, summary: str) -> AssistantMessage:
        """From here on the model sees the system message and this summary; nothing is deleted."""
        message = AssistantMessage(
            f"{SUMMARY_HEADING}\n{summary}",
            id=self._ports.new_id(),
            timestamp=timestamp(self._ports.now()),
            metadata={"compaction": True, "replaces": len(self._messages)},
        )
        self.restore_mark(message)
        return message

    def restore(self, entry: Message | HistoryEntry) -> None:
        """Append what was in a conversation before, whatever it is."""
        if isinstance(entry, HistoryEntry):
            self.add_entry(entry)
        elif isinstance(entry, AssistantMessage) and entry.metadata.get("compaction"):
            self.restore_mark(entry)
        else:
            self.append(entry)

    def restore_mark(self, message: AssistantMessage) -> None:
        """Begin the model's view again with the message of an earlier mark."""
        self._entries.append(message)
        self._messages.append(message)
        self.aside, self._open_calls = [], {}
        self._restart([message])

    # --- the model's view -------------------------------------------------------------------------------

    def _set_system(self, message: SystemMessage) -> None:
        if self._system is None and not self._view:
            self._system = message
            self._append_to_view(message)
            return
        rest = self._view[1:] if self._system is not None else list(self._view)
        self._system = message
        self._restart(rest, prepared=True)

    def _restart(self, messages: list[Message], *, prepared: bool = False) -> None:
        self.epoch += 1
        self._view, self._starts = [], []
        self.tally = ContextTally()
        self.encoded.restart(self._view, self._starts)
        if not prepared:
            self._names = CallNames()
        add = self._extend_view if prepared else self._append_to_view
        for message in ([self._system] if self._system is not None else []) + messages:
            add(message)

    def _append_to_view(self, message: Message) -> None:
        if isinstance(message, AssistantMessage):
            self._open_calls = {call.id: call for call in message.tool_calls}
            message = self._names.rename(_note_interruption(message))
        elif isinstance(message, ToolMessage):
            self._open_calls.pop(message.tool_call_id, None)
            other = self._names.renamed.get(message.tool_call_id)
            if other is not None:
                message = replace(message, tool_call_id=other)
        self._extend_view(message)

    def _extend_view(self, message: Message) -> None:
        view = self._view
        if not (isinstance(message, ToolMessage) and view and isinstance(view[-1], ToolMessage)):
            self._starts.append(len(view))
        view.append(message)
        self.tally.add(message)


def _note_interruption(message: AssistantMessage) -> AssistantMessage:
    interrupted = message.state == "interrupted"
    return replace(message, content=message.content + INTERRUPTION_NOTE) if interrupted else message


def _find_open_calls(messages: Sequence[Message]) -> dict[str, ToolCall]:
    """The calls of the last answer that no result follows."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, AssistantMessage):
            return {call.id: call for call in message.tool_calls if call.id not in answered}
    return {}
