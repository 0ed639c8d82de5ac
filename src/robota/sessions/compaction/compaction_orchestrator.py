"""Compaction: the conversation so far becomes a summary, and the work goes on from there.

Nothing is deleted: a mark in the conversation moves the beginning of what the model sees. The mark is made
only with a summary that was checked, in one step that cannot be interrupted; until then the conversation is
as it was, whatever fails or is cancelled. Behind the summary stands what code knows better than a model can
remember, word for word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.context import BYTES_PER_TOKEN, ContextTally
from robota.core.conversation import SUMMARY_HEADING, ConversationStore
from robota.core.errors import RobotaError
from robota.core.events import Compacted, CompactionMarked, Noticed, ReplayEvent, SummaryCalled, TurnEvent
from robota.core.messages import AssistantMessage, Message, SystemMessage, UserMessage
from robota.core.plain_text import shorten
from robota.core.provider import ChatRequest, Provider
from robota.core.robota import Robota
from robota.sessions.compaction.kept_state import (
    CompactionSection,
    add_sections,
    disarm,
    find_files,
    find_sections,
    write_sections,
)
from robota.sessions.compaction.summarizer import CompactionError, Summarizer
from robota.sessions.compaction.transcript import fit_text, is_summary, read_summary
from robota.sessions.context_window_tracker import ContextWindowTracker
from robota.sessions.hooks import HookPort
from robota.sessions.options import CompactionOptions

CompactionTrigger: TypeAlias = Literal["auto", "manual"]

SUMMARY_SHARE = 0.25
"""The part of the window that the model's own summary may take."""
RULE_SUMMARY_LIMIT = 8_000
MARGIN = 16
"""Tokens between what is calculated before the mark and what is counted after it."""
STILL_FULL = (
    "After the compaction the context window is still {:g}% full, because the system message, the rules, the "
    "open todos and the plan are kept word for word. Shorten them, or choose a model with a larger window."
)
NO_ROOM = "(The summary was left out, because what follows leaves no room for it.)"


class CompactionOrchestrator(Struct, eq=False):
    """Decides when a conversation is summarised, and has it done."""

    agent: Robota
    """Its model writes the summaries."""
    tracker: ContextWindowTracker
    options: CompactionOptions
    hooks: HookPort | None = None
    admit: Callable[[Provider], Provider] | None = None
    """Gives the provider as it may be asked."""

    @property
    def _conversation(self) -> ConversationStore:
        return self.agent.conversation

    async def compact(
        self, instructions: str | None = None, *, trigger: CompactionTrigger = "manual"
    ) -> str | None:
        """Summarise the conversation and begin the model's view again with the summary, which is returned.

        `None`: there was nothing new to summarise, or a hook did not want an automatic compaction now.
        Raises `CompactionError` when there is no usable summary; the conversation is untouched then.
        """
        if not _has_news(self._conversation.messages_for_api()):
            return None
        before = self.tracker.state
        focus = await self._consult_hooks(instructions or "", trigger)
        if focus is None:
            return None
        seen = self._conversation.epoch, len(self._conversation)
        summary = await self._summarize(focus)
        if seen != (self._conversation.epoch, len(self._conversation)):
            raise CompactionError(
                "The conversation changed while it was being summarised, so it stays as it is; try again."
            )
        text = self._compose(summary)
        message = self._conversation.mark_compaction(text)
        after = self.tracker.note_compaction()
        self._report(CompactionMarked, message=message, epoch=self._conversation.epoch)
        figures = {"before": msgspec.to_builtins(before), "after": msgspec.to_builtins(after)}
        self._tell(Compacted, trigger=trigger, summary=text, **figures)
        if after.used_tokens >= self.tracker.limit_tokens:
            self._tell(Noticed, message=STILL_FULL.format(after.used_percentage))
        if self.hooks is not None:
            await self.hooks.fire("PostCompact", {"trigger": trigger, "compact_summary": text})
        return text

    async def _consult_hooks(self, instructions: str, trigger: CompactionTrigger) -> str | None:
        """What the summary is to focus on, with what hooks add to it; `None` if they do not want it now."""
        focus = instructions.strip() or self.options.instructions.strip()
        if self.hooks is None:
            return focus
        outcome = await self.hooks.fire(
            "PreCompact", {"trigger": trigger, "custom_instructions": instructions}
        )
        if not outcome.blocked:
            return "\n\n".join(filter(None, [focus, outcome.stdout, *outcome.additional_context]))
        because = f": {outcome.reason}" if outcome.reason else "."
        if trigger == "manual":
            raise CompactionError(f"A PreCompact hook does not allow to summarise the conversation{because}")
        self._tell(Noticed, message=f"A PreCompact hook held back the automatic compaction{because}")
        return None

    async def _summarize(self, focus: str) -> str:
        conversation, using = self._conversation, self.agent.using
        if self.admit is not None:
            using = msgspec.structs.replace(using, provider=self.admit(using.provider))
        window = self.tracker.max_tokens
        summarizer = Summarizer(agent=self.agent, using=using, window=window, on_call=self._tell_call)
        summary = await summarizer.summarize(conversation.messages_for_api(), focus)
        if summary is not None:
            return summary
        self._tell(
            Noticed,
            message="The conversation is too long for the model to summarise, so a short summary was put "
            "together without it. The whole conversation is still in the history.",
        )
        limit = min(RULE_SUMMARY_LIMIT, summarizer.room // 2)
        return summarize_by_rule(conversation.messages, limit)

    def _compose(self, summary: str) -> str:
        """Summary and sections; the summary is cut to what they leave below the threshold."""
        written = write_sections(self._find_sections())
        tracker, system = self.tracker, self._conversation.system
        rest: list[Message] = [
            AssistantMessage(f"{SUMMARY_HEADING}\n{written}", metadata={"compaction": True})
        ]
        if system is not None:
            rest.insert(0, system)
        free = tracker.limit_tokens - ContextTally.of(rest).estimate().serialized_tokens - MARGIN
        room = int(min(free, tracker.max_tokens * SUMMARY_SHARE)) * BYTES_PER_TOKEN
        return add_sections(fit_text(disarm(summary), room) or NO_ROOM, written)

    def _find_sections(self) -> list[CompactionSection]:
        """What the session gives, and of what the conversation tells whatever is not among that."""
        given = [] if self.options.sections is None else list(self.options.sections())
        known = {section.title for section in given}
        found = find_sections(self._conversation.messages)
        return [*given, *(section for section in found if section.title not in known)]

    def _tell_call(self, request: ChatRequest, outcome: AssistantMessage | RobotaError) -> None:
        asked = request.messages[-1]
        about: dict[str, Any] = {"model": request.model, "message_id": asked.id, "asked_at": asked.timestamp}
        if isinstance(outcome, AssistantMessage):
            about |= {"content": outcome.content, "metadata": outcome.metadata}
        else:
            about["error"] = {"code": outcome.code, "message": str(outcome)}
        self._report(SummaryCalled, **about)

    def _tell(self, kind: type[TurnEvent], **fields: Any) -> None:
        events = self.agent.events
        seq = events.next_seq()
        if events.wants(kind):
            events.emit(kind(seq=seq, **fields))

    def _report(self, kind: type[ReplayEvent], **fields: Any) -> None:
        events = self.agent.events
        if events.wants(kind):
            events.emit(kind(seq=events.seq, **fields))


def _has_news(view: Sequence[Message]) -> bool:
    """Whether there is anything besides system messages and the summary the view began with."""
    return any(not isinstance(message, SystemMessage) and not is_summary(message) for message in view)


NOTE = (
    "This summary was put together by the program, because the conversation was too long for the model to "
    "read. Much of what happened is missing: look things up again before relying on them."
)
LATEST_REQUESTS = 3


def summarize_by_rule(messages: Sequence[Message], limit: int) -> str:
    """First and latest requests, the last answer and the files in use, in about `limit` characters.

    `messages` is the whole timeline; what an earlier compaction hid from the model counts, too.
    """
    share = max(limit // (LATEST_REQUESTS + 4), 1)
    requests = [message.content for message in messages if isinstance(message, UserMessage)]
    answers = [
        message for message in messages if isinstance(message, AssistantMessage) and message.content.strip()
    ]
    spoken = [message.content for message in answers if not is_summary(message)]
    earlier = [read_summary(message) for message in answers if is_summary(message)]
    parts = [
        ("The first request", requests[:1]),
        ("The earlier summary", earlier[-1:]),
        ("The latest requests", requests[1:][-LATEST_REQUESTS:]),
        ("The last answer", spoken[-1:]),
        ("Files that were used, the latest first", ["\n".join(find_files(messages))]),
    ]
    told = [NOTE]
    for title, texts in parts:
        body = "\n\n".join(shorten(text.strip(), share) for text in texts)
        if body:
            told.append(f"{title}:\n{body}")
    return "\n\n".join(told)
