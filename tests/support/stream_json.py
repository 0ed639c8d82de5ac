"""The other end of the stream-json protocol: by hand, line by line."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from robota.core.provider import Provider
from robota.sdk.interactive import InteractiveSession
from robota.transports.stream_json.driver import DriveOptions
from robota.transports.stream_json.server import run_stream_json

Frame = dict[str, Any]


class HostEnd:
    """What a host has: a pipe to write to, a pipe to read from, and what it read."""

    def __init__(self, reader: asyncio.StreamReader, write: Callable[[bytes], object]) -> None:
        self._reader = reader
        self._write = write
        self.seen: list[Frame] = []
        self._numbers = 0

    def send_line(self, line: str) -> None:
        self._write(line.encode() + b"\n")

    def send(self, frame: Frame) -> None:
        self.send_line(json.dumps(frame))

    def prompt(self, content: Any, **more: Any) -> None:
        message = {"role": "user", "content": content}
        self.send({"type": "user", "message": message, "session_id": "", "parent_tool_use_id": None, **more})

    def begin_request(self, subtype: str, **fields: Any) -> str:
        self._numbers += 1
        id = f"req_{self._numbers}"
        request = {"subtype": subtype, **fields}
        self.send({"type": "control_request", "request_id": id, "request": request})
        return id

    async def request(self, subtype: str, **fields: Any) -> Frame:
        """The answer to a request; frames that come before it are only seen."""
        id = self.begin_request(subtype, **fields)
        return await self.answer_to(id)

    async def answer_to(self, id: str) -> Frame:
        frame = await self.until(lambda it: it["type"] == "control_response" and _id(it) == id)
        response: Frame = frame["response"]
        return response

    def answer(self, question: Frame, body: Any = None, *, error: str = "") -> None:
        response: Frame = {"subtype": "error" if error else "success", "request_id": question["request_id"]}
        response |= {"error": error} if error else {"response": body}
        self.send({"type": "control_response", "response": response})

    async def read(self) -> Frame:
        line = await asyncio.wait_for(self._reader.readline(), 30)
        assert line, f"the output has ended behind {self.seen[-3:]}"
        frame: Frame = json.loads(line)
        self.seen.append(frame)
        return frame

    async def until(self, wanted: str | Callable[[Frame], bool]) -> Frame:
        """The next frame of that type, subtype or kind."""
        while True:
            frame = await self.read()
            if wanted(frame) if callable(wanted) else wanted in kinds_of(frame):
                return frame

    async def read_to_end(self) -> list[Frame]:
        data = await asyncio.wait_for(self._reader.read(), 30)
        frames = [json.loads(line) for line in data.splitlines()]
        self.seen += frames
        return frames

    def shown(self, *types: str) -> list[Frame]:
        return [frame for frame in self.seen if kinds_of(frame) & set(types)]


def kinds_of(frame: Frame) -> set[str]:
    """The type of a frame, and its subtype."""
    request = frame.get("request") or {}
    return {frame["type"], frame.get("subtype", ""), request.get("subtype", "")} - {""}


def _id(frame: Frame) -> str:
    id: str = frame["response"]["request_id"]
    return id


class Connection(HostEnd):
    """One in this process, with a session of its own."""

    code: int | None = None

    def __init__(self, reader: asyncio.StreamReader, stdin: int, task: asyncio.Task[int]) -> None:
        super().__init__(reader, lambda data: os.write(stdin, data))
        self._stdin = stdin
        self.task = task
        self._open = True

    def close_input(self) -> None:
        if self._open:
            self._open = False
            os.close(self._stdin)

    async def finish(self) -> int:
        """The exit code, when everything is over."""
        self.close_input()
        await self.read_to_end()
        return await asyncio.wait_for(self.task, 30)


@asynccontextmanager
async def connected(
    provider: Provider, cwd: Path, options: DriveOptions | None = None, **session_options: Any
) -> AsyncIterator[Connection]:
    """A connection to a session with that provider."""

    @asynccontextmanager
    async def open_session(wishes: Any) -> AsyncIterator[InteractiveSession]:
        async with InteractiveSession(provider=provider, cwd=cwd, **session_options) as session:
            yield session

    async with connected_to(open_session, options or DriveOptions()) as connection:
        yield connection


@asynccontextmanager
async def connected_to(open_session: Any, options: DriveOptions) -> AsyncIterator[Connection]:
    stdin, to_stdin = os.pipe()
    from_stdout, stdout = os.pipe()
    reader = asyncio.StreamReader(limit=1 << 24)
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(from_stdout, "rb", 0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)

    async def serve() -> int:
        try:
            return await run_stream_json(open_session, options, stdin=stdin, stdout=stdout)
        finally:
            os.close(stdout)

    task = asyncio.create_task(serve())
    connection = Connection(reader, to_stdin, task)
    try:
        yield connection
    finally:
        connection.close_input()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
        transport.close()
