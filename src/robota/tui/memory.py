"""The look for cycles that nobody refers to, kept short while somebody types."""

from __future__ import annotations

import gc
from collections.abc import Callable

YOUNG = 2_000
"""Objects between two looks. The first of them look at no more than that."""


def keep_what_is_loaded() -> Callable[[], None]:
    """What is there now stays, and is not looked at again: a look at everything takes as long as several
    frames, and a key waits for it. Returns what undoes this."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)

    def undo() -> None:
        gc.unfreeze()
        gc.set_threshold(*before)

    return undo
