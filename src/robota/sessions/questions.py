"""Where questions are put: to everybody who is attached, until the first of them answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from robota.core.bus import EventBus, Unsubscribe
from robota.core.events import QuestionAsked, QuestionClosed
from robota.core.questions import (
    Answer,
    PermissionAnswer,
    PermissionQuestion,
    Question,
    answer_to_plain,
    read_answer,
)
from robota.sessions.permissions.consultation import Fault, consult, report_unusable

if TYPE_CHECKING:
    from robota.core.messages import Json

QuestionHandler: TypeAlias = Callable[[Any], Awaitable[object]]
"""Asks somebody: an answer as `read_answer` knows it, or `None` when they have none to give."""
PermissionWord: TypeAlias = bool | Literal["allow-session", "allow-project"] | PermissionAnswer | None
PermissionHandler: TypeAlias = Callable[[PermissionQuestion], Awaitable[PermissionWord] | PermissionWord]
"""Asks somebody whether a call may run, as above."""
CLOSING_SECONDS = 2.0
"""How long a handler whose question was answered elsewhere may take to put its things away."""


class Settled(Struct, frozen=True, kw_only=True):
    """How a question ended."""

    answer: Answer | None = None
    by: str = ""
    """Who answered, as they call themselves."""
    reason: Literal["answered", "aborted", "nobody", "fault"] = "nobody"
    fault: str = ""
    """What was wrong with what came in the place of an answer."""


class Questions:
    """The questions of a session, and of the sessions below it."""

    __slots__ = ("_asked", "_events", "_handlers", "_pending", "known")

    def __init__(self, events: EventBus) -> None:
        self._events = events
        self._handlers: list[QuestionHandler] = []
        self._pending: dict[str, _Pending] = {}
        self._asked: dict[str, int] = {}
        """How many questions each call has asked."""
        self.known: dict[str, Json] = {}
        """Answers by the id of their question, from a journal: they are not asked for again."""

    @property
    def open(self) -> Mapping[str, Question]:
        return {id: pending.question for id, pending in self._pending.items()}

    @property
    def attended(self) -> bool:
        """Whether anybody is there to ask."""
        return bool(self._handlers)

    def attach(self, handler: QuestionHandler) -> Unsubscribe:
        """Have every question put to this handler too, those that are open included."""
        self._handlers.append(handler)
        for pending in self._pending.values():
            pending.put_to(handler)

        def detach() -> None:
            if handler in self._handlers:
                self._handlers.remove(handler)
            for pending in self._pending.values():
                pending.withdraw(handler)

        return detach

    async def ask(self, question: Question, *, wait: bool = False) -> Answer | None:
        """The first answer; `None` when there is nobody to give one."""
        return (await self.settle(question, wait=wait)).answer

    async def settle(self, question: Question, *, wait: bool = False) -> Settled:
        """The same with how it ended. `wait` keeps the question open while nobody is attached."""
        if not self.attended and not wait and not self.known:
            return Settled()
        question = self._identify(question)
        self._tell(QuestionAsked, question=question)
        settled = Settled(reason="aborted")
        try:
            settled = await self.find_answer(question, wait=wait)
        finally:
            plain = answer_to_plain(settled.answer)
            self._tell(QuestionClosed, id=question.id, answer=plain, by=settled.by, reason=settled.reason)
        return settled

    async def find_answer(self, question: Question, *, wait: bool) -> Settled:
        known = read_answer(question, self.known.get(question.id))
        if known is not None:
            return Settled(answer=known, by="journal", reason="answered")
        if not self._handlers and not wait:
            return Settled()
        pending = self._pending[question.id] = _Pending(question, wait=wait)
        try:
            for handler in self._handlers:
                pending.put_to(handler)
            return await pending.ended
        finally:
            del self._pending[question.id]
            await pending.leave()

    def answer(self, id: str, answer: object, *, by: str = "") -> bool:
        """Answer an open question; false when it was closed already, or when that is not an answer to it."""
        pending = self._pending.get(id)
        return pending is not None and pending.take(answer, by)

    def _identify(self, question: Question) -> Question:
        if question.id:
            return question
        call = question.call_id
        if not call:  # a number of the session never comes back
            return replace(question, id=f"question-{self._events.seq + 1}")
        count = self._asked[call] = self._asked.get(call, -1) + 1
        return replace(question, id=f"{call}.{count}" if count else call)

    def _tell(self, kind: Any, **fields: Any) -> None:
        self._events.emit(kind(seq=self._events.next_seq(), **fields))


class _Pending:
    """An open question, with a task for each handler that it was put to."""

    __slots__ = ("_fault", "_tasks", "_wait", "ended", "question")

    def __init__(self, question: Question, *, wait: bool) -> None:
        self.question = question
        self.ended: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()
        self._wait = wait
        self._tasks: dict[asyncio.Task[None], QuestionHandler] = {}
        self._fault = ""

    def put_to(self, handler: QuestionHandler) -> None:
        task = asyncio.get_running_loop().create_task(self._consult(handler))
        self._tasks[task] = handler
        task.add_done_callback(self._forget)  # not a `finally`: a task may be cancelled before it begins

    def withdraw(self, handler: QuestionHandler) -> None:
        """Once: whoever is attached twice leaves twice."""
        task = next((task for task, known in self._tasks.items() if known is handler), None)
        if task is not None:
            task.cancel()

    async def _consult(self, handler: QuestionHandler) -> None:
        given = await consult("The handler of a question", handler, self.question)
        if given is None or self.take(given, ""):
            return
        if not isinstance(given, Fault) and not self.ended.done():
            report_unusable(given)
        fault = given.text if isinstance(given, Fault) else f"it answered with {type(given).__name__}"
        self._fault = self._fault or fault

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not self._tasks and not self._wait and not self.ended.done():
            reason: Any = "fault" if self._fault else "nobody"
            self.ended.set_result(Settled(reason=reason, fault=self._fault))

    def take(self, given: object, by: str) -> bool:
        """Close the question with this answer, if it is one and the first."""
        answer = None if self.ended.done() else read_answer(self.question, given)
        if answer is None:
            return False
        self.ended.set_result(Settled(answer=answer, by=by, reason="answered"))
        return True

    async def leave(self) -> None:
        """Stop the handlers that have not answered."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSING_SECONDS)
