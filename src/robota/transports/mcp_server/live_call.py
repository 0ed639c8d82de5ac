"""A prompt that a client waits for: its progress, its questions, its end.

The prompt has a task of its own. In the newest protocol a question ends the request and comes back with the
answer in another one, so that a call may outlive the request that began it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from robota.core.events import (
    Noticed,
    ProviderRetried,
    TextDelta,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEvent,
)
from robota.core.questions import Question
from robota.sdk.ending import Denials
from robota.sdk.tool_states import subject
from robota.sdk.view.neutral import neutral_line, neutralise

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult
    from robota.sdk.interactive import InteractiveSession

TEXT_SHOWN = 200
"""Characters of an answer that are told at once, unless a line ends before."""


class Progress(Struct, frozen=True):
    text: str


class Asked(Struct, frozen=True):
    question: Question
    answer: asyncio.Future[object]


class Ended(Struct, frozen=True):
    result: ExecutionResult[Any] | None
    error: Exception | None = None


Step: TypeAlias = Progress | Asked | Ended


class LiveCall:
    """One prompt on its way."""

    def __init__(self, session: InteractiveSession, prompt: str, *, verbatim: bool, asks: bool) -> None:
        """`asks`: the client can be asked; else rules alone decide."""
        self.session = session
        self.denials = Denials(session)
        self.open: Asked | None = None
        """The question that the client has."""
        self._steps: asyncio.Queue[Step] = asyncio.Queue()
        self._text = ""
        self._unsubscribe = session.events.subscribe(self._hear)
        self._detach = session.questions.attach(self._ask) if asks else None
        self._task = asyncio.create_task(self._run(prompt, verbatim))

    async def _run(self, prompt: str, verbatim: bool) -> None:
        ended = Ended(None)
        try:
            ended = Ended(await self.session.submit(prompt, verbatim=verbatim))
        except Exception as error:  # noqa: BLE001 - whoever waits for the call is told
            ended = Ended(None, error)
        finally:
            self._tell_text()
            self._unsubscribe()
            self.denials.close()
            if self._detach is not None:
                self._detach()
            self._steps.put_nowait(ended)

    async def step(self) -> Step:
        """What happens next."""
        return await self._steps.get()

    def stop(self) -> None:
        """Nobody waits any more. Another prompt of the same session goes on."""
        self._task.cancel()

    # --- questions ---------------------------------------------------------------------------------------

    async def _ask(self, question: Question) -> object:
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._steps.put_nowait(Asked(question, answer))
        return await answer

    # --- progress ----------------------------------------------------------------------------------------

    def _hear(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._text += text
                if "\n" in text or len(self._text) >= TEXT_SHOWN:
                    self._tell_text()
            case ToolStarted(tool_name=name, arguments=arguments):
                self._tell(f"{name} {subject(arguments)}".strip())
            case ToolProgressed(text=text):
                self._tell(text)
            case ToolEnded(outcome="error" | "denied", tool_name=name, error=error):
                self._tell(f"{name} failed: {error}")
            case ProviderRetried(message=message) | Noticed(message=message):
                self._tell(message)

    def _tell_text(self) -> None:
        text, self._text = self._text.strip(), ""
        if text:
            self._steps.put_nowait(Progress(neutralise(text)))

    def _tell(self, text: str) -> None:
        self._tell_text()
        self._steps.put_nowait(Progress(neutral_line(text)))
