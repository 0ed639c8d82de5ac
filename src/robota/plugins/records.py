"""What a plugin gathers: the latest in memory, and all of it on its way to a storage.

Noting something never waits. Batches are written beside the run, when enough has come together or after a
while, and freed of secrets in a thread, which takes longer than the rest. What a storage does not take is
kept for the next time, within bounds, and told once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count, islice
from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread
from msgspec import to_builtins

from robota.core.errors import PluginError
from robota.core.messages import JsonObject
from robota.plugins.storage.port import Entry, Storage

if TYPE_CHECKING:
    from robota.core.plugin import PluginContext

MAX_BATCH = 500
"""Entries of one write, however many wait."""


class Pending(NamedTuple):
    """What is to be written, or what tells it then: it may have changed meanwhile."""

    value: JsonObject | Callable[[], JsonObject]
    key: str


class Records:
    """Belongs to one plugin and to those that watch subagents for it."""

    def __init__(
        self, owner: str, storage: Storage | None, *, limit: int, batch: int = 1, interval: float = 0.0
    ) -> None:
        """Without a storage the latest are all there is."""
        self.owner = owner
        self.storage = storage
        self.latest: deque[JsonObject] = deque(maxlen=limit)
        self.enabled = True
        self.written = 0
        self.dropped = 0
        """Entries that were lost because the storage took nothing for too long."""
        self.failures = 0
        self.trouble = ""
        """Why the latest write failed; empty when it did not."""
        self._batch = batch
        self._interval = interval
        self._pending: dict[str | int, Pending] = {}
        """By key, else by a number: an entry takes the place of the one with its key here too."""
        self._numbers = count()
        self._room = max(limit, 2 * batch)
        self._redact: Callable[[JsonObject], JsonObject] = lambda value: value
        self._notice: Callable[[str], None] = lambda _: None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def bind(self, context: PluginContext) -> None:
        self._redact, self._notice = context.redact, context.notice

    def add(self, value: JsonObject, key: str = "") -> None:
        """Note it."""
        self.latest.append(value)
        if self.storage is not None:
            self.put(value, key)

    def put(self, value: JsonObject | Callable[[], JsonObject], key: str = "") -> None:
        """Note it for the storage alone."""
        name = key or next(self._numbers)
        if self._pending.pop(name, None) is None and len(self._pending) >= self._room:
            del self._pending[next(iter(self._pending))]
            self.dropped += 1
        self._pending[name] = Pending(value, key)
        if len(self._pending) >= self._batch and not self.trouble:
            self._start()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._start)

    @property
    def waiting(self) -> int:
        return len(self._pending)

    def _start(self) -> asyncio.Task[None]:
        self._stop_timer()
        if self._task is None:
            self._task = asyncio.create_task(self._drain(), name=f"{self.owner} plugin writes")
        return self._task

    def hurry(self) -> None:
        """Begin to write what waits, without waiting for it."""
        if self._pending and not self.trouble:
            self._start()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def flush(self) -> None:
        """Write what was noted so far; a failure is in `trouble`."""
        while self._task is not None:
            await asyncio.wait((self._task,))
        if self._pending:
            await asyncio.wait((self._start(),))

    async def aclose(self) -> None:
        try:
            await self.flush()
        finally:
            self._stop_timer()
            if self._task is not None:
                self._task.cancel()

    async def read(self) -> list[Entry]:
        """What the storage has; what memory has where there is none."""
        if self.storage is None:
            return [Entry(value) for value in self.latest]
        await self.flush()
        return await self.storage.read()

    async def _drain(self) -> None:
        storage, pending = self.storage, self._pending
        assert storage is not None, "nothing is noted for a storage that is not there"
        try:
            while pending:
                batch = dict(islice(pending.items(), MAX_BATCH))
                found = [(each.value() if callable(each.value) else each.value) for each in batch.values()]
                values = await to_thread.run_sync(self._clean, found)
                keys = (each.key for each in batch.values())
                await storage.write([Entry(value, key) for value, key in zip(values, keys, strict=True)])
                for name, each in batch.items():
                    if pending.get(name) is each:  # else a newer one has its place, or it made room
                        del pending[name]
                self.written += len(batch)
                self.trouble = ""
        except PluginError as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - a storage of somebody else; a run must not hear of it
            self._fail(f"{type(error).__name__}: {error}")
        finally:
            self._task = None

    def _clean(self, values: list[JsonObject]) -> list[JsonObject]:
        return [self._redact(to_builtins(value)) for value in values]

    def _fail(self, why: str) -> None:
        self.failures += 1
        if not self.trouble:
            import logging  # noqa: PLC0415 - only when something went wrong

            sentence = f"The plugin {self.owner!r} could not write: {why} It will try again."
            logging.getLogger("robota.plugins").warning(sentence)
            self._notice(sentence)
        self.trouble = why
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(max(self._interval, 1.0), self._start)
