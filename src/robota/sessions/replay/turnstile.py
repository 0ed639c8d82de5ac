"""The order in which the calls of one answer got their hooks, decisions and results, kept at a replay."""

from __future__ import annotations

import asyncio
from collections import deque

from robota.core.errors import RobotaError

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
        self._mine: dict[str, deque[int]] = {}
        """Call id -> its steps that have not happened yet."""
        self._head = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def add(self, call_id: str) -> None:
        """The next step of the recording."""
        self._mine.setdefault(call_id, deque()).append(len(self._over))
        self._over.append(False)

    async def wait(self, call_id: str) -> None:
        """Wait for the turn of a call's next step; one that has none comes after all others."""
        steps = self._mine.get(call_id)
        place = steps[0] if steps else len(self._over)
        try:
            await self._reach(place)
        except asyncio.CancelledError:
            await self._reach(place)  # calls that are stopped together end in their order, too
            raise

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

    def passed(self, call_id: str, *, last: bool = False) -> None:
        """A step of the call has happened, with `last` all of them."""
        steps = self._mine.get(call_id)
        while steps:
            self._over[steps.popleft()] = True
            if not last:
                break
        while self._head < len(self._over) and self._over[self._head]:
            self._head += 1
        ready = [waiter for place, waiter in self._waiting if place <= self._head]
        self._waiting = [(place, waiter) for place, waiter in self._waiting if place > self._head]
        for waiter in ready:
            if not waiter.done():
                waiter.set_result(None)
