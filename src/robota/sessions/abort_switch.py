"""Stops what a session is doing, wherever it is: in the agent's run, in a hook, in a compaction."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from robota.core.engine import TaskControl
from robota.core.errors import SessionBusyError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from robota.core.robota import Robota


class TurnControl(TaskControl):
    """Stops one prompt or compaction: `with` the stretch that it ends.

    The agent's own run inside it ends in its own, orderly way; anything else is cancelled where it waits.
    """

    __slots__ = ("_agent", "_left", "stopped")

    def __init__(self, agent: Robota) -> None:
        super().__init__()
        self._agent = agent
        self._left = False
        self.stopped = False
        """The stretch was left half way."""

    def abort(self) -> None:
        super().abort()
        self._agent.abort()  # at once: a run that never waits would start another tool until `_stop`

    def _stop(self) -> None:
        if self._left:
            return  # asked for in the last moment; what runs by now is something else
        if self._agent.is_running:
            self._agent.abort()
        else:
            super()._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        alone = self._take_back()
        self._left = True
        self.stopped = alone and kind is not None and issubclass(kind, asyncio.CancelledError)
        return self.stopped

    @property
    def is_inside(self) -> bool:
        """Whether the caller is a part of what is to be stopped."""
        return asyncio.current_task() is self._task


class AbortSwitch:
    __slots__ = ("_agent", "_control")

    def __init__(self, agent: Robota) -> None:
        self._agent = agent
        self._control: TurnControl | None = None

    def abortable(self) -> TurnControl:
        """A stretch that `abort` ends: enter it at once."""
        self._control = control = TurnControl(self._agent)
        return control

    @property
    def aborted(self) -> bool:
        """Whether what is under way was asked to stop."""
        return self._control is not None and self._control.aborted

    def abort(self) -> None:
        """Safe from any thread and from signal handlers."""
        control = self._control
        if control is not None:
            control.abort()

    def end(self) -> None:
        """What was under way is over, its records included."""
        control, self._control = self._control, None
        if control is not None:
            control.end()

    async def wait_until_ended(self) -> None:
        """Wait for `end`."""
        control = self._control
        if control is not None and control.is_inside:
            raise SessionBusyError(
                "A session cannot wait for the end of its own run inside it: abort() it there, and shut it "
                "down outside."
            )
        if control is not None:
            await control.wait_until_ended()
