"""A server in a process of its own: messages are lines on its standard input and output.

Whatever it does, memory stays bounded and the process ends with the connection: a line that never ends breaks
the connection, lines that are no messages are kept for diagnosis, and so is standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from asyncio.subprocess import SubprocessStreamProtocol
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from robota.core.process_tree import group_is_alive, lowest_relative
from robota.tools.mcp.definition import ServerDefinition
from robota.tools.mcp.failure import Noise

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

MAX_LINE = 32 * 1024 * 1024
"""Bytes of one message."""
EXIT_SECONDS = 1.0
"""After its input was closed, and again after it was asked to end."""
DRAIN_SECONDS = 0.5
"""How long output may still come in after the process is gone."""


class StdioTransport:
    """Enter it to start the process, leave it to end it and all that it started."""

    def __init__(self, definition: ServerDefinition, noise: Noise) -> None:
        self._definition = definition
        self._noise = noise
        self._tasks: list[asyncio.Task[None]] = []
        self._started = time.monotonic()
        self._transport: asyncio.SubprocessTransport
        self._protocol: _Exiting

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[Any], MemoryObjectSendStream[Any]]:
        definition, loop = self._definition, asyncio.get_running_loop()
        self._transport, self._protocol = await loop.subprocess_exec(
            lambda: _Exiting(MAX_LINE, loop),
            definition.command,
            *definition.args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=definition.cwd or None,
            env=get_default_environment() | dict(definition.env),
            start_new_session=True,
        )
        # Now, when the process runs: whatever is opened is closed again.
        self._to_us, self._from_server = _stream()
        self._to_server, self._from_us = _stream()
        work = (self._read(), self._write(), self._listen(), self._watch())
        self._tasks = [asyncio.create_task(each, name=f"mcp {definition.name}") for each in work]
        return self._from_server, self._to_server

    async def __aexit__(self, *_: object) -> None:
        try:
            self._to_server.close()
            if self._protocol.stdin is not None:
                self._protocol.stdin.close()
            if not await self._has_exited():
                self._signal(signal.SIGTERM)
                await self._has_exited()
        finally:
            self._signal(signal.SIGKILL)
            self._transport.close()
            for task in self._tasks:
                task.cancel()
            for stream in (self._to_us, self._from_server, self._to_server, self._from_us):
                stream.close()
        await asyncio.wait(self._tasks, timeout=EXIT_SECONDS)

    async def _has_exited(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS):
                await self._protocol.exited.wait()
        return self._protocol.exited.is_set()

    def _signal(self, number: signal.Signals) -> None:
        if os.name != "posix":
            if not self._protocol.exited.is_set():
                self._transport.kill()
            return
        pid = self.pid
        if group_is_alive(pid, lowest_relative(pid, time.monotonic() - self._started)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)

    # --- the pipes --------------------------------------------------------------------------------------

    async def _read(self) -> None:
        stdout = self._protocol.stdout
        assert stdout is not None
        with self._to_us, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                try:
                    line = await stdout.readuntil(b"\n")
                except asyncio.IncompleteReadError as rest:
                    self._take_stray(rest.partial)
                    return
                except asyncio.LimitOverrunError:
                    self._noise.complain(f"It sent a message of more than {MAX_LINE:,} bytes.")
                    return
                try:
                    message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    self._take_stray(line)
                    continue
                await self._to_us.send(SessionMessage(message))

    def _take_stray(self, line: bytes) -> None:
        if line.strip():
            self._noise.add_stray(line.strip())

    async def _write(self) -> None:
        stdin = self._protocol.stdin
        assert stdin is not None
        try:
            async for sent in self._from_us:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(text.encode() + b"\n")
                await stdin.drain()
        except (OSError, anyio.ClosedResourceError):
            self._to_us.close()  # whoever waits for an answer hears of it

    async def _listen(self) -> None:
        stderr = self._protocol.stderr
        assert stderr is not None
        while data := await stderr.read(64 * 1024):
            self._noise.stderr.add(data)

    async def _watch(self) -> None:
        """A process that is gone may have left its pipes to another one."""
        await self._protocol.exited.wait()
        await asyncio.wait(self._tasks[:1], timeout=DRAIN_SECONDS)
        self._to_us.close()


class _Exiting(SubprocessStreamProtocol):
    """Knows when the process itself is gone, whoever still has its pipes."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


def _stream() -> tuple[MemoryObjectSendStream[Any], MemoryObjectReceiveStream[Any]]:
    return anyio.create_memory_object_stream(0)
