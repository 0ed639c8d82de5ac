"""Serves one connection of the stream-json protocol, from the first line to the exit code."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable
from functools import partial

from robota.core.errors import RobotaError
from robota.transports.line_reader import read_lines
from robota.transports.line_writer import LineWriter
from robota.transports.result_frame import describe_failure, failure_frame
from robota.transports.stream_json.driver import DriveOptions, Driver
from robota.transports.stream_json.held_session import OpenSession

FAILED = 1


async def run_stream_json(
    open_session: OpenSession,
    options: DriveOptions,
    *,
    check: Callable[[], None] = lambda: None,
    stdin: int = 0,
    stdout: int = 1,
) -> int:
    """Let a host drive a session over pipes; the exit code.

    `check` raises if no session could be made as the command line wants it: then nothing is answered at all.
    """
    gone = asyncio.Event()
    writer = LineWriter(stdout, lambda why: gone.set())
    try:
        check()
    except RobotaError as error:
        return await _refuse(writer, error)
    unwatch = _watch(stdout, gone.set)
    driver = Driver(open_session, options, writer)
    reading = asyncio.create_task(_read(driver, stdin))
    turns = asyncio.create_task(driver.take_turns())
    leaving = asyncio.create_task(gone.wait())
    wrong: BaseException | None = None
    code = 0
    try:
        # A session that cannot be made ends the turns, and whoever would still send prompts to nobody.
        await asyncio.wait((reading, turns, leaving), return_when=asyncio.FIRST_COMPLETED)
        wrong = reading.exception() if reading.done() else None
        if wrong is None:
            await asyncio.wait((turns, leaving), return_when=asyncio.FIRST_COMPLETED)
            code = _judge(turns, driver)
    finally:
        unwatch()
        for task in (reading, turns, leaving):
            task.cancel()
        await asyncio.wait((reading, turns, leaving))
        await driver.close()
    if wrong is not None:
        return await _refuse(
            writer, wrong
        )  # behind what the turn still had to say: the last word is the error
    if writer.broken is None:
        await writer.drain()
    if writer.broken:
        print(f"robota: The answer could not be written: {writer.broken}.", file=sys.stderr, flush=True)
    return FAILED if writer.broken is not None else code


def _watch(stdout: int, leave: Callable[[], None]) -> Callable[[], object]:
    """Hear of a reader who has left although nothing is written: a turn may be silent for long, and cost.
    Only pipes tell. What is returned ends it."""
    if os.name != "posix" or not stat.S_ISFIFO(os.fstat(stdout).st_mode):
        return lambda: None
    loop = asyncio.get_running_loop()

    def tell() -> None:
        loop.remove_reader(stdout)
        leave()

    loop.add_reader(stdout, tell)
    return partial(loop.remove_reader, stdout)


async def _read(driver: Driver, stdin: int) -> None:
    async for line in read_lines(stdin):
        driver.take_line(line)
    driver.end_input()


async def _refuse(writer: LineWriter, error: BaseException) -> int:
    """Say what is wrong, to people and to the host."""
    words = describe_failure(error)
    print(f"robota: {words}", file=sys.stderr, flush=True)
    writer.send({**failure_frame(words), "session_id": "", "uuid": ""})
    await writer.drain()
    return FAILED


def _judge(turns: asyncio.Task[None], driver: Driver) -> int:
    if not turns.done():
        return FAILED  # the reader of the output has left
    error = None if turns.cancelled() else turns.exception()
    if error is not None:
        print(f"robota: {describe_failure(error)}", file=sys.stderr, flush=True)
    return FAILED if error is not None or driver.failed else 0
