"""The one prompt that may wait while another is worked on."""

from __future__ import annotations

import asyncio
from typing import Any

from robota.core.errors import SessionBusyError
from robota.core.run_task import CLOSING_TURNS

CLOSING_SECONDS = 5.0


class PromptQueue:
    """Lets one turn in at a time; a second waits, a third is refused."""

    __slots__ = ("_left", "_waiting", "busy", "pending")

    def __init__(self) -> None:
        self.busy = False
        """A turn is under way."""
        self.pending: str | None = None
        """The words of the prompt that waits."""
        self._waiting: asyncio.Future[bool] | None = None
        self._left: asyncio.Future[Any] | None = None
        """The turn whose stream was left, until it has ended."""

    def take(self) -> bool:
        """Begin a turn now, if none is under way."""
        free, self.busy = not self.busy, True
        return free

    async def wait(self, words: str) -> bool:
        """Wait for the end of the turn under way; false if the prompt was taken back meanwhile."""
        if self._waiting is not None:
            raise SessionBusyError(
                "A prompt is waiting already: wait for it, take it back with cancel_queue(), or abort()."
            )
        self._waiting, self.pending = asyncio.get_running_loop().create_future(), words
        try:
            return await self._waiting
        except asyncio.CancelledError:
            if self._waiting is not None and self._waiting.done() and not self._waiting.cancelled():
                self.leave()  # its turn had come
            raise
        finally:
            self._waiting, self.pending = None, None

    def leave(self) -> None:
        """The turn is over; what waits is next."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(True)
        else:
            self.busy = False

    async def wait_for_left(self, turn: asyncio.Future[Any]) -> None:
        """Wait for the end of a turn whose stream was left."""
        self._left = turn
        await asyncio.wait((turn,), timeout=CLOSING_SECONDS)
        self._left = None

    async def require_free(self) -> None:
        """Raise if a turn is under way. One whose stream was left by `break`, which Python closes some turns
        of the loop later, is waited for."""
        for _ in range(CLOSING_TURNS if self.busy else 0):
            await asyncio.sleep(0)
        if self._left is not None:
            await asyncio.wait((self._left,), timeout=CLOSING_SECONDS)
        if self.busy:
            raise SessionBusyError("This session works on another prompt: wait for it, or abort() it first.")

    def cancel(self) -> None:
        """Take back what waits."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(False)
