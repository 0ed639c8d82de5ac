"""What a session writes into its journal besides what its agent's events tell: what it is made of, what was
done to it from outside, what it learnt from the world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from robota.core.errors import ConfigurationError, SessionBusyError
from robota.core.events import (
    CompactionMarked,
    HistoryMutation,
    HookExecuted,
    Noticed,
    PermissionDecided,
    ReplayEvent,
    SessionInit,
    TurnEvent,
    UserAnswered,
)
from robota.core.history import HistoryEntry, chat_entry_to_message, is_chat_entry
from robota.core.messages import AssistantMessage, Json, JsonObject, Message, Prompt, ToolMessage

if TYPE_CHECKING:
    from robota.core.bus import EventBus, Unsubscribe
    from robota.core.conversation import ConversationStore
    from robota.core.hooks import HookOutcome
    from robota.core.tool import ToolResult
    from robota.core.tool_call import PreparedCall
    from robota.sessions.journal.journal import Journal
    from robota.sessions.journal.session_logger import FileSessionLogger


class SessionLog:
    """Opens the journal when there is something to write; without one, nothing is written."""

    __slots__ = (
        "_conversation", "_describe", "_detach", "_events", "_session_id", "closed", "logger", "opened",
    )  # fmt: skip

    def __init__(
        self,
        session_id: str,
        logger: FileSessionLogger | None,
        events: EventBus,
        conversation: ConversationStore,
        describe: Callable[[], JsonObject],
    ) -> None:
        """`describe` gives the fields of `session_init`."""
        self._session_id = session_id
        self._events = events
        self._conversation = conversation
        self._describe = describe
        self._detach: Unsubscribe | None = None
        self.logger = logger
        self.opened = False
        """Whether the session was used."""
        self.closed = False
        """Nothing more is written."""

    def open(self) -> None:
        """Have the journal ready: a new one begins with what the session is made of."""
        logger = self.logger
        if self.closed:
            raise SessionBusyError(f"Session {self._session_id} was shut down: resume it or start a new one.")
        if self.opened:
            return
        if logger is not None:
            logger.journal.file.on_trouble = self.notice
            logger.journal.file.open()
            if logger.journal.file.seq and not len(self._conversation):
                self.refuse_to_forget(logger.journal)
        self.opened = True
        if logger is None:
            return
        self._detach = logger.attach(self._events)
        described = self._describe()
        if logger.journal.file.seq:
            del described["systemPrompt"], described["toolSchemas"]  # said in its first record
            logger.log("session_resumed", described)
            return
        self.report(SessionInit, data=described)
        self.copy_history()

    def refuse_to_forget(self, journal: Journal) -> None:
        """Go on without what was said before? The model would not know it, and the journal would mix both."""
        import os  # noqa: PLC0415 - rare, as is the rest

        from robota.sessions.log.conversation_restore import restore_conversation  # noqa: PLC0415

        if not os.path.exists(journal.path):
            return  # a replay writes into memory
        if restore_conversation(journal.path, session_id=journal.session_id).messages:
            journal.file.close()
            raise ConfigurationError(
                f"Session {journal.session_id} exists already, in {journal.path}. To go on with it, pass the "
                "conversation that restore_conversation() finds there; else choose another session_id."
            )

    def copy_history(self) -> None:
        """Write down a conversation that began elsewhere."""
        messages = 0
        for entry in self._conversation.history:
            if is_chat_entry(entry):
                self.announce(chat_entry_to_message(entry), messages)
                messages += 1
            else:
                self.log("history_entry", {"entry": entry})

    def close(self) -> None:
        """Let the journal go; the session is over."""
        self.closed = True
        if self._detach is not None:
            self._detach()
        if self.logger is not None:
            self.logger.close()

    # --- what is done to the session ----------------------------------------------------------------------

    def log(self, event: str, data: Mapping[str, Json]) -> None:
        self.open()
        if self.logger is not None:
            self.logger.log(event, data)

    def accept(self, prompt: Prompt, words: str) -> None:
        """Write a prompt down before anything else: from here on it survives a power cut."""
        text = prompt if isinstance(prompt, str) else None
        parts = None if text is not None else to_builtins(tuple(prompt))
        self.log("user", {"input": words, "prompt": text if text != words else None, "parts": parts})
        self.sync()

    def note_change(self, what: str, value: Json, **more: Json) -> None:
        """Something about the session was changed from outside; said once there is a journal to say it in."""
        if self.opened and not self.closed:
            self.log("session_change", {"change": what, "value": value, **more})

    def record(self, message: Message) -> None:
        """Append a message that comes from outside a run; not between a call and its result."""
        self.open()
        if self._conversation.open_calls and not isinstance(message, ToolMessage):
            raise SessionBusyError(
                "No message can be put between a tool call and its result: wait for the end of the run."
            )
        self.announce(message, self._conversation.append(message))

    def record_entry(self, entry: HistoryEntry) -> None:
        """Append an event to the timeline."""
        self.open()
        self._conversation.add_entry(entry)
        self.log("history_entry", {"entry": entry})

    def announce(self, message: Message, index: int) -> None:
        if isinstance(message, AssistantMessage) and message.metadata.get("compaction"):
            self.report(CompactionMarked, message=message, epoch=self._conversation.epoch)
        else:
            self.report(HistoryMutation, message=message, index=index)

    # --- what it learns -------------------------------------------------------------------------------------

    def record_decision(self, decision: JsonObject) -> None:
        self.report(PermissionDecided, data=decision)

    def record_original(self, call: PreparedCall, result: ToolResult) -> None:
        """What a tool gave before hooks changed it."""
        self.log("tool_original", {"callId": call.call_id, "result": result})

    def record_answer(self, question: Json, answer: Json) -> None:
        self.report(UserAnswered, data={"question": question, "answer": answer})

    def record_hooks(self, outcome: HookOutcome, call_id: str) -> None:
        data = {"hook": outcome.event, "callId": call_id or None, "outcome": to_builtins(outcome)}
        self.report(HookExecuted, data=data)
        for text in (*outcome.warnings, *outcome.system_messages):
            self.tell(Noticed, message=text)

    def before_effects(self, call: PreparedCall) -> None:
        if self.logger is not None:
            self.logger.before_effects()

    # --- events of the session itself -----------------------------------------------------------------------

    def tell(self, kind: type[TurnEvent], **fields: Any) -> None:
        """For everybody."""
        events = self._events
        events.emit(kind(seq=events.next_seq(), **fields))

    def report(self, kind: type[ReplayEvent], **fields: Any) -> None:
        """For the journal."""
        events = self._events
        if events.wants(kind):
            events.emit(kind(seq=events.seq, **fields))

    def notice(self, sentence: str) -> None:
        """Something the user should know."""
        if sentence:
            self.tell(Noticed, message=sentence)

    # --- the disk -------------------------------------------------------------------------------------------

    def sync(self) -> None:
        if self.logger is not None:
            self.logger.sync()

    @property
    def path(self) -> str:
        """Where the journal is; empty without one."""
        return "" if self.logger is None else self.logger.journal.path

    @property
    def trouble(self) -> str:
        """Why not everything is on the disk."""
        return "" if self.logger is None else self.logger.journal.file.trouble
