"""Asking a model for the summary of a conversation, in requests that fit its window.

One call is the rule. Long outputs of tools are cut first; a conversation that is still too long is read in a
few pieces, each call bringing the summary up to date. When the service calls even that too long, everything
is tried again at half the size, a few times: the number of calls is bounded whatever the service says.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.context import BYTES_PER_TOKEN, ContextEstimate
from robota.core.errors import ProviderError, RobotaError, wrap_provider_error
from robota.core.messages import AssistantMessage, Message, UserMessage
from robota.core.ports import REAL_WORLD, Ports, timestamp
from robota.core.provider import ChatRequest, Chunk, ModelSettings, Provider, RetryNotice
from robota.core.reply import chat, open_stream
from robota.core.wrapper import ProviderWrapper
from robota.sessions.compaction.overflow import is_context_overflow
from robota.sessions.compaction.prompt import build_prompt
from robota.sessions.compaction.transcript import (
    EARLIER_SUMMARY,
    Entry,
    fit_text,
    list_entries,
    shrink_entries,
    split_entries,
    text_size,
)

if TYPE_CHECKING:
    from robota.core.idle import IdleTimer

REQUEST_SHARE = 0.9
"""The part of the window that a request and its answer may take."""
ANSWER_SHARE = 0.1
MAX_ANSWER_ROOM = 8_000
MAX_ATTEMPTS = 4
MAX_PIECES = 4
MAX_DENSITY = 4.0
SHORTEST_TRANSCRIPT = 800
"""Bytes of conversation below which a request is not worth its instructions."""
ENVELOPE = 400
"""Bytes of a message besides its text."""
CUT_NOTE = "\n\n[The summary ends here because the model reached the limit of its answer.]"


class CompactionError(RobotaError):
    """The conversation could not be summarised; it is as it was."""

    code = "COMPACTION_ERROR"
    category = "provider"
    recoverable = True


class _TooLong(Exception):
    """The request was more than the model can read."""


class SummaryModel(Struct, frozen=True, kw_only=True):
    """Who writes the summary."""

    provider: Provider
    model: str
    settings: ModelSettings = ModelSettings()
    idle_timeout: float | None = None
    """Seconds the model may be silent; `None` or a non-positive number waits for ever."""


SummaryCall: TypeAlias = Callable[[ChatRequest, AssistantMessage | RobotaError], None]
"""Told of each call to the model and what came of it, such as to count its tokens or to journal it."""


class Summarizer:
    """One compaction's dealings with the model."""

    __slots__ = ("_model", "_on_call", "_ports", "room")

    def __init__(
        self,
        model: SummaryModel,
        window: int,
        estimate: ContextEstimate,
        on_call: SummaryCall | None = None,
        ports: Ports = REAL_WORLD,
    ) -> None:
        self._model = model
        self._on_call = on_call
        self._ports = ports
        # Where the model counts more tokens than the estimator, it will do so again.
        counted = estimate.provider_tokens / max(estimate.serialized_tokens, 1)
        usable = window * REQUEST_SHARE - min(window * ANSWER_SHARE, MAX_ANSWER_ROOM)
        self.room = int(usable * BYTES_PER_TOKEN / min(max(counted, 1.0), MAX_DENSITY))
        """Bytes a request may have; it shrinks when the service disagrees."""

    async def summarize(self, messages: Sequence[Message], focus: str) -> str | None:
        """The summary, or `None` if no part of the conversation worth the name fits into a request."""
        entries = list_entries(messages)
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._read_through(entries, focus)
            except _TooLong:
                self.room //= 2
        return None

    async def _read_through(self, entries: Sequence[Entry], focus: str) -> str | None:
        focus = fit_text(focus, self.room // 4)
        size = self.room - ENVELOPE - text_size(build_prompt(focus, (), parts=MAX_PIECES))
        if size < SHORTEST_TRANSCRIPT:
            return None
        shrunk = shrink_entries(entries, size)
        if sum(entry.size for entry in shrunk) <= size:
            return await self._ask(build_prompt(focus, shrunk))
        pieces = split_entries(shrunk, size * 3 // 4, MAX_PIECES)
        summary = ""
        for part, piece in enumerate(pieces, 1):
            known = Entry(EARLIER_SUMMARY, fit_text(summary, size // 5))
            given = [known, *piece] if summary else piece
            summary = await self._ask(build_prompt(focus, given, part=part, parts=len(pieces)))
        return summary

    async def _ask(self, prompt: str) -> str:
        ports, model = self._ports, self._model
        message = UserMessage(prompt, id=ports.new_id(), timestamp=timestamp(ports.now()))
        settings = msgspec.structs.replace(model.settings, tool_choice=None, stop=())
        request = ChatRequest(model=model.model, messages=(message,), settings=settings)
        try:
            reply = await _chat_in_time(model, request)
        except Exception as problem:  # noqa: BLE001 - a provider is foreign code; its failure is told as ours
            error = wrap_provider_error(problem, model.provider.name)
            self._tell(request, error)
            if is_context_overflow(error):
                raise _TooLong from error
            raise CompactionError(
                f"The conversation was not summarised and stays as it is. {error}"
            ) from error
        self._tell(request, reply)
        return _check_reply(reply)

    def _tell(self, request: ChatRequest, outcome: AssistantMessage | RobotaError) -> None:
        if self._on_call is not None:
            self._on_call(request, outcome)


def _check_reply(reply: AssistantMessage) -> str:
    """The summary in a reply, if it is one."""
    text, stop = reply.content.strip(), reply.metadata.get("stopReason")
    if stop == "context_overflow":
        raise _TooLong
    if stop in ("refusal", "content_filter", "error", "aborted"):
        why = f"the model declined ({reply.metadata.get('stopDetail') or stop})"
    elif not text:
        why = "the model's summary is empty" + (
            " because it ran into its limit" if stop == "max_tokens" else ""
        )
    else:
        return text + CUT_NOTE if stop == "max_tokens" else text
    raise CompactionError(
        f"The conversation was not summarised and stays as it is: {why}. Try again, or with another model."
    )


async def _chat_in_time(model: SummaryModel, request: ChatRequest) -> AssistantMessage:
    seconds = model.idle_timeout
    if seconds is None or seconds <= 0:
        return await chat(model.provider, request)
    from anyio import CancelScope  # noqa: PLC0415 - loaded by whoever waits for a model

    from robota.core.idle import IdleTimer  # noqa: PLC0415 - brings asyncio with it

    with CancelScope() as scope:
        timer = IdleTimer(seconds, scope.cancel)
        try:
            return await chat(_Watched(model.provider, timer), request)
        finally:
            timer.cancel()
    name = model.provider.name
    raise ProviderError(
        f"Provider call idle timeout after {seconds:g}s: {name} sent nothing. Try again, or raise the idle "
        "timeout.",
        provider=name,
    )


class _Watched(ProviderWrapper):
    """The provider, with a timer that is touched at every chunk."""

    def __init__(self, inner: Provider, timer: IdleTimer) -> None:
        super().__init__(inner)
        self._timer = timer

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        timer = self._timer
        async with aclosing(open_stream(self.inner, request)) as chunks:
            async for chunk in chunks:
                timer.last = timer.now() + (chunk.delay if isinstance(chunk, RetryNotice) else 0)
                yield chunk
