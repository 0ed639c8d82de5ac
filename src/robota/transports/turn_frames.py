"""The events of a session as frames, while they happen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from robota.core.context import read_token_usage
from robota.core.events import (
    BackgroundTaskChanged,
    Compacted,
    Event,
    HistoryMutation,
    HookExecuted,
    Noticed,
    ProviderRequest,
    ProviderResponseRaw,
    ProviderRetried,
    ReasoningDelta,
    SubagentEvent,
    TextDelta,
    ToolEnded,
    ToolInputDelta,
    ToolStarted,
)
from robota.core.messages import AssistantMessage, JsonObject, TokenUsage, ToolMessage, UserMessage
from robota.core.tool_call import INTERRUPTED_CALL, NOT_STARTED
from robota.transports.blocks import assistant_blocks, part_blocks, result_block, usage_fields
from robota.transports.partial import PartialMessage
from robota.transports.side_frames import describe_hook, describe_task, nested_frame

if TYPE_CHECKING:
    from robota.core.bus import Unsubscribe
    from robota.sdk.interactive import InteractiveSession

_ERRORS = {
    "AUTHENTICATION_ERROR": "authentication_failed",
    "RATE_LIMIT_ERROR": "rate_limit",
    "MODEL_NOT_AVAILABLE": "invalid_request",
}
_STATUSES = {
    401: "authentication_failed",
    402: "billing_error",
    403: "authentication_failed",
    429: "rate_limit",
}
"""What kept a model from answering, as clients know it."""
_SERVER_FAILED = 500
SYNTHETIC = "<synthetic>"
"""The model of an answer that no model gave."""


class FrameOptions:
    """What a client wants to be told besides the messages."""

    __slots__ = ("hook_events", "partial", "replay", "subagent_text")

    def __init__(
        self,
        *,
        partial: bool = False,
        hook_events: bool = False,
        replay: bool = False,
        subagent_text: bool = False,
    ) -> None:
        self.partial = partial
        """Answers piece by piece."""
        self.hook_events = hook_events
        self.replay = replay
        """The client's own prompts."""
        self.subagent_text = subagent_text


class TurnFrames:
    """Follows one session. What a turn came to is counted here too, for its result."""

    def __init__(
        self, session: InteractiveSession, send: Callable[[JsonObject], None], options: FrameOptions
    ) -> None:
        self._session = session
        self._send = send
        self._options = options
        self._answer: PartialMessage | None = None
        self._spawned: dict[str, str] = {}
        """Subagent -> the call that began it."""
        self._asked_at = 0.0
        self.prompt_uuid = ""
        """What the client calls the prompt under way."""
        self.is_open = False
        """A turn is under way."""
        self.prompt_ids: dict[str, str] = {}
        """Prompts as clients know them -> the messages that they became."""
        self.api_seconds = 0.0
        """Time that models took, over the whole session."""
        self.on_result: Callable[[ToolEnded], None] = lambda event: None
        """Told of every call that has ended, those of subagents too."""
        self.begin()

    def begin(self, prompt_uuid: str = "") -> None:
        """Another turn."""
        self.prompt_uuid = prompt_uuid
        self.is_open = True
        self.denials: list[JsonObject] = []
        self.running: dict[str, ToolStarted] = {}
        """Calls that have not ended."""
        self.last_stop: str | None = None
        self.was_in_tools = False
        """A call was cut off."""
        self._abandon()

    def follow(self) -> Unsubscribe:
        """Listen until the function that this returns is called."""
        events = self._session.events
        stops = [
            events.on(kind, self._hear)
            for kind in _HANDLERS
            if kind is not HookExecuted or self._options.hook_events
        ]

        def stop() -> None:
            for each in stops:
                each()

        return stop

    def end(self) -> None:
        """The turn is over."""
        self.is_open = False
        self._abandon()

    def send(self, frame: JsonObject) -> None:
        self._send(
            {**frame, "session_id": self._session.session_id, "uuid": frame.get("uuid") or _new_uuid()}
        )

    @property
    def _model(self) -> str:
        """Clients insist on a name; where the provider chooses the model, it is the provider's."""
        session = self._session.session
        return session.model or session.agent.provider.name

    def _hear(self, event: Event) -> None:
        _HANDLERS[type(event)](self, event)

    # --- the answer ---------------------------------------------------------------------------------------

    def hear_request(self, event: ProviderRequest) -> None:
        self._asked_at = time.monotonic()
        self._abandon()
        self._answer = PartialMessage(self._send_partial, event.model or self._model)

    def hear_response(self, event: ProviderResponseRaw) -> None:
        self.api_seconds += time.monotonic() - self._asked_at

    def hear_text(self, event: TextDelta) -> None:
        if self._answer is not None and event.sequence and event.text:
            self._answer.add_text(event.text)

    def hear_thinking(self, event: ReasoningDelta) -> None:
        if self._answer is not None and event.text:
            self._answer.add_thinking(event.text)

    def hear_input(self, event: ToolInputDelta) -> None:
        if self._answer is not None:
            self._answer.add_input(event.index, event.tool_call_id, event.tool_name, event.delta)

    def _send_partial(self, event: JsonObject) -> None:
        if self._options.partial:
            self.send({"type": "stream_event", "event": event, "parent_tool_use_id": None})

    def _abandon(self) -> None:
        if self._answer is not None:
            self._answer.abandon()
        self._answer = None

    # --- messages -----------------------------------------------------------------------------------------

    def hear_message(self, event: HistoryMutation) -> None:
        if not event.execution_id:
            return  # outside a run: what a session that goes on from another takes along
        match event.message:
            case AssistantMessage() as message:
                self._tell_answer(message)
            case ToolMessage() as message:
                blocks = [result_block(message)]
                self.send(_user_frame(blocks) | {"uuid": message.id})
            case UserMessage() as message:
                self._tell_prompt(message)

    def _tell_answer(self, message: AssistantMessage) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            answer = PartialMessage(lambda event: None, self._model)
        usage, facts = read_token_usage(message) or TokenUsage(), message.metadata
        self.last_stop = facts.get("stopReason")
        told: JsonObject = {
            "id": answer.id,
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_fields(usage),
        }
        frame: JsonObject = {"type": "assistant", "parent_tool_use_id": None}
        if failure := facts.get("providerError"):
            frame["error"] = _ERRORS.get(failure) or _name_error(facts.get("providerStatus"))
            told["model"] = answer.model if facts.get("incomplete") else SYNTHETIC

        def tell() -> None:
            """A frame for each block, as clients know it: some look at the first block alone. The last has
            the name of the message. One that was cut off before its first word has none."""
            blocks = assistant_blocks(message)
            for block in blocks:
                name = {"uuid": message.id} if block is blocks[-1] else {}
                self.send(frame | name | {"message": told | {"content": [block]}})

        answer.finish(message, usage, tell)

    def _tell_prompt(self, message: UserMessage) -> None:
        """A prompt is repeated where that is wanted; what others said in the user's place always is told."""
        origin = message.metadata.get("origin")
        frame = _user_frame(part_blocks(message.parts) if message.parts else message.content)
        if origin is None and not message.metadata.get("continues"):
            self.prompt_ids[self.prompt_uuid or message.id] = message.id
            if self._options.replay:
                self.send(frame | {"isReplay": True, "uuid": self.prompt_uuid or message.id})
        else:
            self.send(frame | {"isSynthetic": True, "uuid": message.id})

    # --- tools --------------------------------------------------------------------------------------------

    def hear_tool(self, event: ToolStarted) -> None:
        self.running[event.call_id] = event

    def hear_result(self, event: ToolEnded) -> None:
        self.running.pop(event.call_id, None)
        self.was_in_tools = self.was_in_tools or event.error_code in (INTERRUPTED_CALL, NOT_STARTED)
        if event.outcome == "denied":
            self.denials.append(
                {
                    "tool_name": event.tool_name,
                    "tool_use_id": event.tool_call_id,
                    "tool_input": dict(event.arguments),
                }
            )
        self.on_result(event)

    # --- what goes on beside it ---------------------------------------------------------------------------

    def hear_subagent(self, event: SubagentEvent) -> None:
        parent = self._spawned.get(event.agent_id) or self._find_parent(event)
        frame = nested_frame(event.inner, self._model, text=self._options.subagent_text)
        if frame is not None:
            self.send({**frame, "parent_tool_use_id": parent or event.agent_id})
        if isinstance(event.inner, ToolStarted):
            self.hear_tool(event.inner)
        elif isinstance(event.inner, ToolEnded):
            self.hear_result(event.inner)

    def _find_parent(self, event: SubagentEvent) -> str:
        """The call that began a subagent: the one whose task it was given, and that has none yet."""
        prompt = getattr(event.inner, "prompt", None)
        known = set(self._spawned.values())
        for call in self.running.values():
            if call.arguments.get("prompt") == prompt and call.tool_call_id not in known:
                self._spawned[event.agent_id] = call.tool_call_id
                return call.tool_call_id
        return ""

    def hear_task(self, event: BackgroundTaskChanged) -> None:
        for frame in describe_task(event):
            self.send({"type": "system", **frame})

    def hear_hook(self, event: HookExecuted) -> None:
        for frame in describe_hook(event.data):
            self.send({"type": "system", **frame})

    def hear_retry(self, event: ProviderRetried) -> None:
        self.send(
            {
                "type": "system",
                "subtype": "api_retry",
                "attempt": event.attempt - 1,
                "max_retries": event.max_attempts - 1,
                "retry_delay_ms": round(event.delay * 1000),
                "error_status": event.status,
                "error": _name_error(event.status),
                "message": event.message,
            }
        )

    def hear_compaction(self, event: Compacted) -> None:
        before = event.before if isinstance(event.before, dict) else {}
        told = {"trigger": event.trigger, "pre_tokens": before.get("usedTokens", 0)}
        self.send({"type": "system", "subtype": "compact_boundary", "compact_metadata": told})

    def hear_notice(self, event: Noticed) -> None:
        self.tell(event.message)

    def tell(self, words: str) -> None:
        """Something that the user of the client should know."""
        self.send({"type": "system", "subtype": "informational", "content": words, "level": "warning"})


def _name_error(status: int | None) -> str:
    if status is None:
        return "unknown"
    return _STATUSES.get(status, "server_error" if status >= _SERVER_FAILED else "invalid_request")


def _user_frame(content: Any) -> JsonObject:
    return {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}


def _new_uuid() -> str:
    return str(uuid4())


_HANDLERS: dict[type[Event], Callable[[Any, Any], None]] = {
    ProviderRequest: TurnFrames.hear_request,
    ProviderResponseRaw: TurnFrames.hear_response,
    TextDelta: TurnFrames.hear_text,
    ReasoningDelta: TurnFrames.hear_thinking,
    ToolInputDelta: TurnFrames.hear_input,
    HistoryMutation: TurnFrames.hear_message,
    ToolStarted: TurnFrames.hear_tool,
    ToolEnded: TurnFrames.hear_result,
    SubagentEvent: TurnFrames.hear_subagent,
    BackgroundTaskChanged: TurnFrames.hear_task,
    HookExecuted: TurnFrames.hear_hook,
    ProviderRetried: TurnFrames.hear_retry,
    Compacted: TurnFrames.hear_compaction,
    Noticed: TurnFrames.hear_notice,
}
