"""The agent loop: ask the model, run the tools it wants, ask again, until it answers or a guard says stop.

Read it from `Loop.run`. History is changed only between two awaits, so a cancellation at any await leaves a
conversation that the next request can carry on with: what was streamed is committed, every call has a result.
"""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.context import CONTEXT_HARD_BLOCK_THRESHOLD, TOOL_RESULT_BUDGET_THRESHOLD
from robota.core.engine import Engine, RunControl
from robota.core.errors import PluginError, RobotaError, wrap_provider_error
from robota.core.events import ProviderNativeRawPayload, ProviderRequest, TextDelta
from robota.core.messages import Json, Message, MessageState, StopReason, TokenUsage, UserMessage
from robota.core.model_call import ModelCall
from robota.core.plugin import Refusal
from robota.core.provider import ChatRequest, ModelSettings, ToolSchema
from robota.core.recorder import Recorder
from robota.core.reply import Reply
from robota.core.tool_round import RoundGuard, ToolRound

FALLBACK_ANSWER = "Maximum rounds reached. Partial results available in conversation history."
ROUND_SEPARATOR = "\n\n"
ORDINARY = ModelSettings()
ROUND_LIMIT_INSTRUCTION = (
    "You have used all rounds of this run, and no more tools can be called. Answer now from what you have so "
    "far, say what remains to be done, and mention that the user can follow up."
)

EMPTY_REPLY_INSTRUCTION = (
    "Your last two replies were empty. Answer now in words, without tools: say what you found, and what "
    "keeps you from going on."
)


class Loop:
    """One run of an agent; it may be continued by calling `run` again."""

    __slots__ = (
        "answer", "control", "engine", "error", "last_usage", "max_rounds", "output_schema", "recorder",
        "rounds", "stop", "tools_executed", "usage",
    )  # fmt: skip

    def __init__(
        self, recorder: Recorder, control: RunControl, *, max_rounds: int, output_schema: Json = None
    ) -> None:
        self.recorder = recorder
        self.engine: Engine = recorder.engine
        self.control = control
        self.max_rounds = max_rounds
        self.output_schema = output_schema
        self.rounds = 0
        self.usage = TokenUsage()
        self.last_usage = TokenUsage()
        self.answer = ""
        self.stop: StopReason = "end_turn"
        self.error: RobotaError | None = None
        self.tools_executed: list[str] = []

    async def run(self) -> None:
        """Rounds until an answer, an error or a guard; a run without an answer ends with a forced summary."""
        guard = RoundGuard(self.engine.max_identical_failures)
        verdict: str | None = None
        was_empty = False
        while not self.max_rounds or self.rounds < self.max_rounds:
            await self.control.checkpoint()
            self.rounds += 1
            self.recorder.round = self.rounds
            if self.is_over_capacity():
                return
            reply = await self.ask_model(self.engine.schemas)
            if reply.error is not None:
                self.error = reply.error
                return
            if reply.calls:
                verdict = guard.watch(await self.run_tools(reply))
                if verdict is not None:
                    break
            elif reply.message is not None and reply.stop != "pause":
                return
            elif reply.message is None and was_empty:
                verdict = EMPTY_REPLY_INSTRUCTION
                break
            was_empty = reply.message is None
        await self.force_summary(verdict or ROUND_LIMIT_INSTRUCTION)

    async def ask_model(self, tools: Sequence[ToolSchema], instruction: str | None = None) -> Reply:
        """One model call. Whatever happens, what arrived is in the conversation when this returns or raises.

        `instruction` is a last word of the user that belongs to this request alone; it is never stored.
        """
        engine, recorder = self.engine, self.recorder
        call = ModelCall(recorder, self.control, self.build_request(tools, instruction))
        if await self.is_refused(call):
            return call.reply
        if recorder.round > 1:
            recorder.tell(TextDelta, text=ROUND_SEPARATOR, round=recorder.round)
        state: MessageState = "interrupted"
        engine.conversation.begin_assistant()
        try:
            call.settle_model()
            self.log_request(call)
            await call.read()
            state = "complete"
        except Exception as error:  # noqa: BLE001 - a provider is foreign code; its failure is the run's result
            call.reply.error, state = wrap_provider_error(error, call.provider.name), "complete"
        finally:
            call.commit(state, final=instruction is not None)
            self.account(call.reply)
        if call.reply.error is not None:
            await engine.plugins.tell("on_error", call.reply.error)
        if call.reply.message is not None:
            await engine.plugins.tell("after_provider_call", call.reply.message)
        await engine.plugins.flush()
        return call.reply

    async def run_tools(self, reply: Reply) -> ToolRound:
        """Run the calls of an answer; their results are in the conversation, in order, however this ends."""
        batch = ToolRound(self.recorder, self.control, reply)
        try:
            await batch.run()
        finally:
            budget = int(self.engine.context_window * TOOL_RESULT_BUDGET_THRESHOLD)
            self.tools_executed += batch.commit(budget, self.last_usage.input_tokens)
        await self.engine.plugins.flush()
        return batch

    async def force_summary(self, instruction: str) -> None:
        """One more call without tools, so that a run ends with words; a fixed sentence if even that fails."""
        await self.control.checkpoint()
        self.recorder.round = self.rounds + 1
        if self.is_over_capacity():
            return
        reply = await self.ask_model((), instruction)
        if reply.error is not None or reply.message is None or not reply.message.content.strip():
            self.answer = FALLBACK_ANSWER
            self.recorder.say(FALLBACK_ANSWER, {"fallback": True})

    def is_over_capacity(self) -> bool:
        """Refuse to send what cannot fit, with the figures that explain it."""
        engine = self.engine
        estimate = engine.conversation.tally.estimate(self.last_usage.input_tokens)
        limit = engine.context_window
        threshold = int(limit * CONTEXT_HARD_BLOCK_THRESHOLD)
        if estimate.tokens <= threshold:
            return False
        percent = round(estimate.tokens / limit * 100, 1)
        self.stop = "context_overflow"
        self.answer = (
            f"The conversation is too long for the model: about {estimate.tokens:,} of {limit:,} tokens "
            f"({percent:g}%), and nothing is sent above {CONTEXT_HARD_BLOCK_THRESHOLD:.0%}. "
            f"{engine.capacity_hint}"
        )
        figures: dict[str, Json] = {
            "contextOverflow": True,
            "estimatedTokens": estimate.tokens,
            "contextLimit": limit,
            "thresholdTokens": threshold,
            "thresholdPercentage": CONTEXT_HARD_BLOCK_THRESHOLD * 100,
            "serializedTokens": estimate.serialized_tokens,
            "providerTokens": estimate.provider_tokens,
            "usageFloorTokens": estimate.usage_floor_tokens,
            "usedPercentage": percent,
            "round": self.recorder.round,
        }
        self.recorder.say(self.answer, figures)
        return True

    def build_request(self, tools: Sequence[ToolSchema], instruction: str | None) -> ChatRequest:
        engine = self.engine
        messages: Sequence[Message] = engine.conversation.messages_for_api()
        if instruction is not None:
            messages = [*messages, UserMessage(instruction, **self.recorder.identity())]
        return ChatRequest(
            model=engine.model,
            messages=messages,
            tools=tuple(tools),
            settings=engine.settings,
            native_web_tools=engine.native_web_tools,
            output_schema=self.output_schema,
            history=engine.conversation.encoded if instruction is None else None,
            want_raw=engine.events.wants(ProviderNativeRawPayload),
        )

    async def is_refused(self, call: ModelCall) -> bool:
        """Whether a plugin forbids this model call; the reason then is the run's answer."""
        plugins = self.engine.plugins
        verdict = await plugins.fold("before_provider_call", call.request)
        if not isinstance(verdict, Refusal):
            return False
        call.reply.error = PluginError(f"The model was not called: {verdict.reason}")
        self.answer = f"[{call.reply.error}]"
        self.recorder.say(self.answer, {"providerError": call.reply.error.code})
        await plugins.tell("on_error", call.reply.error)
        return True

    def log_request(self, call: ModelCall) -> None:
        request = call.request
        self.recorder.log(
            ProviderRequest,
            provider=call.provider.name,
            model=request.model,
            messages=request.messages,
            tools=request.tools,
            options=None if request.settings == ORDINARY else request.settings,
        )

    def account(self, reply: Reply) -> None:
        if reply.usage is not None:
            self.usage, self.last_usage = self.usage + reply.usage, reply.usage
        if reply.message is not None:
            self.answer = reply.message.content
            self.stop = reply.stop or ("tool_use" if reply.calls else "end_turn")
