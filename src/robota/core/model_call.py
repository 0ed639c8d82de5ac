"""One call of the model: the stream read chunk by chunk, and the answer committed however it ended."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, get_args

from msgspec.structs import asdict, astuple, replace

from robota.core.errors import PluginError, ProviderError, RobotaError, wrap_provider_error
from robota.core.events import (
    AssistantMessageCommitted,
    ProviderNativeRawPayload,
    ProviderRequest,
    ProviderResponseNormalized,
    ProviderResponseRaw,
    ProviderRetried,
    ProviderStreamRawDelta,
    ReasoningDelta,
    ServerToolUsed,
    TextDelta,
    ToolInputDelta,
)
from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    MessageState,
    ReasoningBlock,
    StopReason,
    TokenUsage,
    ToolCall,
)
from robota.core.plugin import Refusal
from robota.core.provider import (
    ChatRequest,
    MetadataChunk,
    ModelSettings,
    NativePayload,
    Provider,
    ReasoningChunk,
    RetryNotice,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.core.reply import Reply, open_stream, refuse_chunk
from robota.core.run_task import LateError, deadline

if TYPE_CHECKING:
    from robota.core.loop import Loop
    from robota.core.recorder import Recorder
    from robota.core.robota import ModelChoice, Robota
    from robota.core.run import RunState
    from robota.core.run_task import RunTask

ORDINARY = ModelSettings()
ROUND_SEPARATOR = "\n\n"
"""Stands between the words of two rounds, for those who watch; it is not part of the answer."""
STOP_REASONS = frozenset(get_args(StopReason))


class ModelCall:
    """Reads one reply into the conversation's pending answer and makes it a message."""

    __slots__ = ("agent", "control", "provider", "recorder", "reply", "request", "state", "using")

    def __init__(self, run: Loop, using: ModelChoice, request: ChatRequest) -> None:
        self.agent: Robota = run.agent
        self.recorder: Recorder = run.recorder
        self.control: RunTask = run.control
        self.state: RunState = run.state
        self.using = using
        self.provider = self.admit(using.provider)
        """Belongs to the request: the agent may get another one while this call is under way."""
        self.request = request
        self.reply = Reply()

    async def run(self, *, summing_up: bool) -> Reply:
        """Ask, and read the reply. Whatever happens, what arrived is in the conversation when this ends.

        `summing_up`: the last call of a run, whose calls never run and whose failure is not worth a message.
        """
        recorder, reply, control, limits = self.recorder, self.reply, self.control, self.agent.limits
        plugins, run, number = recorder.plugins, recorder.execution_id, recorder.round
        if plugins.plugins and await self.is_refused():
            return reply
        control.check()  # nothing may have been awaited since the last look
        emit, next_seq = recorder.events.emit, recorder.events.next_seq
        watched = plugins.has("on_stream_chunk") or recorder.events.wants(ProviderStreamRawDelta)
        reply.pending = recorder.conversation.begin_assistant()
        text = reply.pending.text
        outcome: MessageState = "interrupted"
        try:
            self.report_request(summing_up)
            async with (
                deadline(limits.idle_timeout, limits.total_timeout) as timer,
                aclosing(open_stream(self.provider, self.request)) as chunks,
            ):
                async for chunk in chunks:
                    # Written out, not delegated: this branch runs once per delta and is what a stream costs.
                    if type(chunk) is TextChunk and type(chunk.text) is str:
                        reply.deltas = count = reply.deltas + 1
                        text.append(chunk.text)
                        emit(
                            TextDelta(chunk.text, number, count, chunk.raw, execution_id=run, seq=next_seq())
                        )
                        if watched:
                            await self.tell_delta(chunk.text, count)
                    else:
                        self.accept(chunk)
                    if timer is not None and type(chunk) is not NativePayload:  # it may be a ping
                        timer.last = timer.now() + (chunk.delay if type(chunk) is RetryNotice else 0)
                    if control.aborted:
                        control.check()
            control.check()  # the stream has ended: nothing is awaited before the answer is in
            outcome = "complete"
        except (Exception, asyncio.CancelledError) as error:
            if control.is_stopping and isinstance(error, asyncio.CancelledError):
                raise
            reply.error, outcome = self.explain(error), "complete"
        finally:
            self.commit(outcome, summing_up)
        if plugins.plugins:
            await self.tell_plugins()
        return reply

    async def tell_delta(self, text: str, sequence: int) -> None:
        """For the few who want a delta otherwise than as its event."""
        self.recorder.log(ProviderStreamRawDelta, sequence=sequence, delta=text)
        await self.recorder.plugins.tell("on_stream_chunk", text)

    def settle_model(self) -> None:
        """Ask whom the agent has now: a plugin may have chosen another model for this very call."""
        using = self.agent.using
        if using is not self.using:
            self.using, self.provider = using, self.admit(using.provider)
            web = using.native_web_tools
            self.request = replace(self.request, model=using.model, native_web_tools=web)

    def admit(self, provider: Provider) -> Provider:
        admit = self.agent.config.admit
        return provider if admit is None else admit(provider)

    async def is_refused(self) -> bool:
        """Whether a plugin forbids this model call; the reason then is the run's answer."""
        recorder = self.recorder
        verdict = await recorder.plugins.fold("before_provider_call", self.request)
        if not isinstance(verdict, Refusal):
            self.settle_model()
            return False
        why = f"The model was not called: {verdict.reason}"
        error = self.reply.error = PluginError(why, plugin_name=verdict.plugin)
        recorder.say(f"[{error}]", {"providerError": error.code}, self.state)
        await recorder.plugins.tell("on_error", error)
        return True

    def report_request(self, summing_up: bool) -> None:
        recorder, request = self.recorder, self.request
        if recorder.round > 1:
            recorder.tell(TextDelta, text=ROUND_SEPARATOR, round=recorder.round)
        self.state.note_request(summing_up=summing_up)
        recorder.log(
            ProviderRequest,
            provider=self.provider.name,
            model=request.model,
            messages=request.messages,
            tools=request.tools,
            options=None if request.settings == ORDINARY else request.settings,
        )

    def explain(self, error: BaseException) -> RobotaError:
        """A failure of the provider as the error that the run reports."""
        name = self.provider.name
        if isinstance(error, LateError):
            return error.of(name)
        if isinstance(error, asyncio.CancelledError):
            return ProviderError(f"Provider {name!r} was cancelled from within.", provider=name)
        return wrap_provider_error(error, name)

    async def tell_plugins(self) -> None:
        plugins, reply = self.recorder.plugins, self.reply
        if reply.error is not None:
            await plugins.tell("on_error", reply.error)
        if reply.message is not None:
            await plugins.tell("after_provider_call", reply.message)
        await plugins.flush()

    def accept(self, chunk: Any) -> None:
        """Everything in a stream that is not text."""
        take = _TAKE.get(type(chunk))
        if take is None:
            raise refuse_chunk(chunk, self.provider.name)
        take(self, chunk)

    def take_call(self, call: ToolCall) -> None:
        self.reply.add_call(call, self.provider.name, self.recorder.spare_call_id)

    def take_input(self, chunk: ToolInputChunk) -> None:
        if not isinstance(chunk.delta, str):
            raise refuse_chunk(chunk, self.provider.name)
        events, recorder = self.recorder.events, self.recorder
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
        self.reply.pending.reasoning.append(block)

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
        events, recorder = self.recorder.events, self.recorder
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
                conversation_id=recorder.conversation_id,
                round=recorder.round,
            )
        )

    def take_server_tool(self, chunk: ServerToolChunk) -> None:
        self.require_json(chunk, chunk.input)
        self.recorder.tell(ServerToolUsed, tool_name=chunk.name, input=chunk.input, round=self.recorder.round)

    def take_retry(self, chunk: RetryNotice) -> None:
        self.recorder.tell(ProviderRetried, **asdict(chunk), round=self.recorder.round)

    def commit(self, outcome: MessageState, summing_up: bool) -> None:
        """Put the answer into the conversation: synchronous, so it cannot be left half-way."""
        reply, recorder, store = self.reply, self.recorder, self.recorder.conversation
        pending = reply.pending
        if outcome == "interrupted":
            reply.stop = "aborted"
        elif summing_up or reply.error is not None:
            pending.calls.clear()  # the calls of an answer that was cut are never run
        if reply.error is not None:
            reply.explain_failure(aloud=not summing_up)
        if reply.stop in ("refusal", "content_filter") and not any(pending.text):
            pending.text.append(f"The model declined to answer ({reply.stop_detail or reply.stop}).")
        said = any(pending.text) or pending.calls or reply.metadata.get("images") or reply.stop == "pause"
        if outcome == "complete" and not said:
            store.discard_pending()
            nothing = AssistantMessage("", metadata=reply.committed_metadata(), **recorder.identity())
            self.state.note_reply(nothing, kept=False)
            self.log_response(nothing, kept=False)
            return
        message = reply.message = store.commit_assistant(outcome, reply.committed_metadata())
        if message is not None:
            self.state.note_reply(message)
            self.log_response(message, kept=True)
            recorder.log(AssistantMessageCommitted, message=message)
            recorder.announce(message)

    def log_response(self, message: AssistantMessage, *, kept: bool) -> None:
        error = self.reply.error
        failure = None if error is None else {"code": error.code, "message": str(error)}
        model = self.request.model
        self.recorder.log(ProviderResponseRaw, response=message, model=model, kept=kept, error=failure)
        self.recorder.log(
            ProviderResponseNormalized, response=message, tool_calls_count=len(message.tool_calls)
        )


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
