"""Whatever else writes to the terminal while the interface has it: one foreign byte moves it by a row.

Descriptor 2 goes to a log file, so that warnings, native libraries and children write there; what Python code
prints is shown as remarks.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from robota.core.private_directory import make_private_directories

STDERR = 2


class Capture:
    """While it is entered, nobody but the surface writes to the terminal."""

    def __init__(self, path: str, say: Callable[[str], None]) -> None:
        self.path = path
        self._printed = _Printed(say)
        self._stdout: TextIO = sys.stdout
        self._kept = -1

    def __enter__(self) -> Capture:
        log = _open_log(self.path)
        sys.stderr.flush()
        self._kept = os.dup(STDERR)
        os.dup2(log, STDERR)
        os.close(log)
        self._stdout, sys.stdout = sys.stdout, self._printed
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout = self._stdout
        sys.stderr.flush()
        os.dup2(self._kept, STDERR)
        os.close(self._kept)


def _open_log(path: str) -> int:
    with suppress(OSError):
        make_private_directories(os.path.dirname(path))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    return os.open(os.devnull, os.O_WRONLY)


class _Printed(io.TextIOBase):
    """What is printed, line by line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in filter(str.strip, lines):
            self._say(line)
        return len(text)

    def writable(self) -> bool:
        return True
