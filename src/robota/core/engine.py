"""What all parts of one run share: the agent's fixed parts, and the switch that stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from threading import get_ident
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from robota.core.bus import EventBus
from robota.core.conversation import ConversationStore
from robota.core.plugin import PluginChain
from robota.core.ports import Ports
from robota.core.provider import ModelSettings, NativeWebTools, Provider, ToolSchema
from robota.core.tool import Ask, FileVersions, Tool
from robota.core.tool_batch import RunTool

if TYPE_CHECKING:
    from anyio import CancelScope

DEFAULT_CAPACITY_HINT = "Start a new conversation, compact this one, or choose a model with a larger window."


class Engine(Struct, kw_only=True):
    """An agent as its loop sees it, taken when a run starts. What is changed later counts from the next run;
    only the model may be exchanged in between, all at once, with `use`."""

    provider: Provider
    model: str
    tools: Mapping[str, Tool]
    schemas: tuple[ToolSchema, ...]
    conversation: ConversationStore
    events: EventBus
    plugins: PluginChain
    ports: Ports
    settings: ModelSettings
    run_tool: RunTool
    native_web_tools: NativeWebTools | None
    context_window: int
    capacity_hint: str
    idle_timeout: float | None
    total_timeout: float | None
    max_parallel_tools: int | None
    max_identical_failures: int
    agent_id: str
    agent_name: str
    conversation_id: str
    session_id: str
    cwd: str
    files: FileVersions
    deps: Any
    ask: Ask | None

    def use(
        self, provider: Provider, model: str, *, context_window: int, native_web_tools: NativeWebTools | None
    ) -> None:
        """Ask another model from the next request on; the one that is under way is not touched."""
        self.provider = provider
        self.model = model
        self.context_window = context_window
        self.native_web_tools = native_web_tools


class TaskControl:
    """Stops what the task that made it is doing, from any thread and from signal handlers."""

    __slots__ = ("_before", "_ended", "_loop", "_nudged", "_task", "_waiting", "aborted")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._before = self._task.cancelling() if self._task is not None else 0
        self._ended = False
        self._nudged = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] | None = None
        self.aborted = False
        """Asked to stop. Looked at between two chunks, because buffered chunks come without a real wait."""

    def abort(self) -> None:
        self.aborted = True
        try:
            # Also from the loop's own thread: a signal handler may have interrupted it at any point.
            self._loop.call_soon_threadsafe(self._stop)
        except RuntimeError:
            return  # the loop is closed, so the run is over

    def _stop(self) -> None:
        """Cancel the task, once: it may still await in its `finally`."""
        if not self._nudged and self._task is not None:
            self._nudged = True
            self._task.cancel()

    def _take_back(self) -> bool:
        """Undo `_stop`; whether it was that, and that alone, which cancelled the task."""
        if not self._nudged or self._task is None:
            return False
        self._nudged = False
        return self._task.uncancel() <= self._before

    def end(self) -> None:
        """It is over, its plugins included."""
        self._ended = True
        for loop, waiter in self._waiting or ():
            loop.call_soon_threadsafe(_wake, waiter)

    async def wait_until_ended(self) -> None:
        """Wait for `end`, from any loop; not from inside the task, which would wait for itself."""
        if asyncio.current_task() is self._task:
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        if self._waiting is None:
            self._waiting = []
        self._waiting.append((loop, waiter))
        if not self._ended:  # looked at after joining the list: `end` may run in another thread
            await waiter


class RunControl(TaskControl):
    """Stops one run."""

    __slots__ = ("_in_tool", "_scope", "_thread")

    def __init__(self, scope: CancelScope) -> None:
        super().__init__()
        self._scope = scope
        self._thread = get_ident()
        self._in_tool = False

    def _stop(self) -> None:
        if self._in_tool:
            super()._stop()
        else:
            self._scope.cancel()

    async def run_single(self, work: Awaitable[None]) -> None:
        """Await a tool in the run's own task. An abort cancels it once, so that it may still await in its
        `finally`, which the scope around the run would interrupt again and again.

        A task of its own would do the same, but its extra turns of the loop make hundreds of runs at once
        find every connection idle at the same moment, which doubled their cost.
        """
        self._in_tool = True
        try:
            await work
        except asyncio.CancelledError:
            if not self._nudged or self._task is None or self._task.cancelling() > self._before + 1:
                raise  # not by us, or by somebody else as well
        finally:
            self._in_tool = False
            self._take_back()
        await self.checkpoint()

    def is_cancelled(self) -> bool:
        """Whether somebody cancelled the current task since the run began."""
        task = asyncio.current_task()
        return task is not None and task.cancelling() > (self._before if task is self._task else 0)

    def call_in_loop(self, action: Callable[[], None]) -> None:
        """Do this on the run's own thread: at once if we are there, soon if a tool's thread asks."""
        if get_ident() == self._thread:
            action()
            return
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            return  # the loop is closed: the thread outlived its run

    async def checkpoint(self) -> None:
        """Stop here if somebody asked for it, also if a tool or a provider swallowed the request."""
        if self.aborted:
            from anyio.lowlevel import checkpoint  # noqa: PLC0415 - loaded by the run around us

            self._scope.cancel()
            await checkpoint()
        if self.is_cancelled():
            raise asyncio.CancelledError


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
