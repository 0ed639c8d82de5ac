"""What crosses threads and event loops in tests: a latch, and a server that runs in a thread of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from threading import Event, Lock, Thread
from typing import Any, TypeVar

PATIENCE = 30.0
"""Seconds a test waits for something that should happen at once, before it fails with a sentence."""
Server = TypeVar("Server", bound=AbstractAsyncContextManager[Any, Any])


class Latch:
    """A door that opens once and lets everybody through, whatever thread or event loop they wait in.

    Opening is safe from any thread and a second time changes nothing.
    """

    __slots__ = ("_callbacks", "_lock", "_opened", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._opened = Event()
        self._lock = Lock()
        self._callbacks: list[Callable[[], object]] = []

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    def open(self) -> None:
        with self._lock:
            self._opened.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def then(self, callback: Callable[[], object]) -> None:
        """Call it when the latch opens, in the thread that opens it; at once when it is open already."""
        with self._lock:
            if not self._opened.is_set():
                self._callbacks.append(callback)
                return
        callback()

    async def wait(self, timeout: float = PATIENCE) -> None:
        if self.is_open:
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def release() -> None:
            if not future.done():
                future.set_result(None)

        def wake() -> None:
            if not loop.is_closed():  # the waiter may have given up together with its loop
                loop.call_soon_threadsafe(release)

        self.then(wake)
        try:
            await asyncio.wait_for(future, timeout)
        except TimeoutError:
            raise TimeoutError(self._complaint(timeout)) from None

    def wait_in_thread(self, timeout: float = PATIENCE) -> None:
        """`wait()` for tests without an event loop."""
        if not self._opened.wait(timeout):
            raise TimeoutError(self._complaint(timeout))

    def _complaint(self, timeout: float) -> str:
        return f"Waited {timeout:g} s, and this did not happen: {self._what}."


@contextmanager
def running_in_thread(server: Server) -> Iterator[Server]:
    """The server, entered and left in its own loop; what it raises on leaving is raised here."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name=type(server).__name__, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
        try:
            yield server
        finally:
            leave = server.__aexit__(*sys.exc_info())
            asyncio.run_coroutine_threadsafe(leave, loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
