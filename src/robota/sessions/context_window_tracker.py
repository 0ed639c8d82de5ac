"""How full the context window is, and whether it is time to summarise.

The figures come from the estimator that every guard uses. A compaction that could not free enough does not
ask for another one until the conversation has grown by a good part of the window.
"""

from __future__ import annotations

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

    __slots__ = ("_conversation", "_floor", "_floor_epoch", "_threshold", "max_tokens")

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
        self._floor = 0
        self._floor_epoch = -1

    @property
    def state(self) -> ContextWindowState:
        return self.measure()

    @property
    def threshold(self) -> AutoCompactThreshold:
        return self._threshold

    @threshold.setter
    def threshold(self, value: AutoCompactThreshold) -> None:
        self._threshold = check_threshold(value)

    def measure(self, *extra: Message) -> ContextWindowState:
        """The model's view, with messages that are about to be recorded; costs as much as those. Nothing was
        used as long as nothing was said, so a cleared conversation is as empty as a new one."""
        conversation = self._conversation
        said = extra or len(conversation.messages_for_api()) > (conversation.system is not None)
        return window_state(conversation.tally.tokens(extra=extra) if said else 0, self.max_tokens)

    def note_compaction(self) -> ContextWindowState:
        """Measure what a compaction has left: nothing automatic can do better than that for a while."""
        state = self.measure()
        self._floor, self._floor_epoch = state.used_tokens, self._conversation.epoch
        return state

    @property
    def limit_tokens(self) -> int:
        """Where the window counts as full, also for those who compact by hand only."""
        return int(self.max_tokens * (self._threshold or DEFAULT_AUTO_COMPACT_THRESHOLD))

    @property
    def should_auto_compact(self) -> bool:
        """Whether it is time for an automatic compaction."""
        if self._threshold is False:
            return False
        used = self._conversation.tally.tokens()
        if used < self.max_tokens * self._threshold:
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
