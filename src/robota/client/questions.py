"""The open questions of a session on another host, put to whoever is attached here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from robota.core.bus import Unsubscribe
from robota.core.messages import Json
from robota.core.questions import Answer, Question, answer_to_plain, read_answer
from robota.sessions.questions import QuestionHandler


class RemoteQuestions:
    """The first answer wins, from whichever front end it comes; the others see the question closed."""

    def __init__(self, send: Callable[[str, Json], Awaitable[bool]]) -> None:
        """`send` takes an answer to the host; whether it counted."""
        self._send = send
        self._open: dict[str, Question] = {}
        self._handlers: list[QuestionHandler] = []
        self._asking: dict[str, set[asyncio.Task[None]]] = {}

    @property
    def open(self) -> Mapping[str, Question]:
        return dict(self._open)

    def attach(self, handler: QuestionHandler) -> Unsubscribe:
        """Ask this handler from now on, also what is open already."""
        self._handlers.append(handler)
        for question in self._open.values():
            self._ask(handler, question)

        def detach() -> None:
            if handler in self._handlers:
                self._handlers.remove(handler)

        return detach

    async def answer(self, id: str, answer: object) -> bool:
        """Answer a question; false if it is closed already, or this is no answer to it."""
        question = self._open.get(id)
        given = None if question is None else read_answer(question, answer)
        return given is not None and await self._send(id, answer_to_plain(given))

    def asked(self, question: Question) -> None:
        if question.id not in self._open:
            self._open[question.id] = question
            for handler in self._handlers:
                self._ask(handler, question)

    def closed(self, id: str) -> None:
        """Somebody answered, or nobody needs to: whoever is still asked here is told by being cancelled."""
        self._open.pop(id, None)
        for task in self._asking.pop(id, ()):
            task.cancel()

    def close(self) -> None:
        for id in tuple(self._asking):
            self.closed(id)

    def _ask(self, handler: QuestionHandler, question: Question) -> None:
        task = asyncio.get_running_loop().create_task(self._put(handler, question))
        self._asking.setdefault(question.id, set()).add(task)

    async def _put(self, handler: QuestionHandler, question: Question) -> None:
        given = await handler(question)
        # From here on an answer of ours may close the question, which must not cancel what sends it.
        self._asking.get(question.id, set()).discard(asyncio.current_task())
        answer: Answer | None = read_answer(question, given)
        if answer is not None and question.id in self._open:
            await self._send(question.id, answer_to_plain(answer))
