"""The one prompt that may wait while another is worked on."""

from __future__ import annotations

import asyncio

from robota.core.errors import SessionBusyError


class PromptQueue:
    """Lets one turn in at a time; a second waits, a third is refused."""

    __slots__ = ("_waiting", "busy", "pending")

    def __init__(self) -> None:
        self.busy = False
        """A turn is under way."""
        self.pending: str | None = None
        """The words of the prompt that waits."""
        self._waiting: asyncio.Future[bool] | None = None

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

    def cancel(self) -> None:
        """Take back what waits."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(False)
