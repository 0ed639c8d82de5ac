"""Work that goes on until it is done or a signal ends it, in good order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
TERMINATED = 128 + signal.SIGTERM


def serve(work: Coroutine[Any, Any, object], *, terminated: int = TERMINATED) -> int:
    """Run it in an event loop of its own; the exit code, after SIGTERM `terminated`. Each signal cancels it
    once."""
    code = asyncio.run(_serve(work))
    return terminated if code == TERMINATED else code


async def _serve(work: Coroutine[Any, Any, object]) -> int:
    loop, told = asyncio.get_running_loop(), 0
    task = asyncio.ensure_future(work)

    def end(number: int) -> None:
        nonlocal told
        told = told or 128 + number
        task.cancel()

    handled = [number for name in SIGNALS if (number := getattr(signal, name, None)) is not None]
    for number in handled:
        with suppress(NotImplementedError):  # Windows: Ctrl-C is an exception there
            loop.add_signal_handler(number, end, number)
    try:
        await asyncio.wait((task,))
    finally:
        for number in handled:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
        if not task.done():
            task.cancel()
    if task.cancelled():
        return told
    task.result()
    return told
