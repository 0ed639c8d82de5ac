"""What a session adds to a run, inside it: before the prompt, between two rounds, before the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from robota.core.errors import RobotaError
    from robota.core.messages import Prompt, StopReason, UserMessage
    from robota.core.run import RunState


class RunSteps(Protocol):
    """Called by the loop where every tool call has its result, so that messages may be added.

    All of it runs in the task of the run: an abort stops it like anything else there. What a step raises
    ends the run with that error.
    """

    shown: str | None
    """What front ends show of the prompt, if that may be other words than the model gets."""

    @property
    def aborted(self) -> bool:
        """Somebody wants an end, maybe since before the agent knew of the run, which then stops at once."""
        ...

    async def start(self, prompt: Prompt) -> Prompt:
        """The run has begun; the prompt to record in the place of the given one."""
        ...

    async def before_round(self, run: RunState) -> Sequence[UserMessage]:
        """The model is about to be asked; what it should know by then."""
        ...

    async def before_end(self, run: RunState, error: RobotaError | None) -> Sequence[UserMessage]:
        """The run is about to end, with this error if there is one; with messages it goes on."""
        ...


class StopRun(Exception):
    """Raised by a step: the run ends here, in good order, with the words it has."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason
