"""What a session itself writes into its journal: what it is made of, and what it learnt from the world."""

from __future__ import annotations

from collections.abc import Mapping
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
from robota.core.hooks.definition import HOOK_EVENTS
from robota.core.messages import AssistantMessage, Json, JsonObject, Message, ToolMessage
from robota.core.provider import get_provider_capabilities
from robota.core.tool import tool_schema
from robota.sessions.journal.session_logger import FileSessionLogger

if TYPE_CHECKING:
    from robota.core.bus import Unsubscribe
    from robota.core.errors import RobotaError
    from robota.core.hooks import HookOutcome
    from robota.core.provider import ChatRequest
    from robota.core.tool import ToolResult
    from robota.core.tool_batch import PreparedCall
    from robota.sessions.journal.journal import Journal
    from robota.sessions.session import Session


class SessionScribe:
    """Opens the journal when there is something to write; without one, nothing is written."""

    __slots__ = ("_detach", "_opened", "_session", "closed", "logger")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._opened = False
        self._detach: Unsubscribe | None = None
        self.closed = False
        """Nothing more is written."""
        self.logger = session.options.logger or self._make_logger()

    def _make_logger(self) -> FileSessionLogger | None:
        session = self._session
        directory = getattr(session.store, "base_dir", None)
        if directory is None:
            return None
        options = session.options
        return FileSessionLogger(
            str(directory),
            session.session_id,
            redactor=options.redactor,
            durable=options.durable,
            now=options.ports.now,
        )

    @property
    def opened(self) -> bool:
        """Whether the session was used."""
        return self._opened

    def open(self) -> None:
        """Have the journal ready: a new one begins with what the session is made of."""
        session, logger = self._session, self.logger
        if self.closed:
            raise SessionBusyError(
                f"Session {session.session_id} was shut down: resume it or start a new one."
            )
        if self._opened:
            return
        if logger is not None:
            logger.journal.file.on_trouble = self.notice
            logger.journal.file.open()
            if logger.journal.file.seq and not len(session.agent.conversation):
                self.refuse_to_forget(logger.journal)
        self._opened = True
        if logger is None:
            return
        self._detach = logger.attach(session.events)
        if logger.journal.file.seq:
            logger.log("session_resumed", self.describe(with_schemas=False))
            return
        self.report(SessionInit, data=self.describe(with_schemas=True))
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
        for entry in self._session.history:
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

    def describe(self, *, with_schemas: bool) -> JsonObject:
        """The fields of `session_init`."""
        session, options = self._session, self._session.options
        agent, rules = session.agent, session.options.rules
        prompt = agent.system_message or ""
        return {
            "systemPrompt": prompt if with_schemas else None,
            "systemPromptLength": len(prompt),
            "provider": agent.provider.name,
            "model": agent.model,
            "cwd": session.cwd,
            "toolSchemas": tuple(map(tool_schema, agent.tools)) if with_schemas else None,
            "name": session.life.name,
            "permissionMode": session.permission_mode,
            "permissions": {"allow": rules.allow, "deny": rules.deny, "ask": rules.ask},
            "contextWindow": options.context_window,
            "autoCompactThreshold": session.tracker.threshold,
            "compactInstructions": options.compact_instructions or None,
            "maxTurns": options.max_turns,
            "options": None if options.settings == type(options.settings)() else options.settings,
            "webTools": self.describe_web_tools(),
            "selfChecking": [
                tool.name for tool in agent.tools if getattr(tool, "validates_arguments", False)
            ],
            "hookEvents": [event for event in HOOK_EVENTS if session.life.hooks.has(event)] or None,
            "canAsk": session.permission_handler is not None,
            "agentId": options.agent_id or None,
        }

    def describe_web_tools(self) -> JsonObject:
        session = self._session
        offered = get_provider_capabilities(session.agent.provider)
        wanted = session.life.web_tools
        return {
            "webSearch": {
                "supported": offered.web_search.supported,
                "enabled": bool(wanted and wanted.web_search),
            },
            "webFetch": {
                "supported": offered.web_fetch.supported,
                "enabled": bool(wanted and wanted.web_fetch),
            },
        }

    def log(self, event: str, data: Mapping[str, Json]) -> None:
        self.open()
        if self.logger is not None:
            self.logger.log(event, data)

    def note_change(self, what: str, value: Json, **more: Json) -> None:
        """Something about the session was changed from outside; said once there is a journal to say it in."""
        if self._opened and not self.closed:
            self.log("session_change", {"change": what, "value": value, **more})

    def record(self, message: Message) -> None:
        """Append a message that comes from outside a run; not between a call and its result."""
        self.open()
        conversation = self._session.agent.conversation
        if conversation.open_calls and not isinstance(message, ToolMessage):
            raise SessionBusyError(
                "No message can be put between a tool call and its result: wait for the end of the run."
            )
        self.announce(message, conversation.append(message))

    def record_entry(self, entry: HistoryEntry) -> None:
        """Append an event to the timeline."""
        self.open()
        self._session.agent.conversation.add_entry(entry)
        self.log("history_entry", {"entry": entry})

    def clear(self) -> None:
        """Begin the conversation anew."""
        self.open()
        self._session.agent.clear()
        self.log("history_cleared", {})

    def announce(self, message: Message, index: int) -> None:
        if isinstance(message, AssistantMessage) and message.metadata.get("compaction"):
            epoch = self._session.agent.conversation.epoch
            self.report(CompactionMarked, message=message, epoch=epoch)
            return
        self.report(HistoryMutation, message=message, index=index)

    def record_decision(self, decision: JsonObject) -> None:
        self.report(PermissionDecided, data=decision)

    def record_original(self, call: PreparedCall, result: ToolResult) -> None:
        """What a tool gave before hooks changed it."""
        self.log("tool_original", {"callId": call.call_id, "result": result})

    def record_answer(self, question: Json, answer: Json) -> None:
        self.report(UserAnswered, data={"question": question, "answer": answer})

    def record_summary_call(self, request: ChatRequest, outcome: AssistantMessage | RobotaError) -> None:
        if self.logger is None:
            return
        question = request.messages[-1]
        data: JsonObject = {"model": request.model, "id": question.id, "at": question.timestamp}
        if isinstance(outcome, AssistantMessage):
            data |= {"content": outcome.content, "metadata": outcome.metadata}
        else:
            data["error"] = {"code": outcome.code, "message": str(outcome)}
        self.logger.log("summary_call", data)

    def before_effects(self, call: PreparedCall) -> None:
        if self.logger is not None:
            self.logger.before_effects()

    def report_hooks(self, outcome: HookOutcome, call_id: str) -> None:
        data = {"hook": outcome.event, "callId": call_id or None, "outcome": to_builtins(outcome)}
        self.report(HookExecuted, data=data)
        for text in (*outcome.warnings, *outcome.system_messages):
            self.tell(Noticed, message=text)

    def tell(self, kind: type[TurnEvent], **fields: Any) -> None:
        """An event of the session itself, for everybody."""
        events = self._session.events
        events.emit(kind(seq=events.next_seq(), **fields))

    def report(self, kind: type[ReplayEvent], **fields: Any) -> None:
        """An event for the journal."""
        events = self._session.events
        if events.wants(kind):
            events.emit(kind(seq=events.seq, **fields))

    def notice(self, sentence: str) -> None:
        """Something the user should know."""
        if sentence:
            self.tell(Noticed, message=sentence)

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
