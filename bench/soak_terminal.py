"""Thousands of turns typed into the real command on a terminal, with a look at what they leave behind.

    python bench/soak_terminal.py [--turns 10000]

Answers, tool calls, failing services, shell lines, commands and turns that are stopped take turns; now and
then the conversation is cleared. Memory, descriptors and threads of the process must then be what they were
after the first looks. Exits with 1 when something grew, with 2 when a turn did not end as it should.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import resource
import select
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import NamedTuple

from robota.core import ToolCall
from robota.testing import HttpError, ModelServer, ReceivedRequest, Stall
from robota.testing.model_script import ModelReply

LOOKS = 8
WARM_LOOKS = 3
"""Looks before the one that counts: caches fill, allocators settle."""
ROWS, COLUMNS = 30, 90
SPARE_KIB = 6_000
PATIENCE = 120.0
TEXT = "Some **bold** words.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n```\n\n"
KINDS = ("answer", "read", "answer", "stop", "command", "shell", "fail")


class TurnWentWrong(Exception):
    """The terminal did not show what it should."""


def play(request: ReceivedRequest) -> ModelReply:
    """The reply to a prompt such as `read 7`, which names a kind of turn and its number."""
    if not isinstance(request.json, dict) or "messages" not in request.json:
        return "I know no models."
    messages = request.json["messages"]
    words = next(str(message["content"]) for message in reversed(messages) if message["role"] == "user")
    kind, _, number = words.partition(" ")
    if kind == "read" and messages[-1]["role"] != "tool":
        return [ToolCall(f"call_{number}", "Read", '{"file_path":"notes.txt"}')]
    if kind == "stop":
        return [f"begun {number}. ", Stall()]
    if kind == "fail":
        return HttpError(401)
    return [TEXT, f"done {number}.\n"]


class Terminal:
    """The command on a pseudo-terminal."""

    def __init__(self, url: str, place: Path) -> None:
        self.log = bytearray()
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
            os.chdir(place)
            command = [sys.executable, "-m", "robota", "--base-url", f"{url}/v1", "--model", "m", "--no-save"]
            known = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
            home = {"HOME": str(place), "ROBOTA_HOME": str(place / "home"), "TERM": "xterm-256color"}
            os.execve(sys.executable, [*command, "--context-window", "1000000"], {**known, **home})

    def pump(self, wait: float) -> bool:
        if not select.select([self.file], [], [], wait)[0]:
            return True
        try:
            data = os.read(self.file, 65536)
        except OSError:
            return False
        self.log += data
        return bool(data)

    def until(self, mark: str) -> None:
        """Go on until it is written; what came before is forgotten."""
        wanted = mark.encode()
        deadline = time.monotonic() + PATIENCE
        while (found := self.log.find(wanted)) < 0:
            if not self.pump(1.0) or time.monotonic() > deadline:
                raise TurnWentWrong(f"never saw {mark!r}, but:\n{self.log.decode(errors='replace')[-1500:]}")
        del self.log[: found + len(wanted)]

    def type(self, keys: str) -> None:
        os.write(self.file, keys.encode())

    def settle(self, quiet: float) -> None:
        while True:
            before = len(self.log)
            deadline = time.monotonic() + quiet
            while (left := deadline - time.monotonic()) > 0 and self.pump(left):
                pass
            if len(self.log) == before:
                return

    def leave(self) -> None:
        self.type("\x15\x04")
        while self.pump(PATIENCE):
            pass
        os.waitpid(self.pid, 0)
        os.close(self.file)


def take_turn(terminal: Terminal, number: int) -> None:
    kind = KINDS[number % len(KINDS)]
    if kind == "command":
        terminal.type(f"/rename name {number}\r")
        terminal.until(f'Session renamed to "name {number}".')
    elif kind == "shell":
        terminal.type(f"!echo shell $(({number}))done\r")
        terminal.until(f"shell {number}done")
    elif kind == "stop":
        terminal.type(f"stop {number}\r")
        terminal.until(f"begun {number}.")
        terminal.until("Esc stops")
        terminal.type("\x1b")
        terminal.until("Interrupted")
    elif kind == "fail":
        terminal.type(f"fail {number}\r")
        terminal.until("(401: Scripted")
    else:
        terminal.type(f"{kind} {number}\r")
        terminal.until(f"done {number}.")
        terminal.until("Context:")


class Footprint(NamedTuple):
    turns: int
    kib: int
    descriptors: int
    threads: int

    @classmethod
    def take(cls, turns: int, pid: int) -> Footprint:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        status = Path(f"/proc/{pid}/status").read_text()
        threads = re.search(r"Threads:\t(\d+)", status)
        assert threads is not None
        kib = pages * resource.getpagesize() // 1024
        return cls(turns, kib, len(os.listdir(f"/proc/{pid}/fd")), int(threads[1]))

    def grown_since(self, first: Footprint) -> list[str]:
        spare = Footprint(0, SPARE_KIB, 0, 1)
        return [
            f"{name}: {before} -> {now}"
            for name, before, now, extra in zip(self._fields, first, self, spare, strict=True)
            if name != "turns" and now > before + extra
        ]


def soak(terminal: Terminal, turns: int) -> list[Footprint]:
    prints: list[Footprint] = []
    number = 0
    print("".join(f"{name:>12}" for name in Footprint._fields))
    for look in range(1, LOOKS + 1):
        while number < turns * look // LOOKS:
            take_turn(terminal, number)
            number += 1
            if number % 50 == 0:
                clear(terminal)
        clear(terminal)
        prints.append(Footprint.take(number, terminal.pid))
        print("".join(f"{value:>12}" for value in prints[-1]), flush=True)
    return prints


def clear(terminal: Terminal) -> None:
    terminal.settle(0.2)
    terminal.type("/clear\r")
    terminal.until("cleared")
    terminal.settle(0.3)


def main(turns: int) -> int:
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as directory,
        ModelServer(play, repeat=True, record=False).in_thread() as server,
    ):
        place = Path(directory)
        (place / "notes.txt").write_text("milk\n" * 20)
        terminal = Terminal(server.url, place)
        try:
            terminal.until("Context:")
            prints = soak(terminal, turns)
        except TurnWentWrong as problem:
            print(f"Did not work: {problem}", file=sys.stderr)
            return 2
        finally:
            terminal.leave()
    grown = prints[-1].grown_since(prints[WARM_LOOKS - 1])
    took = f"{time.monotonic() - started:.0f} s; "
    print(took + ("grown: " + ", ".join(grown) if grown else "nothing grew"))
    return 1 if grown else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=10_000)
    sys.exit(main(parser.parse_args().turns))
