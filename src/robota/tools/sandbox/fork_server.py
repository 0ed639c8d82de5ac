"""Starts commands under Landlock: one Python, kept ready, forks a launcher for each (`__main__.py`)."""

from __future__ import annotations

import asyncio
import marshal
import os
import signal
import socket
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import IO

from robota.core.process import as_file

_PACKAGES = os.path.abspath(__file__).removesuffix("robota/tools/sandbox/fork_server.py")
_NEEDED = ("LD_LIBRARY_PATH",)
"""What Python itself may need of the environment; commands bring their own."""
_BLOCK = 65_536
_REPORT = 3
"""What a launcher says beside the output of its command: its number, and how the command ended."""


def launcher_command(call: str, *arguments: str) -> list[str]:
    """Python calling a function of the launcher, isolated and without site packages: nothing in the workspace
    can take the place of a module of ours."""
    code = f"import sys; sys.path.append(sys.argv[1]); import robota.tools.sandbox.__main__ as it; it.{call}"
    return [sys.executable, "-I", "-S", "-c", code, _PACKAGES, *arguments]


class ForkServer:
    """Started with the first command; ends with this object, and with it whatever it has started."""

    def __init__(self) -> None:
        self._requests: socket.socket | None = None
        self._owner = 0
        """The process that started it: after a fork the new process needs its own."""
        self._end: Callable[[], object] | None = None

    async def start(
        self,
        policy: Mapping[str, Sequence[str]],
        argv: Sequence[str],
        protocol: asyncio.SubprocessProtocol,
        *,
        cwd: str | None,
        env: Mapping[str, str],
        stdin: int,
    ) -> None:
        """Start a program as `loop.subprocess_exec` does. Raises OSError when that cannot be done."""
        request = marshal.dumps(
            (
                {option: list(map(os.fsencode, paths)) for option, paths in policy.items()},
                list(map(os.fsencode, argv)),
                os.fsencode(cwd or os.getcwd()),
                {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
            )
        )
        if not await self._launch(request, stdin, protocol) and not await self._launch(
            request, stdin, protocol
        ):
            raise OSError("the launcher of the sandbox did not answer")

    async def _launch(self, request: bytes, stdin: int, protocol: asyncio.SubprocessProtocol) -> bool:
        """Whether anybody took the request; if not, the server has ended and nothing ran."""
        with ExitStack() as ours, ExitStack() as theirs:
            given = [theirs.enter_context(as_file(request)).fileno(), stdin]
            ends: dict[int, IO[bytes]] = {}
            for descriptor in (1, 2, _REPORT):
                read, write = os.pipe()
                ends[descriptor] = ours.enter_context(os.fdopen(read, "rb", 0))
                given.append(theirs.enter_context(os.fdopen(write, "wb", 0)).fileno())
            self._send(given)
            ours.pop_all()
        return await _Launched(protocol, ends).begin()

    def _send(self, descriptors: Sequence[int]) -> None:
        if self._requests is not None and self._owner == os.getpid():
            with suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(self._requests, [b"+"], descriptors)
                return
        self._requests = None
        if self._end is not None:  # somebody has ended it, or it belongs to whom we were forked from
            self._end()
        self._requests = self._open()
        socket.send_fds(self._requests, [b"+"], descriptors)

    def _open(self) -> socket.socket:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = launcher_command("serve()")
        with its:
            pid = os.posix_spawn(
                command[0],
                command,
                {name: os.environ[name] for name in _NEEDED if name in os.environ},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, its.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
            )
        self._owner = os.getpid()
        self._end = weakref.finalize(self, _close, ours, pid, self._owner)
        return ours


def _close(requests: socket.socket, pid: int, owner: int) -> None:
    requests.close()
    if os.getpid() != owner:
        return
    with suppress(ChildProcessError):  # somebody else has waited for it: the number is no longer its own
        if os.waitpid(pid, os.WNOHANG)[0] == 0:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class _Launched(asyncio.SubprocessTransport):
    """A command that a launcher runs, for a protocol that expects a child of ours."""

    def __init__(self, protocol: asyncio.SubprocessProtocol, ends: dict[int, IO[bytes]]) -> None:
        super().__init__()
        self._protocol, self._ends = protocol, ends
        self._loop = asyncio.get_running_loop()
        self._pid = 0
        self._report = b""
        self._code: int | None = None
        self._pipes = {each: asyncio.ReadTransport({"pipe": ends[each]}) for each in (1, 2)}

    async def begin(self) -> bool:
        """Wait for the launcher, then let the protocol hear everything; False if there is no launcher."""
        named, report = asyncio.Event(), self._ends[_REPORT]
        self._loop.add_reader(report, named.set)
        try:
            await named.wait()
        except BaseException:
            self.close()  # the launcher finds nobody to report to, and starts nothing
            raise
        self._loop.remove_reader(report)
        line = os.read(report.fileno(), _BLOCK)
        number, _, self._report = line.partition(b"\n")
        if not number.isdigit():
            self.close()
            if number:
                raise OSError(os.fsdecode(number))
            return False
        self._pid = int(number)
        self._protocol.connection_made(self)
        for descriptor, end in self._ends.items():
            self._loop.add_reader(end, self._read, descriptor)
        return True

    def _read(self, descriptor: int) -> None:
        end = self._ends[descriptor]
        data = os.read(end.fileno(), _BLOCK)
        if data and descriptor == _REPORT:
            self._report += data
        elif data:
            self._protocol.pipe_data_received(descriptor, data)
        else:
            self._drop(descriptor)
            if descriptor == _REPORT:
                status = self._report.strip()
                self._code = os.waitstatus_to_exitcode(int(status)) if status else -signal.SIGKILL
                self._protocol.process_exited()
            else:
                self._protocol.pipe_connection_lost(descriptor, None)

    def _drop(self, descriptor: int) -> None:
        with self._ends.pop(descriptor) as end:
            self._loop.remove_reader(end)

    def get_pid(self) -> int:
        return self._pid

    def get_returncode(self) -> int | None:
        return self._code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        return self._pipes.get(fd)

    def close(self) -> None:
        if self._pid and self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        for descriptor in tuple(self._ends):
            self._drop(descriptor)
