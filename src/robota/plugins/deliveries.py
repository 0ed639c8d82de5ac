"""Posts that wait for their turn: a few at a time, a bounded number in all, never in the way of a run."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from anyio import to_thread

from robota.core.errors import PluginError
from robota.core.messages import Json
from robota.plugins.posting import Poster

if TYPE_CHECKING:
    from robota.core.plugin import PluginContext

MAX_WAITING = 1000
MakePost: TypeAlias = Callable[[], tuple[bytes, dict[str, str]]]
"""Gives the body and its headers, in a thread: secrets are looked for there."""


class Deliveries:
    """What a plugin sends. Workers are started when there is something to do, and end when there is not."""

    def __init__(self, owner: str, *, at_once: int) -> None:
        self._owner = owner
        self._at_once = at_once
        self._waiting: deque[tuple[Poster, MakePost]] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._notice: Callable[[str], None] = lambda _: None
        self.delivered = self.failed = self.dropped = self.repeated = 0
        self.trouble = ""

    def bind(self, context: PluginContext) -> None:
        self._notice = context.notice

    def put(self, poster: Poster, make: MakePost) -> None:
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append((poster, make))
        if len(self._workers) < self._at_once:
            worker = asyncio.create_task(self._work(), name=f"{self._owner} plugin posts")
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def call_later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something unless everything is closed before."""

        def act() -> None:
            self._timers.discard(timer)
            action()

        timer = asyncio.get_running_loop().call_later(seconds, act)
        self._timers.add(timer)

    async def _work(self) -> None:
        while self._waiting:
            poster, make = self._waiting.popleft()
            try:
                body, headers = await to_thread.run_sync(make)
                self.repeated += await poster.post(body, headers) - 1
                self.delivered += 1
                self.trouble = ""
            except PluginError as error:
                self._fail(str(error))

    def _fail(self, why: str) -> None:
        self.failed += 1
        if not self.trouble:
            import logging  # noqa: PLC0415 - only when something went wrong

            sentence = f"The plugin {self._owner!r} could not deliver: {why}"
            logging.getLogger("robota.plugins").warning(sentence)
            self._notice(sentence)
        self.trouble = why

    async def flush(self) -> None:
        while self._workers:
            await asyncio.wait(self._workers)

    async def aclose(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        try:
            await self.flush()
        finally:
            for worker in self._workers:
                worker.cancel()

    def describe(self) -> dict[str, Json]:
        return {
            "delivered": self.delivered,
            "failed": self.failed,
            "repeated": self.repeated,
            "dropped": self.dropped,
            "waiting": len(self._waiting),
            "trouble": self.trouble,
        }
