"""Processes of the command, and of programs with it, that begin with its modules loaded: forked from one that
imported them once.

Each is a process of its own with its own directory, environment and streams; only the import is not repeated,
which is most of what a short command costs.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import types
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import IO, Any, Self

from msgspec import Struct
from msgspec.structs import asdict

WHOLE = ("robota.core", "robota.sessions", "robota.tools", "robota.sdk.view", "robota.tui", "robota.cli")
"""Packages with all of their modules."""
LOADED = (
    *("anyio._backends._asyncio", "click", "concurrent.futures.thread", "jsonschema_rs", "sqlite3"),
    *("encodings.utf_8_sig", "importlib.readers", "pygments.lexers.python", "xml.dom.minidom"),
    *("robota.sdk.assembly", "robota.providers.choice", "robota.providers.openai_compatible"),
    *("robota.providers.local.reply", "robota.providers.local_server", "robota.http.client"),
    *("robota.transports.headless", "robota.transports.stream_json"),
)
PATIENCE = 60.0


class Order(Struct, frozen=True):
    """What a process is to be."""

    arguments: list[str]
    cwd: str
    env: dict[str, str]
    code: str = ""
    """A program to run in the place of the command."""
    umask: int | None = None
    terminal: bool = False
    """Whether its streams are the terminal that controls it."""


class ForkServer:
    """The process that forks the others."""

    def __init__(self) -> None:
        self.door, there = socket.socketpair()
        command = [sys.executable, __file__, str(there.fileno())]
        # A mark that a test looks for in what it starts is not for this one, which stays.
        env = {name: value for name, value in os.environ.items() if name != "ROBOTA_TEST_MARK"}
        self.process = subprocess.Popen(command, pass_fds=[there.fileno()], env=env, stdin=DEVNULL)
        there.close()

    def close(self) -> None:
        self.door.close()
        self.process.wait()


@cache
def fork_server() -> ForkServer:
    """The one of this process."""
    return ForkServer()


def close_fork_server() -> None:
    if fork_server.cache_info().currsize:
        fork_server().close()
        fork_server.cache_clear()


class Forked:
    """A process of the command, or of `python -c code`, with what `subprocess.Popen` has of it."""

    def __init__(
        self,
        arguments: Sequence[str],
        streams: Sequence[Any] = (PIPE, PIPE, PIPE),
        *,
        cwd: Path,
        env: dict[str, str],
        text: bool = True,
        **order: Any,
    ) -> None:
        """`streams` as `subprocess.Popen` takes them; what else can be ordered says `Order`."""
        self.args = list(arguments)
        self.returncode: int | None = None
        theirs, ours = zip(*(end_points(*each, text=text) for each in enumerate(streams)), strict=True)
        self.stdin, self.stdout, self.stderr = ours
        said, told = os.pipe(), os.pipe()
        socket.send_fds(fork_server().door, [b"\n"], [said[0], told[1], *theirs])
        given = {each for each in streams if isinstance(each, int)}
        for descriptor in {said[0], told[1], *theirs} - given:
            os.close(descriptor)
        with open(said[1], "w") as pipe:
            json.dump(asdict(Order(self.args, str(cwd), env, **order)), pipe)  # names need not be UTF-8
        self._told = open(told[0], "rb", buffering=0)  # noqa: SIM115 - closed when it has told of the end
        self.pid = int(self._told.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.communicate()

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = PATIENCE) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            with self._told:
                self.returncode = int(self._told.readline())
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, input: Any = None, timeout: float | None = PATIENCE) -> tuple[Any, Any]:
        heard: list[Any] = [None, None]
        work = [threading.Thread(target=write, args=(self.stdin, input))]
        for at, pipe in enumerate((self.stdout, self.stderr)):
            work.append(threading.Thread(target=read, args=(pipe, heard, at)))
        for thread in work:
            thread.start()
        self.wait(timeout)
        for thread in work:
            thread.join()
        return heard[0], heard[1]


def run(
    arguments: Sequence[str], *, cwd: Path, env: dict[str, str], input: str | None = None, **order: Any
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` does it."""
    with Forked(arguments, cwd=cwd, env=env, **order) as process:
        said = process.communicate(input)
    return subprocess.CompletedProcess(process.args, process.wait(), *said)


def run_code(code: str, *arguments: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As `python -c` does it."""
    return run(arguments, cwd=cwd, env=env, code=code)


def end_points(at: int, stream: Any, *, text: bool) -> tuple[int, IO[Any] | None]:
    """The end of a stream for the process, and ours if there is one."""
    if stream == DEVNULL:
        return os.open(os.devnull, os.O_RDWR), None
    if stream != PIPE:
        return stream if isinstance(stream, int) else os.dup(stream.fileno()), None
    read, write = os.pipe()
    theirs, ours, mode = (write, read, "r") if at else (read, write, "w")
    return theirs, open(ours, mode, encoding="utf-8") if text else open(ours, f"{mode}b")


def write(pipe: IO[Any] | None, data: Any) -> None:
    if pipe is not None and not pipe.closed:
        with suppress(BrokenPipeError), pipe:  # a command need not read what it is given
            if data:
                pipe.write(data)


def read(pipe: IO[Any] | None, heard: list[Any], at: int) -> None:
    if pipe is not None and not pipe.closed:
        with pipe:
            heard[at] = pipe.read()


# --- in the process that forks ---------------------------------------------------------------------------


def serve(door: socket.socket) -> Order | None:
    """Fork a child for every order; return only in a child, with its order, or at the end."""
    tells: dict[int, int] = {}
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    while True:
        ready = select.select([door, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            reap(tells)
        if door not in ready:
            continue
        word, descriptors, *_ = socket.recv_fds(door, 1, 5)
        if not word:
            return None
        said, tell, *streams = descriptors
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            door.close()
            for descriptor in (woken, wakes, tell, *tells.values()):
                os.close(descriptor)
            return become(said, streams)
        for descriptor in (said, *streams):
            os.close(descriptor)
        os.write(tell, b"%d\n" % child)
        tells[child] = tell


def reap(tells: dict[int, int]) -> None:
    """Tell how children ended."""
    while tells:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        tell = tells.pop(child)
        with suppress(BrokenPipeError):  # nobody waits for it any more
            os.write(tell, b"%d\n" % os.waitstatus_to_exitcode(status))
        os.close(tell)


def become(said: int, streams: list[int]) -> Order:
    with open(said) as pipe:
        order = Order(**json.load(pipe))
    if order.terminal:
        os.setsid()
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
    for stream in streams:
        os.close(stream)
    os.chdir(order.cwd)
    if order.umask is not None:
        os.umask(order.umask)
    os.environ.clear()
    os.environ.update(order.env)
    sys.stdin = sys.__stdin__ = open_stream(0, "r", "strict")
    sys.stdout = sys.__stdout__ = open_stream(1, "w", "strict")
    sys.stderr = sys.__stderr__ = open_stream(2, "w", "backslashreplace")
    return order


def open_stream(descriptor: int, mode: str, errors: str) -> Any:
    """As Python does it when it starts."""
    lines = descriptor == 2 or os.isatty(descriptor)
    raw = open(descriptor, f"{mode}b", closefd=False)  # noqa: SIM115 - open to the end
    return io.TextIOWrapper(raw, "utf-8", errors, newline="\n", line_buffering=lines)


def carry_out(order: Order) -> None:
    from robota.__main__ import main

    sys.argv = ["-c" if order.code else "robota", *order.arguments]
    if not order.code:
        return main()
    sys.path.insert(0, "")
    program = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(order.code, "<string>", "exec"), vars(program))


def load() -> None:
    from robota._lazy_pattern import _LazyPattern

    for package in map(importlib.import_module, WHOLE):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
    for name in LOADED:
        importlib.import_module(name)
    # Patterns are compiled at their first use, which is before this for all of our children.
    patterns = {id(each): each for module in list(sys.modules.values()) for each in vars(module).values()}
    for pattern in patterns.values():
        if type(pattern) is _LazyPattern:
            pattern.search  # noqa: B018


if __name__ == "__main__":
    sys.path.pop(0)  # the directory of this file, where `-m robota` has that of its user
    load()
    gc.freeze()  # or the first collection of every child copies the memory that they share
    order = serve(socket.socket(fileno=int(sys.argv[1])))
    if order is not None:
        carry_out(order)
