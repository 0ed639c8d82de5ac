"""Stops what a session is doing, wherever it is: in the agent's run, in a hook, in a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.engine import RunControl
from robota.core.errors import SessionBusyError

if TYPE_CHECKING:
    from anyio import CancelScope

    from robota.core.robota import Robota


class TurnControl(RunControl):
    """Stops one prompt or compaction. The agent's own run inside it ends in its own, orderly way."""

    __slots__ = ("_agent",)

    def __init__(self, scope: CancelScope, agent: Robota) -> None:
        super().__init__(scope)
        self._agent = agent

    def abort(self) -> None:
        super().abort()
        self._agent.abort()  # at once: a run that never waits would start another tool until `_stop`

    def _stop(self) -> None:
        if self._ended:
            return  # asked for in the last moment; what runs by now is something else
        if self._agent.is_running:
            self._agent.abort()
        else:
            super()._stop()

    @property
    def is_inside(self) -> bool:
        """Whether the caller is a part of what is to be stopped."""
        import asyncio  # noqa: PLC0415 - a loop is running, so this is a look-up

        return asyncio.current_task() is self._task


class AbortSwitch:
    __slots__ = ("_agent", "_control")

    def __init__(self, agent: Robota) -> None:
        self._agent = agent
        self._control: TurnControl | None = None

    def abortable(self) -> CancelScope:
        """A stretch that `abort` ends: enter it at once."""
        from anyio import CancelScope  # noqa: PLC0415 - 15 ms that a session which never runs does not need

        scope = CancelScope()
        self._control = TurnControl(scope, self._agent)
        return scope

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
