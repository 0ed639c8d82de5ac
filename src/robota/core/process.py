"""The one place that starts and ends child processes; hooks and the Bash tool share it.

A child runs in a session of its own, without our descriptors, keys or terminal. Whatever it does (floods,
hangs, ignores signals, leaves children behind, keeps the pipe open), `run_process` comes back with a result
in bounded time and bounded memory, and cancelling it leaves nothing running, nor does `kill -9` of us
(`process_tree.GUARDIAN`). When the child ends by itself, processes it left in its group are ended too; one
that started a session of its own (`setsid`, a daemon) lives on and is reported.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import IO, Protocol, TypeAlias, TypeVar, cast

import anyio
from msgspec import Struct

from robota.core.plain_text import looks_binary, to_plain_text
from robota.core.ports import new_uuid
from robota.core.process_tree import (
    GUARDIAN,
    Family,
    group_is_alive,
    group_of,
    lowest_relative,
    process_name,
)

CALL_VARIABLE = "ROBOTA_CALL"
"""Every child carries it, so that descendants which left the process group can be found."""
GRACE_SECONDS = 2.0
"""Between asking a group to end and ending it."""
DRAIN_SECONDS = 0.5
"""How long output may still come in after the child itself is gone."""
OUTPUT_LIMIT = 64 * 1024
"""Bytes kept of the beginning and again of the end of each stream."""

_LAST_RESORT_SECONDS = 1.0

T = TypeVar("T")
OnOutput: TypeAlias = Callable[[int, bytes], None]
"""Called with the descriptor (1 or 2) and the bytes, as they come."""


class Start(Protocol):
    """Starts a program in a session of its own and tells the protocol of it, as `loop.subprocess_exec` does;
    raises OSError when it cannot."""

    async def __call__(
        self, protocol: asyncio.SubprocessProtocol, *, cwd: str | None, env: Mapping[str, str], stdin: int
    ) -> None: ...


class ProcessResult(Struct, frozen=True, kw_only=True):
    """How a process ended and what it said."""

    exit_code: int | None = None
    """`None` when it never started or a signal ended it."""
    signal: str | None = None
    """Name of the signal that ended it, such as `SIGKILL`."""
    stdout: str = ""
    stderr: str = ""
    stdout_dropped: int = 0
    """Bytes of the middle that were not kept."""
    stderr_dropped: int = 0
    timed_out: bool = False
    duration: float = 0.0
    error: str | None = None
    """Why it could not be started."""
    ended: tuple[str, ...] = ()
    """Processes it left behind that were ended, as `pid command`."""
    survivors: tuple[str, ...] = ()
    """Processes in sessions of their own that still run."""


def clean_environment(
    base: Mapping[str, str] | None = None,
    *,
    keep: Collection[str] = (),
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment for a child: `base` (ours) without credentials but those in `keep`, then `extra`."""
    from robota.core.credentials import without_credentials  # noqa: PLC0415 - when a child is started

    return dict(without_credentials(os.environ if base is None else base, keep)) | dict(extra or {})


async def run_process(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float | None = None,
    output_limit: int = OUTPUT_LIMIT,
    start: Start | None = None,
    on_start: Callable[[], object] | None = None,
    on_output: OnOutput | None = None,
) -> ProcessResult:
    """Run a program to its end, at most `timeout` seconds; `stdin=None` means an empty input.

    A program that cannot be started is a result with `error`, not an exception. `env` defaults to
    `clean_environment()` and is otherwise used as given. `start` starts it in another way than the system's.
    `on_start` and `on_output` are told as it happens.
    """
    call_id = new_uuid()
    variables = dict(clean_environment() if env is None else env)
    # Nested calls append, so that the outer call still finds what an inner one started.
    variables[CALL_VARIABLE] = f"{variables.get(CALL_VARIABLE, '')}/{call_id}"
    child = _Child(call_id, output_limit, on_output)
    started = time.monotonic()
    await anyio.lowlevel.checkpoint_if_cancelled()
    GUARDIAN.begin(call_id)
    try:
        # Interrupted half-way, asyncio kills the child alone and waits until the last of its own children
        # has let go of the pipes, which may be never.
        error = await to_its_end(_start(child, argv, cwd, variables, stdin, start))
        if error is None:
            if on_start is not None:
                on_start()
            with anyio.move_on_after(timeout):
                await child.exited.wait()
        timed_out = error is None and not child.exited.is_set()
    finally:
        try:
            # A shield with a deadline: the end of a child must not stay half done.
            enough = GRACE_SECONDS + 2 * DRAIN_SECONDS + _LAST_RESORT_SECONDS
            with anyio.move_on_after(enough, shield=True) as shield:
                await _end(child)
            if shield.cancelled_caught:
                raise TimeoutError("A child process could not be ended in time.")
        finally:
            GUARDIAN.end(call_id)
    return _describe(child, timed_out=timed_out, duration=time.monotonic() - started, error=error)


async def to_its_end(work: Coroutine[object, object, T]) -> T:
    """Do what does not take long and must not stay half done, although we are cancelled."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()


class Capture:
    """The first and the last bytes of a stream, whatever its length."""

    __slots__ = ("_head", "_limit", "_tail", "total")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        """Bytes that came, kept or not."""

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._limit:
            del self._tail[: -self._limit]

    @property
    def dropped(self) -> int:
        return max(self.total - 2 * self._limit, 0)

    @property
    def text(self) -> str:
        head, tail = bytes(self._head), bytes(self._tail[-self._limit :])
        if looks_binary(head):
            return f"[binary output, {self.total:,} bytes]"
        if not self.dropped:
            return to_plain_text(head + tail)
        # A cut may fall into a character: its broken half is not worth a replacement sign.
        whole_head = head.decode("utf-8", "replace").rstrip("\ufffd").encode()
        whole_tail = tail.lstrip(bytes(range(0x80, 0xC0)))
        note = f"\n[... {self.dropped:,} bytes left out ...]\n"
        return f"{to_plain_text(whole_head)}{note}{to_plain_text(whole_tail)}"


class _Child(asyncio.SubprocessProtocol):
    """One running child: its output so far, and whether it is gone."""

    def __init__(self, call_id: str, output_limit: int, on_output: OnOutput | None = None) -> None:
        self._family = Family(call_id)
        self._on_output = on_output
        self.output = {1: Capture(output_limit), 2: Capture(output_limit)}
        self.exited = anyio.Event()
        self.drained = anyio.Event()
        self.transport: asyncio.SubprocessTransport | None = None
        self.ended: tuple[str, ...] = ()
        self.survivors: tuple[str, ...] = ()
        self._open = {1, 2}
        self._started = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.SubprocessTransport", transport)
        for each in (1, 2):
            pipe = self.transport.get_pipe_transport(each)
            self._family.know_pipe(None if pipe is None else pipe.get_extra_info("pipe"))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output[fd].add(data)
        if self._on_output is not None:
            self._on_output(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.drained.set()

    def process_exited(self) -> None:
        self.exited.set()

    @property
    def pid(self) -> int | None:
        return None if self.transport is None else self.transport.get_pid()

    @property
    def lowest(self) -> int:
        """No process that it started has a number below."""
        return lowest_relative(self.pid, time.monotonic() - self._started)

    def find_relatives(self) -> list[int]:
        return self._family.find(self.lowest, None if self.exited.is_set() else self.pid)


async def _start(
    child: _Child,
    argv: Sequence[str],
    cwd: str | None,
    env: Mapping[str, str],
    stdin: bytes | None,
    start: Start | None,
) -> str | None:
    """Start the program; why it could not be started, if it could not."""
    try:
        with _open_nothing() if stdin is None else as_file(stdin) as source:
            if start is not None:
                await start(child, cwd=cwd, env=env, stdin=source.fileno())
                return None
            await asyncio.get_running_loop().subprocess_exec(
                lambda: child,
                *argv,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd or None,
                env=env,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        return f"Could not start {argv[0]!r}: {_reason(error)}"
    return None


def _open_nothing() -> IO[bytes]:
    return os.fdopen(os.open(os.devnull, os.O_RDONLY), "rb")


def as_file(data: bytes) -> IO[bytes]:
    """An unnamed file that holds `data`: unlike a pipe it needs no writer, whenever the child reads."""
    if hasattr(os, "memfd_create"):
        handle: IO[bytes] = os.fdopen(os.memfd_create("robota-stdin"), "w+b")
    else:
        import tempfile  # noqa: PLC0415 - only where the kernel has no memory files

        handle = cast("IO[bytes]", tempfile.TemporaryFile())  # noqa: SIM115 - the caller closes it
    handle.write(data)
    handle.seek(0)
    return handle


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}" if error.filename else error.strerror
    return str(error)


async def _end(child: _Child) -> None:
    """End everything that belongs to the child and let go of its pipes.

    `Task.cancel()` from outside anyio pierces the shield: it skips the grace period, nothing else.
    """
    forced = not child.exited.is_set()
    finished = False
    try:
        await _end_gently(child, forced=forced)
        finished = True
    finally:
        try:
            if not finished:
                _signal(child, signal.SIGKILL, detached=forced)
                await _wait_until(lambda: _is_gone(child, forced=forced), _LAST_RESORT_SECONDS)
        finally:
            if child.transport is not None:
                child.transport.close()


async def _end_gently(child: _Child, *, forced: bool) -> None:
    if not forced:
        with anyio.move_on_after(DRAIN_SECONDS):
            await child.drained.wait()
    await _end_family(child, forced=forced)
    if child.transport is not None:
        with anyio.move_on_after(DRAIN_SECONDS):
            await child.drained.wait()


async def _end_family(child: _Child, *, forced: bool) -> None:
    """Ask the group to end, then make it; `forced` includes descendants in sessions of their own."""
    relatives = [pid for pid in child.find_relatives() if pid != child.pid]
    in_group = [pid for pid in relatives if group_of(pid) == child.pid]
    child.ended = tuple(process_name(pid) for pid in (relatives if forced else in_group))
    child.survivors = () if forced else tuple(process_name(pid) for pid in relatives if pid not in in_group)

    def is_gone() -> bool:
        return _is_gone(child, forced=forced)

    if is_gone():
        return
    _signal(child, signal.SIGTERM, detached=forced)
    if await _wait_until(is_gone, GRACE_SECONDS):
        return
    deadline = time.monotonic() + _LAST_RESORT_SECONDS
    while not is_gone() and time.monotonic() < deadline:  # again and again: it may be starting processes
        _signal(child, signal.SIGKILL, detached=forced)
        await _wait_until(is_gone, 0.05)


async def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Nothing tells us when a process that is not our own child is gone, so look, ever less often."""
    pause, deadline = 0.001, time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        await anyio.sleep(pause)
        pause = min(pause * 2, 0.1)
    return True


def _is_gone(child: _Child, *, forced: bool) -> bool:
    if forced and child.transport is not None and not child.exited.is_set():
        return False
    return not group_is_alive(child.pid, child.lowest) and not (forced and child.find_relatives())


def _signal(child: _Child, number: signal.Signals, *, detached: bool) -> None:
    """Signal the child's group and, if asked, its relatives elsewhere. Our own group is never meant."""
    pid = child.pid
    if os.name != "posix":
        if child.transport is not None and not child.exited.is_set():
            child.transport.kill()
        return
    if pid is not None:
        _ignoring_the_gone(os.killpg, pid, number)
    if detached:
        for relative in child.find_relatives():
            _ignoring_the_gone(os.kill, relative, number)


def _ignoring_the_gone(send: Callable[[int, int], None], target: int, number: signal.Signals) -> None:
    try:
        send(target, number)
    except (ProcessLookupError, PermissionError):
        return


def _describe(child: _Child, *, timed_out: bool, duration: float, error: str | None) -> ProcessResult:
    code = None if child.transport is None else child.transport.get_returncode()
    killed_by = None
    if code is not None and code < 0:
        killed_by = next((known.name for known in signal.Signals if known == -code), f"signal {-code}")
    return ProcessResult(
        exit_code=code if killed_by is None else None,
        signal=killed_by,
        stdout=child.output[1].text,
        stderr=child.output[2].text,
        stdout_dropped=child.output[1].dropped,
        stderr_dropped=child.output[2].dropped,
        timed_out=timed_out,
        duration=duration,
        error=error,
        ended=child.ended,
        survivors=child.survivors,
    )
