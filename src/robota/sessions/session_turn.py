"""What happens to one prompt of a session, in order. Read it from `SessionTurn.take`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from msgspec import to_builtins

from robota.core.errors import AbortError, RobotaError, ValidationError, from_unknown
from robota.core.events import ContextUpdated, PreRun
from robota.core.hooks import HookOutcome, as_context
from robota.core.messages import JsonObject, Prompt, TextPart, UserMessage, user_message
from robota.core.ports import timestamp
from robota.core.robota import check_prompt
from robota.sessions.compaction.overflow import is_context_overflow
from robota.sessions.compaction.summarizer import CompactionError
from robota.sessions.session_hooks import failure_kind

if TYPE_CHECKING:
    from robota.core.turn import RunResult
    from robota.sessions.session import Session
    from robota.sessions.session_life import SessionLife

MAX_CONTINUATIONS = 8
"""How often in a row Stop hooks may send the model on."""
CONTINUE_AFTER_COMPACTION = (
    "The conversation was summarised because it no longer fitted. "
    "Go on with the task where the summary leaves off."
)
ABORTED = "The run was stopped by the user."


class PromptBlockedError(ValidationError):
    """A hook does not let a prompt through."""

    code: ClassVar[str] = "PROMPT_BLOCKED"


class SessionTurn:
    __slots__ = ("in_agent", "life", "prompt", "session", "words")

    def __init__(self, session: Session, prompt: Prompt, raw_input: str | None) -> None:
        check_prompt(prompt)
        self.session = session
        self.life: SessionLife = session.life
        self.prompt = prompt
        self.words = _words(prompt) if raw_input is None else raw_input
        """What the user typed."""
        self.in_agent = False
        """The agent is at work, and tells itself if it is interrupted."""

    async def take(self) -> str:
        """The answer, or one of the three other ends: an abort, a refusal by a hook, an error."""
        switch = self.life.switch
        try:
            with switch.abortable() as stretch:
                try:
                    self.accept()
                    await self.life.begin()
                    await self.compact_if_full()
                    result = await self.answer(await self.submit())
                except Exception as error:
                    await self.note_failure(from_unknown(error))
                    raise
            if stretch.stopped:
                self.life.scribe.log("interrupted", {})
        except asyncio.CancelledError:
            if not self.in_agent:
                self.life.scribe.log("interrupted", {})
            raise
        finally:
            self.life.save()
        if stretch.stopped or switch.aborted or (result.interrupted and self.stop_reason is None):
            raise AbortError(ABORTED)
        if result.error is not None:
            raise result.error
        self.session.message_count += 1
        return result.text

    # --- before the model -----------------------------------------------------------------------------

    def accept(self) -> None:
        """Write the prompt down before anything else: from here on it survives a power cut."""
        self.life.scribe.open()
        text = self.prompt if isinstance(self.prompt, str) else None
        parts = None if text is not None else to_builtins(tuple(self.prompt))
        made = text if text != self.words else None
        self.life.scribe.log("user", {"input": self.words, "prompt": made, "parts": parts})
        self.life.scribe.sync()

    async def compact_if_full(self) -> None:
        tracker = self.session.tracker
        tracker.update()
        if not tracker.should_auto_compact:
            return
        try:
            await self.life.compaction.compact(trigger="auto")
        except CompactionError as error:
            self.life.scribe.notice(f"The conversation could not be summarised: {error}")

    async def submit(self) -> Prompt:
        """Let hooks see the prompt, and add what they have to say."""
        outcome = await self.life.hooks.fire("UserPromptSubmit", {"prompt": self.words})
        if outcome.blocked or outcome.stop:
            raise PromptBlockedError(
                f"A hook did not let the prompt through: {outcome.reason or outcome.stop_reason}",
                field="prompt",
            )
        return self.enrich(outcome)

    def enrich(self, outcome: HookOutcome) -> Prompt:
        start, self.life.start_context = self.life.start_context, None
        context = as_context(*([start] if start is not None else []), outcome)
        self.announce(context)
        if not context:
            return self.prompt
        if isinstance(self.prompt, str):
            return context + self.prompt
        return (TextPart(context), *self.prompt)

    def announce(self, context: str) -> None:
        """The state before the model is asked: for the journal, and as the estimate of what will be sent."""
        session = self.session
        conversation, agent = session.agent.conversation, session.agent
        estimate = conversation.tally.estimate()
        data: JsonObject = {
            "provider": agent.provider.name,
            "model": agent.model,
            "context": context or None,
            "historyLength": len(conversation),
            "historyChars": estimate.serialized_tokens * 4,
            "historyEstTokens": estimate.tokens,
            "maxTokens": session.tracker.max_tokens,
            "webTools": self.life.scribe.describe_web_tools(),
        }
        self.life.scribe.report(PreRun, data=data)
        self.update_context([self.preview(context)])

    def preview(self, context: str) -> UserMessage:
        """The message that is about to be recorded, for its size."""
        prompt = context + self.prompt if isinstance(self.prompt, str) else self.prompt
        return user_message(prompt, id="", timestamp=timestamp(0))

    def update_context(self, extra: list[UserMessage]) -> None:
        state = self.session.tracker.update(extra)
        self.life.scribe.tell(
            ContextUpdated,
            max_tokens=state.max_tokens,
            used_tokens=state.used_tokens,
            used_percentage=state.used_percentage,
            remaining_percentage=state.remaining_percentage,
        )

    # --- the model ------------------------------------------------------------------------------------

    async def answer(self, prompt: Prompt) -> RunResult:
        """Run the agent until it is done and no Stop hook wants more."""
        session = self.session
        session.enforcer.stop_requested = None
        result = await self.run_agent(prompt)
        for continued in range(MAX_CONTINUATIONS + 1):
            if result.interrupted or result.error is not None or self.life.switch.aborted:
                break
            self.update_context([])
            outcome = await self.fire_stop(result, active=continued > 0)
            if not outcome.blocked or outcome.stop:
                break
            if continued == MAX_CONTINUATIONS:
                self.life.scribe.notice(f"Stop hooks sent the model on {continued} times; that is enough.")
                break
            result = await self.run_agent(as_context(outcome) + (outcome.reason or "Go on."))
        if reason := self.stop_reason:
            self.life.scribe.notice(f"A hook ended the run: {reason}")
        elif result.error is not None:
            await self.fire_failure(result.error)
        return result

    async def run_agent(self, prompt: Prompt) -> RunResult:
        """One run; a conversation that turns out too long is summarised once and gone on with."""
        session = self.session
        session.agent.native_web_tools = self.life.web_tools
        self.in_agent = True
        result = await session.agent.run(prompt)
        self.in_agent = False
        too_long = result.stop_reason == "context_overflow" or (
            result.error is not None and is_context_overflow(result.error)
        )
        if not too_long or session.tracker.threshold is False or self.life.switch.aborted:
            return result
        try:
            if await self.life.compaction.compact(trigger="auto") is None:
                return result
        except CompactionError as error:
            self.life.scribe.notice(f"The conversation could not be summarised: {error}")
            return result
        return await self.ask_agent(CONTINUE_AFTER_COMPACTION)

    async def ask_agent(self, prompt: Prompt) -> RunResult:
        agent = self.session.agent
        agent.native_web_tools = self.life.web_tools
        self.in_agent = True
        result = await agent.run(prompt)
        self.in_agent = False
        return result

    @property
    def stop_reason(self) -> str | None:
        """Why a hook wanted the run to end."""
        return self.session.enforcer.stop_requested

    # --- afterwards -----------------------------------------------------------------------------------

    async def fire_stop(self, result: RunResult, *, active: bool) -> HookOutcome:
        said = {"last_assistant_message": result.text, "response": result.text}
        return await self.life.hooks.fire("Stop", {**said, "stop_hook_active": active})

    async def fire_failure(self, error: RobotaError) -> None:
        said = {"error": failure_kind(error), "error_details": str(error), "reason": str(error)}
        await self.life.hooks.fire("StopFailure", {**said, "stop_hook_active": False})

    async def note_failure(self, error: RobotaError) -> None:
        """An error outside the agent's run: inside, the run's end has told of it."""
        if not self.life.scribe.opened:
            return  # there is no session to tell of it: somebody else has it, or its journal is no journal
        length = len(self.session.agent.conversation)
        self.life.scribe.log("error", {"message": str(error), "code": error.code, "historyLength": length})
        await self.fire_failure(error)


async def compact_session(session: Session, instructions: str | None) -> str | None:
    """A compaction that somebody asked for; the summary, `None` for no need."""
    life, conversation = session.life, session.agent.conversation
    epoch = conversation.epoch
    try:
        with life.switch.abortable() as stretch:
            life.scribe.log("compact", {"instructions": instructions})
            await life.begin()
            summary = await life.compaction.compact(instructions, trigger="manual")
    except RobotaError as error:
        if life.scribe.opened:
            life.scribe.log("error", {"message": str(error), "code": error.code})
        raise
    except asyncio.CancelledError:
        life.scribe.log("interrupted", {})
        raise
    finally:
        life.scribe.sync()
        life.save()
    if stretch.stopped:
        life.scribe.log("interrupted", {})
        done = conversation.epoch != epoch
        outcome = "the summary is in its place" if done else "the conversation is as it was"
        raise AbortError(f"The compaction was stopped; {outcome}.")
    return summary


def _words(prompt: Prompt) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\n".join(part.text for part in prompt if isinstance(part, TextPart))
