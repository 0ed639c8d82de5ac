"""The order in which the calls of one answer got their hooks, decisions and results, kept at a replay."""

from __future__ import annotations

import asyncio

from robota.core.errors import RobotaError

START, DECISION, RESULT = "start", "decision", "result"
"""Kinds of steps; a hook's is the name of its event."""
PATIENCE = 30.0
"""Seconds after which calls that wait for each other are told so: other code may have another order."""


class ReplayMismatch(RobotaError):
    """The session asks for something that it did not ask for when it was recorded."""

    code = "REPLAY_MISMATCH"


class Turnstile:
    """Lets each call go on when everything that came before its next step has happened."""

    __slots__ = ("_head", "_mine", "_over", "_waiting")

    def __init__(self) -> None:
        self._over: list[bool] = []
        """For each step whether it has happened."""
        self._mine: dict[str, list[tuple[str, int]]] = {}
        """Call id -> kind and place of its steps that have not happened yet."""
        self._head = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def add(self, call_id: str, kind: str) -> None:
        """The next step of the recording."""
        self._mine.setdefault(call_id, []).append((kind, len(self._over)))
        self._over.append(False)

    async def wait(self, call_id: str, kind: str = "") -> None:
        """Wait for the turn of a call's next step, or the next of a kind; without one, for all others.

        Being cancelled ends nothing here: the record says what was stopped, and where.
        """
        steps = self._mine.get(call_id, ())
        place = next((place for known, place in steps if known == kind or not kind), len(self._over))
        try:
            await self._reach(place)
        except asyncio.CancelledError:
            await self._reach(place)

    async def _reach(self, place: int) -> None:
        if self._head >= place:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, waiter))
        try:
            await asyncio.wait_for(waiter, PATIENCE)
        except TimeoutError:
            message = "The calls wait for each other: they no longer end in their order."
            raise ReplayMismatch(message) from None

    def passed(self, call_id: str, kind: str = "") -> None:
        """The call's next step of that kind has happened; without a kind: it is over."""
        steps = self._mine.get(call_id, [])
        done = [step for step in steps if step[0] == kind][:1] if kind else list(steps)
        for step in done:
            steps.remove(step)
            self._over[step[1]] = True
        while self._head < len(self._over) and self._over[self._head]:
            self._head += 1
        ready = [waiter for place, waiter in self._waiting if place <= self._head]
        self._waiting = [(place, waiter) for place, waiter in self._waiting if place > self._head]
        for waiter in ready:
            if not waiter.done():
                waiter.set_result(None)
