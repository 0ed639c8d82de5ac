"""Stops what a session is doing, wherever it is: in the agent's run, in a hook, in a compaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyio import CancelScope

    from robota.core.robota import Robota


class AbortSwitch:
    __slots__ = ("_agent", "_loop", "_scope")

    def __init__(self, agent: Robota) -> None:
        self._agent = agent
        self._loop: Any = None
        self._scope: CancelScope | None = None

    @contextmanager
    def abortable(self) -> Iterator[CancelScope]:
        """A stretch that `abort` ends. The agent's own run inside it ends in its own, orderly way."""
        import asyncio  # noqa: PLC0415 - a loop is running, so this is a look-up

        from anyio import CancelScope  # noqa: PLC0415 - 15 ms that a session which never runs does not need

        self._loop = asyncio.get_running_loop()
        with CancelScope() as self._scope:
            try:
                yield self._scope
            finally:
                self._loop = None

    def abort(self) -> None:
        """Safe from any thread and from signal handlers."""
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(self._stop)
        except RuntimeError:
            return  # the loop is closed, so nothing runs

    def _stop(self) -> None:
        if self._agent.is_running:
            self._agent.abort()
        elif self._loop is not None and self._scope is not None:
            self._scope.cancel()
