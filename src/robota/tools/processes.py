"""One table of the processes that an agent runs: how many at a time, what they print, who is still there.

Every process of a table counts against one limit. A foreground process is awaited; one in the background is
listed under an id, keeps the beginning and the end of what it printed, and is ended when the table closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Literal, Self, TypeAlias

import anyio
from msgspec import Struct, field

from robota._lazy_pattern import lazy_pattern
from robota.core.errors import ConfigurationError, ToolExecutionError, describe_exception
from robota.core.plain_text import looks_binary, to_plain_text
from robota.core.process import Capture, OnOutput, ProcessResult, Start, run_process, to_its_end

PROCESS_LIMIT = 8
"""Processes of one table at a time; all but one of them may be in the background."""
LOG_LIMIT = 64 * 1024
"""Bytes kept of the beginning and again of the end of what a background process printed."""
FINISHED_LIMIT = 32
"""Background processes that are remembered after their end."""

ProcessStatus: TypeAlias = Literal["running", "exited", "stopped", "failed"]
"""`stopped` by us, `failed` when it could not be started."""

_UNFINISHED = lazy_pattern(
    rb"(?:\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\n]{0,256})?"
    rb"|[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z"
)
"""An escape sequence or a character of which only the beginning has come yet."""


class Command(Struct, frozen=True, kw_only=True):
    """A program to run, and where."""

    argv: Sequence[str]
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    """Without credentials of ours when it is not given."""
    timeout: float | None = None
    """Seconds."""
    start: Start | None = None
    """How it is started, if not by the system."""

    async def run(
        self, on_output: OnOutput | None, on_start: Callable[[], object] | None = None
    ) -> ProcessResult:
        return await run_process(
            self.argv,
            cwd=self.cwd,
            env=self.env,
            timeout=self.timeout,
            start=self.start,
            on_start=on_start,
            on_output=on_output,
        )


class OutputLog(Capture):
    """What a process printed on both outputs, in the order it came; of much, the beginning and the end."""

    __slots__ = ()

    def read(self, start: int = 0, *, ended: bool = True, whole_lines: bool = False) -> tuple[str, int]:
        """The text from a position on, and the position to go on from.

        While the process runs (`ended=False`) a character or escape sequence that is not complete yet, or
        with `whole_lines` the last line, is left for the next time.
        """
        tail = bytes(self._tail[-self._limit :])
        tail_start = self.total - len(tail)
        head = bytes(self._head[start:])
        tail = tail[max(start - tail_start, 0) :]
        missing = tail_start - max(start, len(self._head))
        data = tail if missing > 0 else head + tail
        held = 0 if ended else _unfinished(data, whole_lines)
        text = _to_text(data[: len(data) - held])
        if missing > 0:
            text = f"{_to_text(head)}\n[... {missing:,} bytes left out ...]\n{text}"
        return text, self.total - held


def _unfinished(data: bytes, whole_lines: bool) -> int:
    if whole_lines:
        return len(data) - (data.rfind(b"\n") + 1)
    found = _UNFINISHED.search(data, max(len(data) - 300, 0))
    return len(data) - found.start() if found else 0


def _to_text(data: bytes) -> str:
    return f"[binary output, {len(data):,} bytes]" if looks_binary(data) else to_plain_text(data)


class BackgroundProcess(Struct, eq=False):
    """A process that runs beside the conversation."""

    id: str
    title: str
    log: OutputLog
    position: int = 0
    """How far its reader has got."""
    on_output: Callable[[bytes], object] | None = None
    """Is told what it prints as it does."""
    status: ProcessStatus = "running"
    result: ProcessResult | None = None
    """How it ended; `None` while it runs and when it was stopped."""
    _scope: anyio.CancelScope = field(default_factory=lambda: anyio.CancelScope())
    _started: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_running(self) -> bool:
        return self.status == "running"

    def read_new(self, *, whole_lines: bool = False) -> tuple[str, int]:
        """What came since `position`, and where that ends; the reader sets `position` when it has it."""
        return self.log.read(self.position, ended=not self.is_running, whole_lines=whole_lines)

    async def wait(self) -> None:
        """Wait for its end."""
        await self._ended.wait()

    async def stop(self) -> None:
        """End it and everything it started; no harm if it has ended."""
        self._scope.cancel()
        await self._ended.wait()

    def _hear(self, descriptor: int, data: bytes) -> None:
        self.log.add(data)
        if self.on_output is not None:
            self.on_output(data)

    async def _run(self, command: Command, on_end: Sequence[Callable[[], object] | None]) -> None:
        try:
            with self._scope:
                self.result = await command.run(self._hear, self._started.set)
            self.status = "stopped" if self.result is None else "failed" if self.result.error else "exited"
        except Exception as error:  # noqa: BLE001 - whoever waits for the process is told, as of any failure
            self.result = ProcessResult(error=describe_exception(error))
            self.status = "failed"
        finally:
            if self.status == "running":
                self.status = "stopped"
            self._started.set()
            self._ended.set()
            for action in on_end:
                if action is not None:
                    action()


class ProcessTable:
    """The running processes of one agent or session.

    `run` works at any time. Background processes need an open table: `async with ProcessTable() as table`;
    leaving it ends them all.
    """

    __slots__ = ("_count", "_limit", "_log_limit", "_made_slots", "_processes", "_tasks", "on_start")

    def __init__(self, *, limit: int = PROCESS_LIMIT, log_limit: int = LOG_LIMIT) -> None:
        if limit < 2:  # one of them is kept for the foreground
            raise ConfigurationError(f"A process table needs room for at least two processes, not {limit}.")
        self._limit = limit
        self._log_limit = log_limit
        self._made_slots: anyio.Semaphore | None = None
        self._tasks: set[asyncio.Task[None]] | None = None
        """Of the processes in the background; `None` while the table is not open. No task group of anyio's: a
        session opens its table before it is known whether anything will run, and loading one takes as long as
        opening all the rest."""
        self._processes: dict[str, BackgroundProcess] = {}
        self._count = 0
        self.on_start: Callable[[BackgroundProcess], object] | None = None
        """Is told of each process that is started in the background, just before it is."""

    async def __aenter__(self) -> Self:
        self._tasks = set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks, self._tasks = self._tasks, None
        if tasks:
            for process in self.running:
                process._scope.cancel()
            with anyio.CancelScope(shield=True):  # whoever is cancelled meanwhile leaves none behind
                await to_its_end(asyncio.wait(tuple(tasks)))  # it empties meanwhile

    @property
    def _slots(self) -> anyio.Semaphore:
        """Made with the first process, since loading it takes long too. Unlike asyncio's it may wait in one
        loop after another."""
        self._made_slots = self._made_slots or anyio.Semaphore(self._limit)
        return self._made_slots

    @property
    def processes(self) -> tuple[BackgroundProcess, ...]:
        """Those in the background, oldest first; running ones and the last that ended."""
        return tuple(self._processes.values())

    @property
    def running(self) -> tuple[BackgroundProcess, ...]:
        return tuple(process for process in self._processes.values() if process.is_running)

    def find(self, identity: str) -> BackgroundProcess | None:
        return self._processes.get(identity)

    async def run(self, command: Command, on_output: OnOutput | None = None) -> ProcessResult:
        """Run a program to its end, as soon as there is room for it."""
        async with self._slots:
            return await command.run(on_output)

    async def start(
        self,
        command: Command,
        *,
        title: str,
        kind: str = "process",
        on_end: Callable[[], object] | None = None,
    ) -> BackgroundProcess:
        """Start a program in the background; it has started, or failed to, when this returns.

        `on_end` is called once, whatever happens. Raises `ToolExecutionError` when there is no room.
        """
        with ExitStack() as undo:
            if on_end is not None:
                undo.callback(on_end)
            process = self._register(kind, title)
            undo.callback(self._processes.pop, process.id)
            await self._slots.acquire()
            undo.callback(self._slots.release)
            if self.on_start is not None:
                self.on_start(process)
            tasks = self._require_open()
            task = asyncio.create_task(process._run(command, (self._slots.release, on_end)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            undo.pop_all()
        return await self._wait_for_start(process)

    def _register(self, kind: str, title: str) -> BackgroundProcess:
        """A place in the list, taken before anything is awaited: starts at the same time count each other."""
        self._require_open()
        running = self.running
        if len(running) >= self._limit - 1:
            names = ", ".join(f"{process.id} ({process.title[:40]})" for process in running)
            raise ToolExecutionError(
                f"{len(running)} processes run in the background, and that is the limit. "
                f"Stop one first: {names}."
            )
        self._count += 1
        process = BackgroundProcess(f"{kind}_{self._count}", title, OutputLog(self._log_limit))
        self._processes[process.id] = process
        return process

    def _require_open(self) -> set[asyncio.Task[None]]:
        if self._tasks is None:
            raise ToolExecutionError("Nothing can run in the background: the process table is not open.")
        return self._tasks

    async def _wait_for_start(self, process: BackgroundProcess) -> BackgroundProcess:
        known = False
        try:
            await process._started.wait()
            known = True
        finally:
            if not known:  # its id never reached anybody
                process._scope.cancel()
        ended = [process.id for process in self._processes.values() if not process.is_running]
        for identity in ended[:-FINISHED_LIMIT]:
            del self._processes[identity]
        return process
