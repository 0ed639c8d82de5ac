"""Asynchronous code for those who have no loop: one background loop thread per process.

It works in a script, in a notebook whose own loop is busy, and any number of times; HTTP clients made on it
stay usable from call to call.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from robota.core.errors import ConfigurationError

T = TypeVar("T")
CLEANUP_SECONDS = 5.0
"""How long Ctrl-C waits for the cancelled work to put its things away."""

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result. Ctrl-C cancels the work before it is raised."""
    loop = _background_loop()
    if threading.current_thread() is _thread:
        work.close()
        raise ConfigurationError(
            "run_sync() was called from code that run_sync() is running; use `await agent.run(...)` there."
        )
    ended = threading.Event()

    async def body() -> T:
        try:
            return await work
        finally:
            ended.set()

    future = asyncio.run_coroutine_threadsafe(body(), loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        ended.wait(CLEANUP_SECONDS)
        raise


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread  # the one singleton of the package: decisions.md
    with _lock:
        if _loop is None or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="robota-sync", daemon=True)
            _thread.start()
        return _loop
