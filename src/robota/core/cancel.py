"""Telling a cancellation of ours from one that foreign code made up."""

from __future__ import annotations

import asyncio


def is_cancelled_from_outside() -> bool:
    """Whether somebody cancelled the current task; false when code inside it raised the error by itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
