"""A search program while it runs: read in large pieces, ended from any thread, never left behind."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import IO, Self, TypeVar, cast

import anyio
from anyio import to_thread

from robota.core.plain_text import to_plain_text
from robota.core.ports import new_uuid
from robota.core.process import CALL_VARIABLE, clean_environment

CHUNK_BYTES = 1024 * 1024
_ERROR_BYTES = 64 * 1024
# ripgrep writes file by file. To wake up for each of many would cost more time, here and there, than reading.
_SMALL_BYTES = 16 * 1024
_FREE_READS = 8
_PAUSE_SECONDS = 0.002

_T = TypeVar("_T")


class Stop:
    """A request to end a search; the child that runs it is killed at once."""

    __slots__ = ("_child", "_lock", "requested")

    def __init__(self) -> None:
        self.requested = False
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def request(self) -> None:
        with self._lock:
            self.requested = True
            if self._child is not None:
                self._child.kill()

    def watch(self, child: subprocess.Popen[bytes]) -> None:
        """Children are run one after the other."""
        with self._lock:
            self._child = child
            if self.requested:
                child.kill()


async def run_stoppable(work: Callable[[Stop], _T], timeout: float) -> _T:
    """Run blocking work in a thread; after `timeout` seconds, or when cancelled, it is asked to stop.

    It is waited for all the same, so that no child is left when this returns.
    """
    stop = Stop()

    async def watch() -> None:
        try:
            await anyio.sleep(timeout)
        finally:
            stop.request()

    outcome: list[_T] = []
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            outcome.append(await to_thread.run_sync(work, stop))
        except Exception as error:  # noqa: BLE001 - raised again below; the group would wrap it
            failure = error
        finally:
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return outcome[0]


class Child:
    """One run of a program. Use it as a context manager: at its end the process is gone."""

    __slots__ = ("_output", "_process", "_stop", "_stream_of_errors", "errors", "was_stopped")

    def __init__(self, argv: Sequence[str], *, cwd: str, stop: Stop) -> None:
        """Raises `OSError` or `ValueError` if it cannot be started."""
        variables = clean_environment()
        variables[CALL_VARIABLE] = f"{variables.get(CALL_VARIABLE, '')}/{new_uuid()}"
        self._process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._output = cast("IO[bytes]", self._process.stdout)
        self._stream_of_errors = cast("IO[bytes]", self._process.stderr)
        self._stop = stop
        self.errors = ""
        self.was_stopped = False
        """It was not let run to its end."""
        stop.watch(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def chunks(self) -> Iterator[bytes]:
        """Its output until it ends. Errors are read last: what these programs say fits into a pipe."""
        descriptor, small = self._output.fileno(), 0
        while chunk := os.read(descriptor, CHUNK_BYTES):
            yield chunk
            small += len(chunk) < _SMALL_BYTES
            if small > _FREE_READS and len(chunk) < _SMALL_BYTES:
                time.sleep(_PAUSE_SECONDS)
        self.errors = to_plain_text(os.read(self._stream_of_errors.fileno(), _ERROR_BYTES))
        self._process.wait()
        self.was_stopped = self._stop.requested

    def end(self) -> None:
        if self._process.poll() is None:
            self.was_stopped = True
            self._process.kill()
        self._process.wait()
        self._output.close()
        self._stream_of_errors.close()

    @property
    def exit_code(self) -> int:
        return self._process.returncode
