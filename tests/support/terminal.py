"""The program on a pseudo-terminal, driven by what it shows."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.command import environment
from tests.support.fork_server import Forked


class Terminal:
    """A program on a pseudo-terminal: type, and wait for what it shows."""

    def __init__(self, cwd: Path, *arguments: str, **variables: str) -> None:
        self.seen = ""
        self.read_up_to = 0
        self.master, slave = os.openpty()
        env = environment(TERM="dumb", **variables)
        self.process = Forked(arguments, [slave] * 3, cwd=cwd, env=env, terminal=True)
        os.close(slave)

    def wait_for(self, text: str) -> None:
        while (found := self.seen.find(text, self.read_up_to)) < 0:
            self.seen += os.read(self.master, 4096).decode()
        self.read_up_to = found + len(text)

    def type(self, line: str) -> None:
        os.write(self.master, line.encode())

    def leave(self) -> int:
        try:
            while data := os.read(self.master, 4096):
                self.seen += data.decode()
        except OSError:
            pass  # Linux reports the end of a pseudo-terminal as an I/O error
        return self.hang_up()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def hang_up(self) -> int:
        """Close the terminal; how the program ended."""
        os.close(self.master)
        return self.process.wait()
