"""One prompt of one agent, from the user's words to the result."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from robota.core.engine import Engine, RunControl
from robota.core.errors import PluginError, RobotaError, StructuredOutputError, ValidationError, from_unknown
from robota.core.event_names import owner_path, plugin_events
from robota.core.events import Noticed, RunCompleted, RunFailed, RunInterrupted, RunStarted, TurnEvent
from robota.core.loop import Loop
from robota.core.messages import Prompt, StopReason, SystemMessage, TextPart, TokenUsage, user_message
from robota.core.plugin import Refusal
from robota.core.provider import get_provider_capabilities
from robota.core.recorder import Recorder


class RunResult(Struct, frozen=True, kw_only=True):
    """How a run ended. `text` is the last answer, also when it was cut."""

    text: str
    execution_id: str
    interrupted: bool = False
    error: RobotaError | None = None
    stop_reason: StopReason = "end_turn"
    rounds: int = 0
    usage: TokenUsage = TokenUsage()
    """The sum over the run's model calls."""
    tools_executed: tuple[str, ...] = ()
    output: Any = None
    """The validated value when `run(output=…)` asked for one."""

    @property
    def success(self) -> bool:
        return self.error is None and not self.interrupted


class OutputRequest:
    """The type an answer must have, and how often the model may try."""

    def __init__(self, kind: Any, retries: int) -> None:
        from robota.core.structured import OutputType  # noqa: PLC0415 - for the runs that ask for a type

        self.type = OutputType(kind)
        self.retries = retries


class Turn:
    __slots__ = ("_unsubscribe", "engine", "finished", "interrupted", "loop", "output", "recorder", "wanted")

    def __init__(
        self, engine: Engine, control: RunControl, max_rounds: int, wanted: OutputRequest | None
    ) -> None:
        self.engine = engine
        self.wanted = wanted
        self.interrupted = False
        self.finished = False
        """False while an exception is on its way out: then the run counts as interrupted."""
        self.output: Any = None
        schema = None if wanted is None else wanted.type.schema
        self.recorder = Recorder(engine)
        self.loop = Loop(self.recorder, control, max_rounds=max_rounds, output_schema=schema)
        self._unsubscribe = self._watch_for_plugins()

    async def take(self, prompt: Prompt, system_message: str | None, news: str | None) -> None:
        """Record the prompt and run the loop. A failure of the engine itself is a result, too."""
        recorder, plugins = self.recorder, self.engine.plugins
        text = (
            prompt
            if isinstance(prompt, str)
            else "\n".join(p.text for p in prompt if isinstance(p, TextPart))
        )
        recorder.tell(
            RunStarted,
            conversation_id=self.engine.conversation_id,
            agent_name=self.engine.agent_name,
            prompt=text,
        )
        if news is not None:
            recorder.tell(Noticed, message=news)
        try:
            await plugins.initialize(self.engine.agent_name)
            verdict = await plugins.fold("before_run", prompt)
            if isinstance(verdict, Refusal):
                self.loop.error = PluginError(f"The run was refused: {verdict.reason}")
                return
            self.record_prompt(verdict, system_message)
            await self.loop.run()
            await self.take_output()
            if isinstance(self.loop.error, StructuredOutputError):
                await plugins.tell("on_error", self.loop.error)
        except Exception as error:  # noqa: BLE001 - nothing recorded is lost, and the caller gets one kind of answer
            self.note_failure(error)
            await plugins.tell("on_error", error)

    def record_prompt(self, prompt: Prompt, system_message: str | None) -> None:
        engine, recorder = self.engine, self.recorder
        known = engine.conversation.system
        if system_message is not None and (known is None or known.content != system_message):
            recorder.record(SystemMessage(system_message, **recorder.identity()))
        if self.wanted is not None and not get_provider_capabilities(engine.provider).output_schema:
            prompt = _with_words(prompt, self.wanted.type.instruction)
        recorder.record(user_message(prompt, **recorder.identity()))

    async def take_output(self) -> None:
        """Check the answer against the wanted type, and let the model correct itself a few times."""
        wanted, loop = self.wanted, self.loop
        if wanted is None:
            return
        from robota.core.structured import RETRY_TEMPLATE  # noqa: PLC0415 - for the runs that ask for a type

        for tries_left in range(wanted.retries, -1, -1):
            if loop.error is not None or loop.stop == "context_overflow":
                return
            try:
                self.output = wanted.type.parse(loop.answer)
                return
            except ValidationError as problem:
                if not tries_left or (loop.max_rounds and loop.rounds >= loop.max_rounds):
                    loop.error = StructuredOutputError(
                        f"The answer does not fit the requested type after {wanted.retries - tries_left} "
                        f"retries: {problem}",
                        text=loop.answer,
                    )
                    return
                words = RETRY_TEMPLATE.format(problem=problem)
            self.recorder.record(user_message(words, **self.recorder.identity()))
            await loop.run()

    def note_failure(self, error: Exception) -> None:
        import logging  # noqa: PLC0415 - only when the engine itself failed

        logging.getLogger("robota.engine").exception("The run failed inside the engine.")
        self.loop.error = from_unknown(error)

    def settle(self) -> None:
        """The end of the run, however it came: a valid conversation and exactly one closing event.

        Synchronous, because it must happen also while a cancellation is on its way out.
        """
        loop, recorder = self.loop, self.recorder
        self.engine.conversation.discard_pending()
        recorder.answer_open_calls()
        error = loop.error
        if self.interrupted or not self.finished:
            loop.stop = "aborted"
            recorder.tell(RunInterrupted, text=loop.answer)
        elif error is not None:
            recorder.tell(RunFailed, message=str(error), code=error.code, recoverable=error.recoverable)
        else:
            recorder.tell(
                RunCompleted, text=loop.answer, rounds=loop.rounds, stop_reason=loop.stop, usage=loop.usage
            )
        if self._unsubscribe is not None:
            self._unsubscribe()

    async def tell_plugins(self) -> None:
        plugins = self.engine.plugins
        await plugins.flush()  # first what happened, then that it is over
        await plugins.tell("after_run", self.result())

    def result(self) -> RunResult:
        loop = self.loop
        return RunResult(
            text=loop.answer,
            execution_id=self.recorder.execution_id,
            interrupted=self.interrupted,
            error=loop.error,
            stop_reason="error" if loop.error is not None and loop.stop == "end_turn" else loop.stop,
            rounds=loop.rounds,
            usage=loop.usage,
            tools_executed=tuple(loop.tools_executed),
            output=self.output,
        )

    def _watch_for_plugins(self) -> Any:
        """Named events for plugins: noted as they happen, delivered where the run may wait."""
        plugins = self.engine.plugins
        if not plugins.has("on_event"):
            return None

        def note(event: TurnEvent) -> None:
            for name in plugin_events(event):
                plugins.later("on_event", name, event, owner_path(event, self.engine.agent_id))

        return self.engine.events.subscribe(note)


def _with_words(prompt: Prompt, words: str) -> Prompt:
    if isinstance(prompt, str):
        return f"{prompt}\n\n{words}"
    return (*prompt, TextPart(words))
