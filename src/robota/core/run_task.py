"""The task in which a run happens: started once, stopped once, from any thread; and a limit on how long the
model that it waits for may be silent, and on how long it may take, cheap enough for every chunk.

A run has a task of its own so that stopping it is one `task.cancel()`, told apart from every cancellation
of its caller without counting. What is cancelled may still await in its `finally`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import nullcontext, suppress
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from robota.core.errors import ProviderError
from robota.core.events import TurnEvent

if TYPE_CHECKING:
    from robota.core.robota import Robota
    from robota.core.run import RunResult

LEAVE_SECONDS = 5.0
"""How long a caller who is cancelled waits for the run to put its things away."""
CLOSING_TURNS = 3
"""A stream that is dropped is closed by a task that the loop starts: one turn to make it, one to run it."""


class RunTask:
    """One piece of work of an agent."""

    __slots__ = ("_caller", "_ended", "_loop", "_on_end", "_over", "_stopped", "_thread", "aborted", "task")

    def __init__(self, work: Coroutine[Any, Any, None], on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._caller = asyncio.current_task()
        self._stopped = False
        self._over = False
        self._ended: asyncio.Event | None = None
        self.aborted = False
        """Asked to stop. Looked at between chunks, calls and rounds, which may come without a real wait."""
        self.task = self._loop.create_task(work)

    def abort(self) -> None:
        """Stop the work, from any thread and from signal handlers."""
        self.aborted = True
        # Also from the loop's own thread: a signal handler may have interrupted it at any point.
        self._call_soon(self._cancel)

    def _cancel(self) -> None:
        if not self._stopped:
            self._stopped = True
            self.task.cancel()

    @property
    def is_stopping(self) -> bool:
        """Whether somebody asked for it. What the task itself has counted is no evidence: up to Python 3.12 a
        `TaskGroup` whose child fails leaves a request behind that nobody made."""
        return self.aborted or self._stopped

    def check(self) -> None:
        """Stop here if somebody asked for it, also if a tool or a provider swallowed the request."""
        if self.aborted or self._stopped:
            self._stopped = True
            raise asyncio.CancelledError

    def call_in_loop(self, action: Callable[[], None]) -> None:
        """Do this on the run's own thread: at once if we are there, soon if a tool's thread asks."""
        if get_ident() == self._thread:
            action()
        else:
            self._call_soon(action)

    def _call_soon(self, action: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, so the run is over
            self._loop.call_soon_threadsafe(action)

    # --- waiting for it ----------------------------------------------------------------------------------

    async def __aenter__(self) -> asyncio.Task[None]:
        return self.task

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A caller who is cancelled takes the work along, and gives it a moment to end in good order."""
        if kind is not None:
            self._cancel()
            await wait_shielded(self.task)
        if self.task.done():
            self._end()
        else:
            self.task.add_done_callback(self._end)

    async def finish(self, agent: Robota, aborts: int) -> None:
        """Wait for the end of the work. If an abort came since the agent had counted so many, it may have
        missed the task, which was not known yet."""
        steps = agent.config.steps
        if agent.aborts != aborts or (steps is not None and steps.aborted):
            self.abort()
        await asyncio.wait((self.task,))
        if not self.task.cancelled():
            self.task.result()  # raises what the work raised
        elif not self.aborted:
            raise asyncio.CancelledError  # by whoever has cancelled the task itself

    def _end(self, task: asyncio.Task[None] | None = None) -> None:
        """It is over, its plugins included."""
        self._over = True
        self._on_end()
        if self._ended is not None:
            self._ended.set()

    async def wait(self) -> None:
        """Wait for the end, from any loop; not from inside, which would wait for itself."""
        if asyncio.current_task() in (self.task, self._caller):
            return
        if asyncio.get_running_loop() is self._loop:
            await self._wait()
        elif not self._loop.is_closed():
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._wait(), self._loop))

    async def _wait(self) -> None:
        if not self._over:
            self._ended = self._ended or asyncio.Event()
            await self._ended.wait()


def is_cancelled() -> bool:
    """Whether somebody cancelled the current task; false when code inside it raised the error by itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def forget_requests() -> None:
    """Drop what a task group left behind in the current task; real requests are with the `RunTask`."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


async def wait_shielded(task: asyncio.Task[Any], seconds: float = LEAVE_SECONDS) -> None:
    """Wait for a task although we are cancelled ourselves, but not for ever."""
    from anyio import move_on_after  # noqa: PLC0415 - only anyio's shield holds off anyio's own scopes

    with move_on_after(seconds, shield=True):
        await asyncio.wait((task,))


# --- a run as an iterator over its events ----------------------------------------------------------------


async def stream_run(
    agent: Robota, run: Callable[[], Coroutine[Any, Any, RunResult]]
) -> AsyncGenerator[TurnEvent, None]:
    """The events of a run that `run` starts."""
    if agent.streaming:
        await wait_for_readers(agent)
    agent.require_idle()  # before listening: the events of another run are not ours
    events = agent.events.open(TurnEvent)
    task = asyncio.create_task(run())
    task.add_done_callback(lambda _: events.close())
    agent.streaming += 1
    try:
        async for event in events:
            yield event
        await task
    finally:
        events.close()
        await _leave(agent, task)
        agent.streaming -= 1


async def wait_for_readers(agent: Robota) -> None:
    """Wait for a run whose stream was left by `break`.

    Python closes such a stream only some turns of the loop later; a run that follows must not trip over it.
    """
    for _ in range(CLOSING_TURNS):
        await asyncio.sleep(0)
    await agent.wait_for_abort()


async def _leave(agent: Robota, task: asyncio.Task[RunResult]) -> None:
    """End a run whose audience has gone, in good order if it has begun; its result interests nobody."""
    if not task.done():
        if agent.control is not None:
            agent.control.abort()  # not the agent, on which another run may be waiting
        else:
            task.cancel()
        try:
            await wait_shielded(task)  # the reader may itself be cancelled, and must not leave a run behind
        finally:
            task.cancel()
    if task.done() and not task.cancelled():
        task.exception()


# --- how long a model may take ---------------------------------------------------------------------------


class Deadline:
    """Ends what is inside with `LateError` when either time is over.

    What `asyncio.timeout` does, in a third of its time: a timer that cancels the task, and an exit that tells
    this cancellation from those of others by counting. One `call_later` is re-armed lazily from the time of
    the last chunk. A deadline scope per chunk would cost more than everything else the engine does with a
    delta.
    """

    __slots__ = ("_end", "_handle", "_idle", "_late", "_loop", "_requests", "_task", "_total", "last", "now")

    _handle: asyncio.Handle

    def __init__(self, idle: float | None, total: float | None) -> None:
        self._loop = loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None, "a deadline is for tasks"
        self._task = task
        self._requests = task.cancelling()
        self._idle = _NEVER if idle is None else idle
        self._total = _NEVER if total is None else total
        self._late: LateError | None = None
        self.now = loop.time
        self.last = now = loop.time()
        """When something was last heard; set it to `now()`."""
        self._end = now + self._total

    async def __aenter__(self) -> Self:
        # The timer is set by the first look, which comes when the task waits: the request is out by then.
        self._handle = self._loop.call_soon(self._look)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.cancel()
        late = self._late
        if late is not None and self._task.uncancel() <= self._requests and kind is asyncio.CancelledError:
            raise late from error

    def _look(self) -> None:
        now, silent = self.now(), self.last + self._idle
        if now >= silent:
            self._late = LateError("idle", self._idle)
        elif now >= self._end:
            self._late = LateError("total", self._total)
        else:
            self._handle = self._loop.call_at(min(self._end, silent), self._look)
            return
        self._task.cancel()


class LateError(Exception):
    """The time is over."""

    def __init__(self, kind: Literal["idle", "total"] | str, seconds: float) -> None:
        super().__init__(kind, seconds)
        self.kind = kind
        self.seconds = seconds

    def of(self, provider: str) -> ProviderError:
        """The same as an error of the provider that took too long."""
        what = "sent nothing" if self.kind == "idle" else "was still answering"
        return ProviderError(
            f"Provider call {self.kind} timeout after {self.seconds:g}s: {provider} {what}. "
            f"Try again, or raise the {self.kind} timeout.",
            provider=provider,
        )


Limit: TypeAlias = Deadline | nullcontext[None]
_NEVER = float("inf")
_UNLIMITED: nullcontext[None] = nullcontext()


def deadline(idle: float | None, total: float | None) -> Limit:
    """The deadline for a model call; a time that is `None`, infinite or not positive is no limit."""
    idle = idle if idle is not None and 0 < idle < _NEVER else None
    total = total if total is not None and 0 < total < _NEVER else None
    return _UNLIMITED if idle is None and total is None else Deadline(idle, total)
