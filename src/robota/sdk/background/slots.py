"""How many tasks work at the same time."""

from __future__ import annotations

import asyncio

from robota.sdk.background.live_task import LiveTask


class Slots:
    """Places for tasks at work; others wait for one."""

    __slots__ = ("_free", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._free = asyncio.Semaphore(size)

    def resize(self, size: int) -> None:
        """So many from now on; those that wait already wait as before."""
        if size != self._size:
            self._size, self._free = size, asyncio.Semaphore(size)

    async def take(self, task: LiveTask) -> None:
        if task.wants_slot:
            free = self._free
            await free.acquire()
            task.slot = free

    def give(self, task: LiveTask) -> None:
        if task.slot is not None:
            task.slot.release()
            task.slot = None
