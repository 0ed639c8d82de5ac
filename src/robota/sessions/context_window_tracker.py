"""How full the context window is, and whether it is time to summarise.

The figures come from the estimator that every guard uses. A compaction that could not free enough does not
ask for another one until the conversation has grown by a good part of the window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from robota.core.context import (
    CONTEXT_HARD_BLOCK_THRESHOLD,
    ContextWindowState,
    window_state,
)
from robota.core.conversation import ConversationStore
from robota.core.errors import ValidationError
from robota.core.messages import Message

AutoCompactThreshold: TypeAlias = float | Literal[False]
"""A fraction of the window, greater than 0 and at most 1; `False` leaves compaction to the user."""

DEFAULT_AUTO_COMPACT_THRESHOLD = 0.835
REGROWTH = 0.05
"""The part of the window that must fill up again before a compaction is followed by another automatic one."""


class ContextWindowTracker:
    """Watches how full the context window is."""

    __slots__ = ("_conversation", "_floor", "_floor_epoch", "_state", "_threshold", "max_tokens")

    def __init__(
        self,
        conversation: ConversationStore,
        max_tokens: int,
        threshold: AutoCompactThreshold = DEFAULT_AUTO_COMPACT_THRESHOLD,
    ) -> None:
        self._conversation = conversation
        self.max_tokens = max_tokens
        """The model's window; set it when the model changes."""
        self._threshold = check_threshold(threshold)
        self._state: ContextWindowState | None = None
        self._floor = 0
        self._floor_epoch = -1

    @property
    def state(self) -> ContextWindowState:
        """As of the latest update."""
        return self.update() if self._state is None else self._state

    @property
    def threshold(self) -> AutoCompactThreshold:
        return self._threshold

    @threshold.setter
    def threshold(self, value: AutoCompactThreshold) -> None:
        self._threshold = check_threshold(value)

    def update(self, extra: Iterable[Message] = ()) -> ContextWindowState:
        """Measure the model's view, with messages that are about to be recorded; costs as much as those."""
        tally = self._conversation.tally
        added = tuple(extra)
        if added:
            from copy import copy  # noqa: PLC0415 - once per prompt, and not by an agent that never runs

            tally = copy(tally)
            for message in added:
                tally.add(message)
        self._state = window_state(tally.estimate().tokens, self.max_tokens)
        return self._state

    def note_compaction(self) -> ContextWindowState:
        """Measure what a compaction has left: nothing automatic can do better than that for a while."""
        state = self.update()
        self._floor, self._floor_epoch = state.used_tokens, self._conversation.epoch
        return state

    @property
    def limit_tokens(self) -> int:
        """Where the window counts as full, also for those who compact by hand only."""
        return int(self.max_tokens * (self._threshold or DEFAULT_AUTO_COMPACT_THRESHOLD))

    @property
    def should_auto_compact(self) -> bool:
        """Whether the latest state asks for an automatic compaction."""
        used = self.state.used_tokens
        if self._threshold is False or used < self.max_tokens * self._threshold:
            return False
        if self._floor_epoch != self._conversation.epoch:  # cleared since: the floor is of another history
            return True
        needed = self._floor + self.max_tokens * REGROWTH
        refused = self.max_tokens * CONTEXT_HARD_BLOCK_THRESHOLD
        # Before a request is refused for its length, even a little room is worth a try.
        return used >= (min(needed, refused) if self._floor < refused else needed)


def check_threshold(value: object) -> AutoCompactThreshold:
    """The value if it can be a threshold."""
    if value is False:
        return False
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
        return value
    raise ValidationError(
        "autoCompactThreshold must be a number greater than 0 and at most 1.", field="autoCompactThreshold"
    )
