"""One call of the model: the stream read chunk by chunk, and the answer committed however it ended."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, get_args

from msgspec.structs import astuple, replace

from robota.core.engine import Engine, RunControl
from robota.core.errors import ProviderError
from robota.core.events import (
    AssistantMessageCommitted,
    ProviderNativeRawPayload,
    ProviderResponseNormalized,
    ProviderResponseRaw,
    ProviderRetried,
    ProviderStreamRawDelta,
    ReasoningDelta,
    ServerToolUsed,
    TextDelta,
    ToolInputDelta,
)
from robota.core.idle import IdleTimer
from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    MessageState,
    ReasoningBlock,
    StopReason,
    TokenUsage,
    ToolCall,
)
from robota.core.provider import (
    ChatRequest,
    MetadataChunk,
    NativePayload,
    ReasoningChunk,
    RetryNotice,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.core.recorder import Recorder
from robota.core.reply import Reply, open_stream, refuse_chunk

STOP_REASONS = frozenset(get_args(StopReason))


class ModelCall:
    """Reads one reply into the conversation's pending answer; `commit` makes it a message."""

    __slots__ = ("control", "engine", "provider", "recorder", "reply", "request")

    def __init__(self, recorder: Recorder, control: RunControl, request: ChatRequest) -> None:
        self.recorder = recorder
        self.engine: Engine = recorder.engine
        self.control = control
        self.provider = self.engine.provider
        """Belongs to the request: the engine may get another one while this call is under way."""
        self.request = request
        self.reply = Reply()

    def settle_model(self) -> None:
        """Ask whom the engine has now: a plugin or a listener may have exchanged the model for this call."""
        engine, request = self.engine, self.request
        self.provider = engine.provider
        if request.model != engine.model or request.native_web_tools is not engine.native_web_tools:
            self.request = replace(request, model=engine.model, native_web_tools=engine.native_web_tools)

    async def read(self) -> None:
        """Take the whole stream in. The one place where a silent provider is noticed."""
        try:
            await self.read_in_time(self.engine.idle_timeout, self.engine.total_timeout)
        except asyncio.CancelledError as error:
            if self.control.is_cancelled():
                raise
            name = self.provider.name
            raise ProviderError(f"Provider {name!r} was cancelled from within.", provider=name) from error

    async def read_in_time(self, idle: float | None, total: float | None) -> None:
        if idle is None and total is None:
            await self.accept_all(None)
            return
        task = asyncio.current_task()
        assert task is not None  # a run is under way
        before = task.cancelling()
        # The task itself is cancelled, not a scope around this: a scope is 0.6 KiB in every waiting session.
        silence = None if idle is None else IdleTimer(idle, task.cancel)
        whole = None if total is None else IdleTimer(total, task.cancel)  # nobody touches it
        timers = [timer for timer in (silence, whole) if timer is not None]
        try:
            await self.accept_all(silence)
        except asyncio.CancelledError:
            if not any(timer.fired for timer in timers):
                raise
        finally:
            for timer in timers:
                timer.cancel()
                if timer.fired:
                    task.uncancel()
        if any(timer.fired for timer in timers):
            if task.cancelling() > before:
                raise asyncio.CancelledError  # somebody else wants the same
            if silence is not None and silence.fired:
                raise self.late("idle", idle, "sent nothing")
            raise self.late("total", total, "was still answering")

    def late(self, kind: str, seconds: float | None, what: str) -> ProviderError:
        name = self.provider.name
        return ProviderError(
            f"Provider call {kind} timeout after {seconds:g}s: {name} {what}. "
            f"Try again, or raise the {kind} timeout.",
            provider=name,
        )

    async def accept_all(self, timer: IdleTimer | None) -> None:
        engine, control, reply = self.engine, self.control, self.reply
        emit, next_seq = engine.events.emit, engine.events.next_seq
        text = engine.conversation.begin_assistant().text
        watched = engine.plugins.has("on_stream_chunk")
        raw_deltas = engine.events.wants(ProviderStreamRawDelta)
        run, number = self.recorder.execution_id, self.recorder.round
        async with aclosing(open_stream(self.provider, self.request)) as chunks:
            async for chunk in chunks:
                # Written out, not delegated: this branch runs once per delta and is what a stream costs.
                if type(chunk) is TextChunk and type(chunk.text) is str:
                    reply.deltas = count = reply.deltas + 1
                    text.append(chunk.text)
                    emit(TextDelta(chunk.text, number, count, chunk.raw, execution_id=run, seq=next_seq()))
                    if raw_deltas:
                        self.recorder.log(ProviderStreamRawDelta, sequence=count, delta=chunk.text)
                    if watched:
                        await engine.plugins.tell("on_stream_chunk", chunk.text)
                else:
                    self.accept(chunk)
                if timer is not None:
                    timer.last = timer.now() + (chunk.delay if type(chunk) is RetryNotice else 0)
                if control.aborted:
                    await control.checkpoint()

    def accept(self, chunk: Any) -> None:
        """Everything in a stream that is not text."""
        take = _TAKE.get(type(chunk))
        if take is None:
            raise refuse_chunk(chunk, self.provider.name)
        take(self, chunk)

    def take_call(self, call: ToolCall) -> None:
        taken = self.reply.add_call(call, self.provider.name, self.recorder.spare_call_id)
        if taken is not None:
            self.engine.conversation.append_tool_call(taken)

    def take_input(self, chunk: ToolInputChunk) -> None:
        if not isinstance(chunk.delta, str):
            raise refuse_chunk(chunk, self.provider.name)
        events, recorder = self.engine.events, self.recorder
        seq = events.next_seq()
        if events.wants(ToolInputDelta):
            events.emit(
                ToolInputDelta(
                    index=chunk.index,
                    tool_call_id=chunk.id,
                    tool_name=chunk.name,
                    delta=chunk.delta,
                    round=recorder.round,
                    execution_id=recorder.execution_id,
                    seq=seq,
                )
            )

    def take_thought(self, chunk: ReasoningChunk) -> None:
        if not isinstance(chunk.text, str):
            raise refuse_chunk(chunk, self.provider.name)
        self.recorder.tell(ReasoningDelta, text=chunk.text, round=self.recorder.round)

    def take_reasoning(self, block: ReasoningBlock) -> None:
        self.require_json(block, block.data)
        self.engine.conversation.append_reasoning(block)

    def take_usage(self, usage: TokenUsage) -> None:
        if not all(isinstance(count, int) for count in astuple(usage)):
            raise refuse_chunk(usage, self.provider.name)
        self.reply.usage = usage

    def take_stop(self, chunk: StopChunk) -> None:
        known = chunk.reason in STOP_REASONS
        self.reply.stop = chunk.reason if known else "other"
        self.reply.stop_detail = chunk.detail or (None if known else str(chunk.reason))

    def take_metadata(self, chunk: MetadataChunk) -> None:
        self.require_json(chunk, chunk.values)
        self.reply.metadata.update(chunk.values)

    def require_json(self, chunk: Any, value: Any) -> None:
        """Refuse what no journal and no later request could carry, where it comes in."""
        try:
            encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise refuse_chunk(chunk, self.provider.name) from error

    def take_native(self, chunk: NativePayload) -> None:
        reply = self.reply
        sequence = reply.native + 1 if chunk.sequence is None else chunk.sequence
        reply.native = max(reply.native, sequence)
        events, recorder = self.engine.events, self.recorder
        if not events.wants(ProviderNativeRawPayload):
            return
        # Not through the recorder: it comes with every event of a stream.
        events.emit(
            ProviderNativeRawPayload(
                provider=self.provider.name,
                api_surface=chunk.api_surface,
                payload_kind=chunk.kind,
                payload=chunk.payload,
                metadata=chunk.metadata,
                sequence=sequence,
                execution_id=recorder.execution_id,
                seq=events.seq,
                conversation_id=self.engine.conversation_id,
                round=recorder.round,
            )
        )

    def take_server_tool(self, chunk: ServerToolChunk) -> None:
        self.require_json(chunk, chunk.input)
        self.recorder.tell(ServerToolUsed, tool_name=chunk.name, input=chunk.input, round=self.recorder.round)

    def take_retry(self, chunk: RetryNotice) -> None:
        self.recorder.tell(
            ProviderRetried,
            attempt=chunk.attempt,
            max_attempts=chunk.max_attempts,
            delay=chunk.delay,
            message=chunk.message,
            round=self.recorder.round,
        )

    def commit(self, state: MessageState, *, final: bool) -> None:
        """Put the answer into the conversation: synchronous, so it cannot be left half-way.

        `final`: the forced summary, whose calls never run and whose failure is not worth a message.
        """
        reply, store = self.reply, self.engine.conversation
        pending = store.begin_assistant()
        if state == "interrupted":
            reply.stop = "aborted"
        elif final or reply.error is not None:
            reply.calls.clear()  # the calls of an answer that was cut are never run
            pending.calls.clear()
        if reply.error is not None:
            reply.explain_failure(pending.text, aloud=not final)
        if reply.stop in ("refusal", "content_filter") and not any(pending.text):
            pending.text.append(f"The model declined to answer ({reply.stop_detail or reply.stop}).")
        if state == "complete" and not any(pending.text) and not pending.calls and reply.stop != "pause":
            store.discard_pending()
            if self.engine.events.wants(ProviderResponseRaw):
                nothing = AssistantMessage(
                    "", metadata=reply.committed_metadata(), **self.recorder.identity()
                )
                self.log_response(nothing, kept=False)
            return
        message = reply.message = store.commit_assistant(state, reply.committed_metadata())
        if message is not None:
            self.log_response(message, kept=True)
            self.recorder.log(AssistantMessageCommitted, message=message)
            self.recorder.announce(message)

    def log_response(self, message: AssistantMessage, *, kept: bool) -> None:
        error = self.reply.error
        failure = None if error is None else {"code": error.code, "message": str(error)}
        self.recorder.log(ProviderResponseRaw, response=message, kept=kept, error=failure)
        calls = len(message.tool_calls)
        self.recorder.log(ProviderResponseNormalized, response=message, tool_calls_count=calls)


_TAKE: dict[type, Any] = {
    ToolCall: ModelCall.take_call,
    ToolInputChunk: ModelCall.take_input,
    ReasoningChunk: ModelCall.take_thought,
    ReasoningBlock: ModelCall.take_reasoning,
    TokenUsage: ModelCall.take_usage,
    StopChunk: ModelCall.take_stop,
    MetadataChunk: ModelCall.take_metadata,
    NativePayload: ModelCall.take_native,
    ServerToolChunk: ModelCall.take_server_tool,
    RetryNotice: ModelCall.take_retry,
}
