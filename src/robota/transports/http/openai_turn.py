"""One turn of an agent for a client of the OpenAI protocols."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from robota.core.events import ReasoningDelta, TextDelta, TurnEvent
from robota.core.messages import UserMessage
from robota.core.questions import ChoiceAnswer, ChoiceQuestion, PermissionAnswer, PermissionQuestion, Question
from robota.sdk.ending import Denials
from robota.transports.http.openai_requests import Task, refusal
from robota.transports.session_maker import SessionWish

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult
    from robota.transports.host import HostedSession, SessionHost

RESPONSE = "resp_"
Piece: TypeAlias = "TextDelta | ReasoningDelta | ExecutionResult[Any]"


class AgentTurn:
    """A session that works on a task. Nobody can be asked: what rules leave open is refused."""

    def __init__(self, hosted: HostedSession, task: Task) -> None:
        self.hosted = hosted
        self.session = hosted.session
        self._task = task
        self.denials = Denials(self.session)
        self._pieces: asyncio.Queue[Piece | Exception] = asyncio.Queue()
        self._said = False
        number = count_prompts(hosted) + sum(said.role == "user" for said in task.before) + 1
        self.response_id = f"{RESPONSE}{hosted.id}_{number}"
        """Names the session and the prompt, so that the next response can go on from it."""

    @property
    def model(self) -> str:
        return self.session.session.model or "robota"

    def describe(self) -> dict[str, object]:
        """What the protocols have no field for."""
        return {
            "session_id": self.session.session_id,
            "cost_usd": self.session.session.usage.total.cost_usd or 0.0,
            "denied": list(dict.fromkeys(self.denials.tools)),
        }

    async def run(self) -> ExecutionResult[Any]:
        """To its end; raises what kept it from one."""
        result: ExecutionResult[Any] | None = None
        async for piece in self.pieces():
            if not isinstance(piece, TextDelta | ReasoningDelta):
                result = piece
        assert result is not None
        return result

    async def pieces(self) -> AsyncIterator[Piece]:
        """As it comes; the last one is the result. Leaving early stops the turn."""
        working = asyncio.create_task(self._work())
        stop = self.session.events.subscribe(self._hear)
        detach = self.session.questions.attach(refuse_question)
        try:
            while True:
                piece = await self._pieces.get()
                if isinstance(piece, Exception):
                    raise piece
                yield piece
                if not isinstance(piece, TextDelta | ReasoningDelta):
                    return
        finally:
            stop()
            detach()
            self.denials.close()
            working.cancel()

    def _hear(self, event: TurnEvent) -> None:
        if isinstance(event, TextDelta) and not self._said:
            if not event.text.strip():
                return  # what stands between rounds, before any words
            self._said = True
        if isinstance(event, TextDelta | ReasoningDelta):
            self._pieces.put_nowait(event)

    async def _work(self) -> None:
        task = self._task
        try:
            inner = await self.session.ready()
            if task.instructions:
                inner.inject_message("system", task.instructions)
            for said in task.before:
                inner.inject_message(said.role, said.text)
            result = await self.session.submit(
                task.prompt, verbatim=True, settings=task.settings, output=task.schema
            )
            self._pieces.put_nowait(result if result.error is None else result.error)
        except Exception as error:  # noqa: BLE001 - whoever reads the pieces raises it
            self._pieces.put_nowait(error)


async def refuse_question(question: Question) -> object:
    """The client is a program that waits for an answer."""
    match question:
        case PermissionQuestion():
            return PermissionAnswer(allow=False, message="Nobody can be asked: rules decide here.")
        case ChoiceQuestion():
            return ChoiceAnswer(dismissed=True)
        case _:
            return False


@asynccontextmanager
async def agent_turn(host: SessionHost, task: Task) -> AsyncIterator[AgentTurn]:
    """In a session of its own, put away behind the block; or in that of the response it goes on from."""
    if task.previous is None:
        hosted = await host.create(SessionWish(model=task.model))
    else:
        hosted = await _find_previous(host, task.previous)
    try:
        yield AgentTurn(hosted, task)
    finally:
        await host.close(hosted.id)


def count_prompts(hosted: HostedSession) -> int:
    messages = hosted.session.session.messages
    return sum(isinstance(each, UserMessage) and "origin" not in each.metadata for each in messages)


async def _find_previous(host: SessionHost, previous: str) -> HostedSession:
    id, _, number = previous.removeprefix(RESPONSE).rpartition("_")
    if not previous.startswith(RESPONSE) or not host.is_kept(id):
        raise refusal(f"There is no response {previous!r}.", "previous_response_id", "not_found")
    hosted = await host.require(id)
    if number != str(count_prompts(hosted)):
        raise refusal(
            f"The session of {previous!r} has gone on since: continue from its last response.",
            "previous_response_id",
        )
    return hosted
