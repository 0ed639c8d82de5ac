"""Asynchronous code for those who have no loop: one background loop thread per process.

It works in a script, in a notebook whose own loop is busy, and any number of times; HTTP clients made on it
stay usable from call to call.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

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
    job = _Job(work)
    try:
        loop.call_soon_threadsafe(job.start)
        job.ended.wait()
    except KeyboardInterrupt:
        loop.call_soon_threadsafe(job.cancel)  # comes after `start`, wherever Ctrl-C struck
        job.ended.wait(CLEANUP_SECONDS)
        raise
    return job.result()


class _Job(Generic[T]):
    """A coroutine on the background loop, watched from another thread."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self.ended = threading.Event()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(lambda _: self.ended.set())

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def result(self) -> T:
        assert self._task is not None
        return self._task.result()


def _background_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread  # shared by the process: a thread per call would not do
    with _lock:
        if _loop is None or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="robota-sync", daemon=True)
            _thread.start()
        return _loop
