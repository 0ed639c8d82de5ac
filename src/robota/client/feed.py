"""What the stream of a session tells, on its way to those who listen here."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
from msgspec.structs import replace

from robota.client.command_answer import read_answer_of_command
from robota.client.connection import RemoteSessionError
from robota.client.history import RemoteHistory
from robota.client.questions import RemoteQuestions
from robota.core.bus import EventBus
from robota.core.context import ContextWindowState
from robota.core.errors import RobotaError
from robota.core.events import (
    EVENT_TYPES,
    AnyTurnEvent,
    ContextUpdated,
    ModelChanged,
    Noticed,
    PromptQueued,
    PromptSteered,
    QuestionAsked,
    QuestionClosed,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    TextDelta,
    ToolEnded,
    ToolStarted,
    TurnEvent,
)
from robota.core.jsontext import decode
from robota.core.messages import JsonObject, TokenUsage
from robota.http.sse import ServerSentEvent
from robota.sdk.execution import ExecutionResult
from robota.sdk.listeners import Listeners
from robota.sdk.session_facts import SessionDetails
from robota.sdk.timeline import summarize

logger = logging.getLogger(__name__)
_EVENT = msgspec.json.Decoder(AnyTurnEvent)
_TOLD: dict[type[TurnEvent], str] = {
    TextDelta: "text_delta",
    ToolStarted: "tool_start",
    ToolEnded: "tool_end",
}
"""Events that listeners hear of by name, as text or as the state of a tool."""


class Feed:
    """The session as the events that have come so far show it."""

    def __init__(self, events: EventBus, questions: RemoteQuestions) -> None:
        self.events = events
        self.questions = questions
        self.listeners = Listeners(events)
        self.history = RemoteHistory()
        self.details = SessionDetails(id="")
        self.context: ContextWindowState | None = None
        self.provider = ""
        self.waiting: dict[str, asyncio.Future[ExecutionResult[object]]] = {}
        """Prompts of ours that have not ended, by their ids."""
        self._completed = RunCompleted()

    def begin(self, details: SessionDetails, history: list[JsonObject]) -> None:
        """Where the stream goes on from."""
        self.details = details
        self.history.load(history)
        self.events.seq = details.last_event
        for question in details.questions:
            self.questions.asked(question)

    def take(self, frame: ServerSentEvent) -> None:
        if frame.event in EVENT_TYPES:
            try:
                self._hear(_EVENT.decode(frame.data))
            except msgspec.ValidationError:  # a host that is newer than we are
                logger.warning("An event %r of the host is not understood.", frame.event)
        elif frame.event == "submit_end":
            self._end(decode(frame.data))
        elif frame.event == "session_changed":
            told = decode(frame.data)
            self._change(
                name=told.get("name"), model=told.get("model"), permission_mode=told.get("permissionMode")
            )

    def _hear(self, event: TurnEvent) -> None:
        self.events.seq = max(self.events.seq, event.seq)
        state = self.history.take(event)
        name = _TOLD.get(type(event))
        if name is not None:
            self.listeners.emit(name, event.text if isinstance(event, TextDelta) else state)
        else:
            self._note(event)
        self.events.emit(event)

    def _note(self, event: TurnEvent) -> None:
        """What changes of the session, where it is not what it says or does."""
        match event:
            case RunStarted():
                self._change(executing=True, pending=None)
                self.listeners.emit("thinking", True)
            case RunCompleted() | RunFailed() | RunInterrupted():
                self._change(executing=False)
                self._completed = event if isinstance(event, RunCompleted) else RunCompleted()
            case PromptQueued(prompt=prompt):
                self._change(pending=prompt)
            case PromptSteered():
                self._change(pending=None)
            case ModelChanged():
                self._change(model=event.model)
                self.provider = event.provider
            case QuestionAsked(question=question):
                self.questions.asked(question)
            case QuestionClosed(id=id):
                self.questions.closed(id)
            case ContextUpdated():
                shown = ContextWindowState.__struct_fields__
                self.context = ContextWindowState(**{name: getattr(event, name) for name in shown})

    def _change(self, **fields: Any) -> None:
        self.details = replace(self.details, **fields)

    def notice(self, words: str) -> None:
        """Something that the user should know, from here and not from the host."""
        self.events.emit(Noticed(words, seq=self.events.seq))

    def fail(self, error: RobotaError) -> None:
        """Nothing more will come: whoever waits hears why."""
        self.notice(str(error))
        waiting, self.waiting = self.waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_result(ExecutionResult(error=error))

    def _end(self, told: JsonObject) -> None:
        """A prompt has ended, ours or that of another client."""
        result = self._describe(told)
        self._change(pending=None)
        if result.error is not None:
            self.listeners.emit("error", result.error)
        else:
            self.listeners.emit("interrupted" if result.interrupted else "complete", result)
        self.listeners.emit("thinking", False)
        waiting = self.waiting.pop(str(told.get("submitId")), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(result)

    def _describe(self, told: JsonObject) -> ExecutionResult[object]:
        command = told.get("command")
        error, interrupted, ran = told.get("error"), bool(told.get("interrupted")), command is None
        return ExecutionResult(
            text=str(told.get("text") or ""),
            error=None if error is None else RemoteSessionError(str(error)),
            interrupted=interrupted,
            usage=self._completed.usage if ran else TokenUsage(),
            rounds=self._completed.rounds if ran else 0,
            stop_reason="aborted" if interrupted else self._completed.stop_reason,
            tool_summaries=summarize(self.history.calls) if ran else (),
            context_state=self.context,
            history=tuple(self.history.entries),
            command=None if command is None else read_answer_of_command(command),
        )
