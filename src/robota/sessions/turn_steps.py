"""What a session adds to each run of its agent, all of it between rounds: hooks, compaction, messages that
wait. A compaction that somebody asks for is made here too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from robota.core.context import BYTES_PER_TOKEN, CONTEXT_HARD_BLOCK_THRESHOLD
from robota.core.errors import (
    AbortError,
    ConfigurationError,
    PromptBlockedError,
    RobotaError,
    from_unknown,
)
from robota.core.events import ContextUpdated, PreRun
from robota.core.hooks import HookOutcome, as_context
from robota.core.messages import (
    Json,
    Message,
    Prompt,
    SystemMessage,
    TextPart,
    UserMessage,
    user_message,
)
from robota.core.ports import timestamp
from robota.core.run import StopRun
from robota.sessions.compaction.summarizer import CompactionError, is_context_overflow
from robota.sessions.description import describe_web_tools
from robota.sessions.hooks import failure_kind
from robota.sessions.journal.records import CompactRecord, ErrorRecord, InterruptedRecord
from robota.sessions.parts import make_compaction

if TYPE_CHECKING:
    from robota.core.run import RunState
    from robota.sessions.session import Session

MAX_CONTINUATIONS = 8
"""How often in a row Stop hooks may send the model on."""
CONTINUE_AFTER_COMPACTION = (
    "The conversation was summarised because it no longer fitted. "
    "Go on with the task where the summary leaves off."
)
NOT_SUMMARISED = "The conversation could not be summarised: "
_NO_TIME = timestamp(0)
"""Of messages that are only measured."""


class TurnSteps:
    """The `RunSteps` of a session."""

    __slots__ = (
        "_agent", "_enforcer", "_hooks", "_inbox", "_log", "_recovered_at", "_session", "_start_context",
        "_started", "_tracker", "aborts", "aborts_before", "shown", "source", "stopped_outside", "words",
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        self._session = session
        self._agent = session.agent
        self._log = session.log
        self._hooks = session.hooks
        self._enforcer = session.enforcer
        self._tracker = session.tracker
        self._inbox = session.inbox
        self.source = "resume" if len(session.agent.conversation) > 0 else "startup"
        """How the session came about, as `SessionStart` hooks are told."""
        self._started = False
        self._start_context: HookOutcome | None = None
        """What SessionStart hooks have to say to the model; the first prompt takes it along."""
        self._recovered_at = -2
        """The round in which the conversation was summarised because it was too long."""
        self.words = ""
        """What the user typed."""
        self.shown: str | None = None
        """What front ends show of it, if that may be other words than the model gets."""
        self.aborts = self.aborts_before = 0
        """All there were, and those before what is under way. Only ever counted up: a flag that is taken back
        when something begins would take an abort along that came just before."""
        self.stopped_outside: Callable[[], bool] | None = None
        """Whether a front end was told to stop, maybe before it has called the session."""

    @property
    def aborted(self) -> bool:
        outside = self.stopped_outside
        return self.aborts != self.aborts_before or (outside is not None and outside())

    # --- before the model ---------------------------------------------------------------------------------

    async def start(self, prompt: Prompt) -> Prompt:
        """Let hooks see the prompt, make room for it, and add what the hooks have to say."""
        self._enforcer.stop_requested = None
        self._recovered_at = -2
        said: list[HookOutcome] = []
        try:
            self._check_system_message()
            if not self._started:
                await self.begin()
            if self._tracker.should_auto_compact:
                await self._compact()
            if self._hooks.has("UserPromptSubmit"):
                said.append(await self._show_prompt())
        except Exception as error:
            await self._fire_failure(from_unknown(error))
            raise
        if self._start_context is not None:
            said.insert(0, self._start_context)
            self._start_context = None
        context = as_context(*said) if said else ""
        if context:
            prompt = context + prompt if isinstance(prompt, str) else (TextPart(context), *prompt)
        self._announce(prompt, context)
        return prompt

    async def _show_prompt(self) -> HookOutcome:
        """Let hooks see the prompt; what they say to it, unless they refuse it."""
        outcome = await self._hooks.fire("UserPromptSubmit", {"prompt": self.words})
        if outcome.blocked or outcome.stop:
            raise PromptBlockedError(
                f"A hook did not let the prompt through: {outcome.reason or outcome.stop_reason}",
                field="prompt",
            )
        return outcome

    def _check_system_message(self) -> None:
        """Refuse to work where no summary would make room."""
        message, window = self._agent.system_message or "", self._tracker.max_tokens
        limit = window * CONTEXT_HARD_BLOCK_THRESHOLD
        if len(message) <= limit:  # a character has as many bytes as a token, at most
            return
        size = len(message.encode("utf-8", "replace"))
        if size / BYTES_PER_TOKEN > limit:
            raise ConfigurationError(
                f"The system message alone has about {size // BYTES_PER_TOKEN:,} tokens, and the model's "
                f"window {window:,}: shorten it, or choose a model with a larger window."
            )

    async def begin(self) -> None:
        """Fire `SessionStart`, the first time."""
        if self._started:
            return
        self._started = True
        told = {"source": self.source, "model": self._agent.model}
        self._start_context = await self._hooks.fire("SessionStart", told)

    def _announce(self, prompt: Prompt, context: str) -> None:
        """The state before the model is asked: for the journal, and as the estimate of what will be sent."""
        agent = self._agent
        if agent.events.wants(PreRun):
            estimate = agent.conversation.tally.estimate()
            data: dict[str, Json] = {
                "provider": agent.provider.name,
                "model": agent.model,
                "context": context or None,
                "historyLength": len(agent.conversation),
                "historyChars": estimate.serialized_tokens * 4,
                "historyEstTokens": estimate.tokens,
                "maxTokens": self._tracker.max_tokens,
                "webTools": describe_web_tools(self._session),
            }
            self._log.report(PreRun, data=data)
        self.tell_context(prompt)

    def tell_context(self, prompt: Prompt | None = None) -> None:
        """How full the window is, with a prompt that is about to be recorded."""
        if not self._log.opened:  # nobody listens, and a number that the journal lacks must not be given
            return
        events = self._agent.events
        if not events.wants(ContextUpdated):
            events.next_seq()  # numbered whether or not anybody listens
            return
        extra: list[Message] = []
        if prompt is not None:
            system = self._agent.system_message
            if system is not None and self._agent.conversation.system is None:  # the first prompt brings it
                extra.append(SystemMessage(system, id="", timestamp=_NO_TIME))
            extra.append(user_message(prompt, id="", timestamp=_NO_TIME))
        state = self._tracker.measure(*extra)
        self._log.tell(ContextUpdated, **asdict(state))

    # --- between rounds -----------------------------------------------------------------------------------

    async def before_round(self, run: RunState) -> Sequence[UserMessage]:
        self._log.end_round()
        await self._log.after_effects()
        if reason := self._enforcer.stop_requested:
            self._log.notice(f"A hook ended the run: {reason}")
            raise StopRun("hook")
        if not self._started:  # a run that goes on after a crash had no start here
            await self.begin()
        if run.rounds and self._tracker.should_auto_compact and await self._compact():
            return [self._note(CONTINUE_AFTER_COMPACTION, origin="engine"), *self._inbox.drain()]
        return self._inbox.drain() if self._inbox else ()

    async def _compact(self) -> bool:
        """Summarise the conversation, if that can be done; the user is told if not."""
        try:
            if await make_compaction(self._session).compact(trigger="auto") is None:
                return False
            self.tell_context()
            return True
        except CompactionError as error:
            self._log.notice(f"{NOT_SUMMARISED}{error}")
            return False

    async def compact(self, instructions: str | None) -> str | None:
        """A compaction that somebody asked for; the summary, `None` for no need."""
        log, agent = self._log, self._agent
        epoch, summary = agent.conversation.epoch, None

        async def work() -> None:
            nonlocal summary
            await self.begin()
            summary = await make_compaction(self._session).compact(instructions, trigger="manual")
            if summary is not None:
                self.tell_context()

        await log.open()
        try:
            log.write(CompactRecord(instructions=instructions))
            stopped = await agent.perform(work())
            if stopped:
                log.write(InterruptedRecord())
        except RobotaError as error:
            log.write(ErrorRecord(message=str(error), code=error.code))
            raise
        except asyncio.CancelledError:
            log.write(InterruptedRecord())
            raise
        finally:
            await log.sync()
        if not stopped:
            return summary
        done = agent.conversation.epoch != epoch
        outcome = "the summary is in its place" if done else "the conversation is as it was"
        raise AbortError(f"The compaction was stopped; {outcome}.")

    # --- before the end -----------------------------------------------------------------------------------

    async def before_end(self, run: RunState, error: RobotaError | None) -> Sequence[UserMessage]:
        self._log.end_round()
        too_long = run.stop == "context_overflow" or is_context_overflow(error)
        if too_long and self._tracker.threshold is not False and run.rounds > self._recovered_at + 1:
            self._recovered_at = run.rounds
            if await self._compact():
                return [self._note(CONTINUE_AFTER_COMPACTION, origin="engine", continues=True)]
        if error is not None:
            await self._fire_failure(error)
            return ()
        if self._inbox and not run.is_exhausted:
            return self._inbox.drain()
        self.tell_context()
        said = {"last_assistant_message": run.answer, "response": run.answer}
        outcome = await self._hooks.fire("Stop", {**said, "stop_hook_active": run.continuations > 0})
        words = as_context(outcome) + (outcome.reason or "Go on." if outcome.blocked else "")
        if not words or outcome.stop:
            return ()
        if run.continuations == MAX_CONTINUATIONS:
            self._log.notice(f"Stop hooks sent the model on {MAX_CONTINUATIONS} times; that is enough.")
            return ()
        return [self._note(words, origin="hook", continues=True)]

    async def _fire_failure(self, error: RobotaError) -> None:
        said = {"error": failure_kind(error), "error_details": str(error), "reason": str(error)}
        await self._hooks.fire("StopFailure", {**said, "stop_hook_active": False})

    def _note(self, words: str, **metadata: Json) -> UserMessage:
        """A message that the user did not write."""
        ports = self._agent.config.ports
        return UserMessage(words, id=ports.new_id(), timestamp=timestamp(ports.now()), metadata=metadata)
