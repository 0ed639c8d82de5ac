"""The agent loop: ask the model, run the tools it wants, ask again, until it answers or a guard says stop.

Read it from `Loop.run`; a run that a crash has cut begins with `resume` in the place of `start`. History is
changed only between two awaits, so a cancellation at any await leaves a conversation that the next request
can carry on with: what was streamed is committed, every call has a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robota.core.context import (
    CONTEXT_HARD_BLOCK_THRESHOLD,
    TOOL_RESULT_BUDGET_THRESHOLD,
    ContextEstimate,
)
from robota.core.errors import (
    PluginError,
    ProviderError,
    RobotaError,
    StructuredOutputError,
    ValidationError,
    from_unknown,
)
from robota.core.events import (
    Noticed,
    PromptSteered,
    ProviderNativeRawPayload,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
)
from robota.core.messages import (
    AssistantMessage,
    Json,
    Message,
    Prompt,
    SystemMessage,
    UserMessage,
    add_words,
    prompt_text,
    stands,
    user_message,
)
from robota.core.model_call import ModelCall
from robota.core.models import describe_unknown_model, is_known_model
from robota.core.plugin import Refusal
from robota.core.provider import (
    ChatRequest,
    ModelSettings,
    NativeWebTools,
    ToolSchema,
)
from robota.core.recorder import Recorder
from robota.core.reply import Reply
from robota.core.run import CutRun, RunResult, RunState, RunSteps, StopRun
from robota.core.tool import Toolset
from robota.core.tool_round import ToolRound

if TYPE_CHECKING:
    from robota.core.robota import ModelChoice, Robota
    from robota.core.run_task import RunTask
    from robota.core.structured import OutputType

FALLBACK_ANSWER = "Maximum rounds reached. Partial results available in conversation history."
GO_ON = "The session was interrupted in the middle of your answer. Go on where it stopped."
RETRY_TEMPLATE = (
    "Your answer does not have the required form: {problem}\n"
    "Answer again with nothing but the corrected JSON, without a code fence."
)
RETRIES_ARE_OVER = " retries: "
"""Behind it an error says what was wrong with the last answer."""
NO_TOOLS = Toolset()


class Loop:
    """One run of an agent, from its prompt to its closing event."""

    __slots__ = (
        "_unsubscribe", "agent", "control", "error", "finished", "output", "recorder", "settings", "state",
        "tries_left", "wanted",
    )  # fmt: skip

    control: RunTask
    """Set by whoever starts the task that `run` happens in."""

    def __init__(
        self,
        agent: Robota,
        *,
        max_rounds: int = 0,
        settings: ModelSettings | None = None,
        state: RunState | None = None,
    ) -> None:
        """`state` is that of a run to go on with."""
        self.agent = agent
        self.settings = settings
        """How the models of this run should answer, if not as the agent says."""
        self.recorder = Recorder(agent, "" if state is None else state.execution_id)
        self.state = state or RunState(execution_id=self.recorder.execution_id, max_rounds=max_rounds)
        self.state.max_identical_failures = agent.limits.max_identical_failures
        self.error: RobotaError | None = None
        self.finished = False
        """False while a cancellation is on its way out: then the run counts as interrupted."""
        self.wanted: OutputType | None = None
        """The type that the answer must have."""
        self.tries_left = 0
        """How often the model may correct an answer that does not have it."""
        self.output: Any = None
        self._unsubscribe = self.recorder.plugins.watch(agent)

    async def run(self, prompt: Prompt, cut: CutRun | None = None) -> None:
        """Rounds until an answer, an error or a guard; a run without an answer ends with a summary. With
        `cut` it goes on where a crash has cut it.

        Whatever happens, a valid conversation and exactly one closing event are left.
        """
        agent, state, steps = self.agent, self.state, self.agent.config.steps
        try:
            going = await (self.start(prompt) if cut is None else resume(self, cut))
            while going:
                self.control.check()
                self.recorder.round = state.rounds + 1
                if steps is not None and (news := await steps.before_round(state)):
                    self.add(news)
                instruction = state.instruction  # now: new words may lift what a guard has decided
                using, toolset = agent.using, agent.toolset if instruction is None else NO_TOOLS
                if self.is_over_capacity(using):
                    going = await self.goes_on()
                    continue
                call = ModelCall(self, using, self.build_request(using, toolset, instruction))
                reply = await call.run(summing_up=instruction is not None)
                if reply.pending.calls and reply.message is not None:
                    truncated = reply.stop == "max_tokens"
                    tools = ToolRound(self, reply.message.tool_calls, toolset, truncated=truncated)
                    await tools.run(int(using.window * TOOL_RESULT_BUDGET_THRESHOLD))
                elif self.is_answered(reply, instruction):
                    going = await self.goes_on()
            self.finished = True
        except StopRun as stop:
            state.stop, self.finished = stop.reason, True
        except Exception as error:  # noqa: BLE001 - nothing recorded is lost, and the caller gets one kind of answer
            await self.fail(error)
            self.finished = True
        finally:
            self.settle()

    # --- the beginning ------------------------------------------------------------------------------------

    async def start(self, prompt: Prompt) -> bool:
        """Tell that the run begins and record its prompt; false if a plugin refuses it."""
        recorder = self.recorder
        recorder.tell(
            RunStarted,
            conversation_id=recorder.conversation_id,
            agent_name=self.agent.config.name,
            prompt=prompt_text(prompt),
            **find_display(self.agent.config.steps, prompt),
            max_rounds=self.state.max_rounds,
        )
        return await self.record_prompt(prompt)

    async def record_prompt(self, prompt: Prompt) -> bool:
        agent, recorder = self.agent, self.recorder
        if news := take_news(agent):
            recorder.tell(Noticed, message=news)
        await recorder.plugins.initialize(agent)
        verdict = await recorder.plugins.fold("before_run", prompt)
        if isinstance(verdict, Refusal):
            self.error = PluginError(f"The run was refused: {verdict.reason}", plugin_name=verdict.plugin)
            return False
        steps = agent.config.steps
        prompt = verdict if steps is None else await steps.start(verdict)
        known, system = recorder.conversation.system, agent.system_message
        if system is not None and not stands(known, system):
            recorder.record(SystemMessage(system, **recorder.identity()))
        if self.wanted is not None and self.wanted.must_be_told(agent.provider):
            prompt = add_words(prompt, self.wanted.instruction)
        display = find_display(steps, prompt)
        recorder.record(user_message(prompt, **recorder.identity(), metadata=display or None))
        return True

    # --- one round ----------------------------------------------------------------------------------------

    def add(self, messages: Sequence[Message]) -> bool:
        """Record what the model should know before it goes on; whether there was anything."""
        for message in messages:
            self.state.note_message(message)
            if message.metadata.get("origin") == "steering":
                self.recorder.tell(PromptSteered, prompt=message.content)
            self.recorder.record(message)
        return bool(messages)

    def is_over_capacity(self, using: ModelChoice) -> bool:
        """Refuse to send what cannot fit, with the figures that explain it."""
        recorder, state = self.recorder, self.state
        tally, floor = recorder.conversation.tally, state.last_usage.input_tokens
        if tally.tokens(floor) <= int(using.window * CONTEXT_HARD_BLOCK_THRESHOLD):
            return False
        answer, figures = explain_overflow(tally.estimate(floor), using.window)
        hint = self.agent.limits.capacity_hint
        recorder.say(f"{answer} {hint}", {**figures, "round": recorder.round}, state)
        return True

    def build_request(self, using: ModelChoice, toolset: Toolset, instruction: str | None) -> ChatRequest:
        """`instruction` is a last word of the user that belongs to this request alone; it is never stored."""
        conversation, recorder = self.recorder.conversation, self.recorder
        messages: Sequence[Message] = conversation.messages_for_api()
        if instruction is not None:
            messages = [*messages, UserMessage(instruction, **recorder.identity())]
        return ChatRequest(
            model=using.model,
            messages=messages,
            tools=leave_out_hosted(toolset.schemas, using.native_web_tools),
            settings=self.settings or using.settings,
            native_web_tools=using.native_web_tools,
            output_schema=None if self.wanted is None else self.wanted.schema,
            history=conversation.encoded if instruction is None else None,
            want_raw=recorder.events.wants(ProviderNativeRawPayload),
        )

    # --- the end ------------------------------------------------------------------------------------------

    def is_answered(self, reply: Reply, instruction: str | None) -> bool:
        """Whether a reply without calls ends the run, if nobody sends it on."""
        if instruction is not None:
            if reply.error is not None or reply.message is None or not reply.message.content.strip():
                rounds = self.state.ending == "max_rounds"
                words = None if rounds else self.state.explain_ending()
                self.recorder.say(words or FALLBACK_ANSWER, {"fallback": True}, self.state)
            return True
        self.error = reply.error or explain_silence(self, reply)
        return self.error is not None or (reply.message is not None and reply.stop != "pause")

    async def goes_on(self) -> bool:
        """Whether there is something the model has to answer: a correction, or what a session wants."""
        if self.wanted is not None and await self.must_correct(self.wanted):
            return True
        steps, state = self.agent.config.steps, self.state
        if steps is None:
            return False
        messages = await steps.before_end(state, self.error)
        if not messages or state.is_exhausted:
            return False
        self.error = None
        return self.add(messages)

    async def must_correct(self, wanted: OutputType) -> bool:
        """Check the answer against the wanted type; the model may correct itself a few times."""
        state = self.state
        if self.error is not None or state.stop == "context_overflow":
            return False
        try:
            self.output = wanted.parse(state.answer)
            return False
        except ValidationError as problem:
            if self.tries_left and not state.is_exhausted:
                self.tries_left -= 1
                words = RETRY_TEMPLATE.format(problem=problem)
                origin = {"origin": "engine"}
                return self.add([user_message(words, **self.recorder.identity(), metadata=origin)])
            self.error = StructuredOutputError(
                "The answer does not fit the requested type after "
                f"{wanted.retries - self.tries_left}{RETRIES_ARE_OVER}{problem}",
                text=state.answer,
            )
        await self.recorder.plugins.tell("on_error", self.error)
        return False

    async def fail(self, error: Exception) -> None:
        """Something broke that is neither a model nor a tool."""
        if not isinstance(error, RobotaError):
            import logging  # noqa: PLC0415 - only when the engine itself failed

            logging.getLogger("robota.engine").exception("The run failed inside the engine.")
        self.error = from_unknown(error)
        await self.recorder.plugins.tell("on_error", error)

    def settle(self) -> None:
        """A valid conversation and the closing event.

        Synchronous, because it must happen also while a cancellation is on its way out.
        """
        state, recorder, error = self.state, self.recorder, self.error
        recorder.conversation.discard_pending()
        recorder.answer_open_calls()
        if not self.finished:
            state.stop = "aborted"
            recorder.tell(RunInterrupted, text=state.answer)
        elif error is not None:
            if state.stop == "end_turn":
                state.stop = "error"
            recorder.tell(RunFailed, message=str(error), code=error.code, recoverable=error.recoverable)
        else:
            if words := state.explain_ending():
                recorder.tell(Noticed, message=words)
            recorder.tell(
                RunCompleted,
                text=state.answer,
                rounds=state.rounds,
                stop_reason=state.ending,
                usage=state.usage,
            )
        if self._unsubscribe is not None:
            self._unsubscribe()

    async def tell_plugins(self) -> None:
        """First what happened, then that it is over."""
        plugins = self.recorder.plugins
        await plugins.flush()
        await plugins.tell("after_run", self.result())

    def result(self) -> RunResult:
        state = self.state
        return RunResult(
            text=state.answer,
            execution_id=state.execution_id,
            interrupted=not self.finished,
            error=self.error,
            stop_reason=state.ending,
            rounds=state.rounds,
            usage=state.usage,
            tools_executed=tuple(state.tools_executed),
            parsed=self.output,
        )


async def resume(run: Loop, cut: CutRun) -> bool:
    """Do what is left of a round that a crash has cut; false if that was all."""
    agent, recorder = run.agent, run.recorder
    if cut.prompt is not None:
        return await run.record_prompt(cut.prompt)
    await recorder.plugins.initialize(agent)
    recorder.round = run.state.rounds
    timeline = recorder.conversation.timeline
    answer = next((each for each in reversed(timeline) if isinstance(each, AssistantMessage)), None)
    if answer is not None and recorder.conversation.open_calls:
        tools = ToolRound(run, answer.tool_calls, agent.toolset)
        tools.recall(cut)
        await tools.run(int(agent.using.window * TOOL_RESULT_BUDGET_THRESHOLD))
    elif answer is not None and answer is timeline[-1]:
        if answer.state == "complete":
            return await run.goes_on()
        run.add([user_message(GO_ON, **recorder.identity(), metadata={"origin": "engine"})])
    return True


def take_news(agent: Robota) -> str | None:
    """What the user should be told once: a window that is only assumed."""
    model = agent.model
    if not model or agent.noticed == model or agent.using.context_window or is_known_model(model):
        return None
    agent.noticed = model
    return describe_unknown_model(model)


def leave_out_hosted(tools: tuple[ToolSchema, ...], hosted: NativeWebTools | None) -> tuple[ToolSchema, ...]:
    """Without our web search where the model's service has one: a model that sees two takes either."""
    if hosted is None or not hosted.web_search:
        return tools
    return tuple(tool for tool in tools if tool.name != "WebSearch")


def explain_silence(run: Loop, reply: Reply) -> ProviderError | None:
    """Say why there is no answer, if asking once more would not change it."""
    why = None if reply.message is not None else run.state.explain_silence(reply.stop_detail)
    if why is None:
        return None
    error = ProviderError(why, provider=run.agent.provider.name)
    run.recorder.say(f"[{why}]", {"providerError": error.code}, run.state)
    return error


def find_display(steps: RunSteps | None, prompt: Prompt) -> dict[str, str]:
    """What front ends show in the place of a prompt, as `display`; nothing for the prompt itself."""
    shown = None if steps is None else steps.shown
    if shown is None or shown == prompt or shown == prompt_text(prompt):
        return {}
    return {"display": shown}


def explain_overflow(estimate: ContextEstimate, window: int) -> tuple[str, dict[str, Json]]:
    """Why a conversation is not sent, in words and in figures."""
    percent = round(estimate.tokens / window * 100, 1)
    answer = (
        f"The conversation is too long for the model: about {estimate.tokens:,} of {window:,} tokens "
        f"({percent:g}%), and nothing is sent above {CONTEXT_HARD_BLOCK_THRESHOLD:.0%}."
    )
    return answer, {
        "contextOverflow": True,
        "estimatedTokens": estimate.tokens,
        "contextLimit": window,
        "thresholdTokens": int(window * CONTEXT_HARD_BLOCK_THRESHOLD),
        "thresholdPercentage": CONTEXT_HARD_BLOCK_THRESHOLD * 100,
        "serializedTokens": estimate.serialized_tokens,
        "providerTokens": estimate.provider_tokens,
        "usageFloorTokens": estimate.usage_floor_tokens,
        "usedPercentage": percent,
    }
