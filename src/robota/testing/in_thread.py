"""Runs a server of tests in a thread with an event loop of its own, for tests that have none or several."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

Server = TypeVar("Server", bound=AbstractAsyncContextManager[Any, Any])


@contextmanager
def running_in_thread(server: Server) -> Iterator[Server]:
    """The server, entered and left in its own loop; what it raises on leaving is raised here."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=type(server).__name__, daemon=True)
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
